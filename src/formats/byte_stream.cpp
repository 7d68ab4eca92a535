#include "formats/byte_stream.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace revisit {
namespace {

constexpr std::size_t kBlock = std::size_t{4} << 20;

class DescriptorSource : public ByteSource {
 public:
    DescriptorSource(int descriptor, std::string name, std::shared_ptr<std::uint64_t> bytes_read,
                     std::uint64_t left = ~std::uint64_t{0})
        : descriptor_(descriptor),
          name_(std::move(name)),
          bytes_read_(std::move(bytes_read)),
          left_(left) {}
    ~DescriptorSource() override { close(descriptor_); }

    Result<std::size_t> read(std::uint8_t* into, std::size_t size) override {
        for (;;) {
            ssize_t count = ::read(descriptor_, into, std::min<std::uint64_t>(size, left_));
            if (count < 0 && errno == EINTR) continue;
            if (count < 0) return fail(name_, {}, fmt::format("cannot read: {}", std::strerror(errno)));
            *bytes_read_ += static_cast<std::uint64_t>(count);
            left_ -= static_cast<std::uint64_t>(count);
            return static_cast<std::size_t>(count);
        }
    }

 private:
    int descriptor_;
    std::string name_;
    std::shared_ptr<std::uint64_t> bytes_read_;
    std::uint64_t left_;  // to the end of the range
};

class MemorySource : public ByteSource {
 public:
    explicit MemorySource(std::string bytes) : bytes_(std::move(bytes)) {}
    Result<std::size_t> read(std::uint8_t* into, std::size_t size) override {
        std::size_t count = std::min(size, bytes_.size() - at_);
        std::memcpy(into, bytes_.data() + at_, count);
        at_ += count;
        return count;
    }

 private:
    std::string bytes_;
    std::size_t at_ = 0;
};

}  // namespace

Result<ByteStream> ByteStream::open(const std::string& path) {
    ByteStream stream;
    stream.name_ = path == "-" ? "standard input" : path;
    int descriptor = path == "-" ? dup(STDIN_FILENO) : ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (descriptor < 0)
        return fail(stream.name_, {}, fmt::format("cannot open: {}", std::strerror(errno)));
    auto source = std::make_unique<DescriptorSource>(descriptor, stream.name_, stream.file_bytes_read_);
    struct stat status{};
    if (fstat(descriptor, &status) == 0) {
        if (S_ISDIR(status.st_mode))
            return fail(stream.name_, {}, "expected a trace, found a directory");
        if (S_ISREG(status.st_mode))
            stream.file_bytes_total_ = static_cast<std::uint64_t>(status.st_size);
    }
    auto plain = unpacked(std::move(source), stream.name_);
    if (!plain) return std::unexpected(plain.error());
    stream.packed_ = (*plain)->unpacks();
    stream.source_ = std::move(*plain);
    return stream;
}

Result<ByteStream> ByteStream::open_range(const std::string& path, std::uint64_t begin,
                                          std::uint64_t end) {
    ByteStream stream;
    stream.name_ = path;
    int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (descriptor < 0) return fail(path, {}, fmt::format("cannot open: {}", std::strerror(errno)));
    stream.source_ =
        std::make_unique<DescriptorSource>(descriptor, path, stream.file_bytes_read_, end - begin);
    if (lseek(descriptor, static_cast<off_t>(begin), SEEK_SET) < 0)
        return fail(path, {}, fmt::format("cannot seek: {}", std::strerror(errno)));
    stream.position_ = begin;
    stream.file_bytes_total_ = end - begin;
    return stream;
}

Result<ByteStream> ByteStream::of_memory(std::string bytes, std::string name) {
    ByteStream stream;
    stream.name_ = std::move(name);
    auto plain = unpacked(std::make_unique<MemorySource>(std::move(bytes)), stream.name_);
    if (!plain) return std::unexpected(plain.error());
    stream.source_ = std::move(*plain);
    return stream;
}

Result<std::span<const std::uint8_t>> ByteStream::peek(std::size_t want) {
    if (end_ - begin_ < want && !ended_) {
        // Move what is left to the front; the buffer grows only to what a format asks for, never to
        // what a file claims.
        if (begin_ > 0) {
            std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
            end_ -= begin_;
            begin_ = 0;
        }
        if (buffer_.size() < std::max(want, kBlock)) buffer_.resize(std::max(want, kBlock));
        while (end_ < want && !ended_) {
            auto count = source_->read(buffer_.data() + end_, buffer_.size() - end_);
            if (!count) return std::unexpected(count.error());
            if (*count == 0) ended_ = true;
            end_ += *count;
        }
    }
    return std::span<const std::uint8_t>(buffer_.data() + begin_, end_ - begin_);
}

void ByteStream::consume(std::size_t count) {
    begin_ += count;
    position_ += count;
}

std::unexpected<Error> ByteStream::error_here(const std::string& message) const {
    return fail(name_, fmt::format("byte {}", position_), message);
}

}  // namespace revisit
