#include "formats/byte_stream.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "core/parallel.h"
#include "core/try.h"

namespace revisit {
namespace {

unexpected<Error> cannot(const std::string& file, const char* what) {
    return fail(ErrorCode::io, file, {}, fmt::format("cannot {}: {}", what, std::strerror(errno)));
}

// Reads on from where the descriptor is; the file it belongs to closes it.
class DescriptorSource : public ByteSource {
 public:
    DescriptorSource(std::shared_ptr<const PlainFile> file,
                     std::shared_ptr<std::atomic<std::uint64_t>> bytes_read,
                     std::uint64_t left = ~std::uint64_t{0})
        : file_(std::move(file)), bytes_read_(std::move(bytes_read)), left_(left) {}

    Result<std::size_t> read(std::uint8_t* into, std::size_t size) override {
        for (;;) {
            ssize_t count = ::read(file_->descriptor(), into, std::min<std::uint64_t>(size, left_));
            if (count < 0 && errno == EINTR) continue;
            if (count < 0) return cannot(file_->name(), "read");
            *bytes_read_ += static_cast<std::uint64_t>(count);
            left_ -= static_cast<std::uint64_t>(count);
            return static_cast<std::size_t>(count);
        }
    }

 private:
    std::shared_ptr<const PlainFile> file_;
    std::shared_ptr<std::atomic<std::uint64_t>> bytes_read_;
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

PlainFile::~PlainFile() {
    close(descriptor_);
}

Result<void> PlainFile::read(std::uint64_t at, void* into, std::size_t size) const {
    auto* to = static_cast<std::uint8_t*>(into);
    while (size != 0) {
        const ssize_t count = pread(descriptor_, to, size, static_cast<off_t>(begin_ + at));
        if (count < 0 && errno == EINTR) continue;
        if (count < 0) return cannot(name_, "read");
        if (count == 0) return became_shorter(begin_ + at);
        to += count;
        at += static_cast<std::uint64_t>(count);
        size -= static_cast<std::size_t>(count);
    }
    return {};
}

unexpected<Error> PlainFile::became_shorter(std::uint64_t end) const {
    return fail(
        ErrorCode::io, name_, fmt::format("byte {}", end),
        fmt::format("expected {} bytes, found the end: the file became shorter while it was read",
                    size_));
}

Result<ByteStream> ByteStream::open(const std::string& path, unsigned threads) {
    ByteStream stream;
    stream.threads_ = std::min(thread_count(threads), 16u);
    stream.name_ = path == "-" ? "standard input" : path;
    const int descriptor = path == "-" ? dup(STDIN_FILENO) : ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (descriptor < 0) return cannot(stream.name_, "open");
    struct stat status {};
    std::uint64_t begin = 0;
    if (fstat(descriptor, &status) == 0 && S_ISREG(status.st_mode)) {
        // Standard input may have been read from already.
        begin = static_cast<std::uint64_t>(std::max<off_t>(0, lseek(descriptor, 0, SEEK_CUR)));
        const auto size = static_cast<std::uint64_t>(status.st_size);
        stream.file_bytes_total_ = size - std::min(begin, size);
    }
    auto file =
        std::make_shared<const PlainFile>(descriptor, begin, stream.file_bytes_total_, stream.name_);
    if (S_ISDIR(status.st_mode)) return fail(stream.name_, {}, "expected a trace, found a directory");
    if (file->size() != 0) stream.file_ = file;
    stream.source_ = TRY(unpacked(std::make_unique<DescriptorSource>(file, stream.file_bytes_read_),
                                  stream.name_, S_ISREG(status.st_mode) ? stream.threads_ : 1));
    stream.packed_ = stream.source_->unpacks();
    return stream;
}

Result<ByteStream> ByteStream::open_range(const std::string& path, std::uint64_t begin,
                                          std::uint64_t end) {
    ByteStream stream;
    stream.name_ = path;
    const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (descriptor < 0) return cannot(path, "open");
    auto file = std::make_shared<const PlainFile>(descriptor, begin, end - begin, path);
    if (lseek(descriptor, static_cast<off_t>(begin), SEEK_SET) < 0) return cannot(path, "seek");
    if (end > begin) stream.file_ = file;
    stream.source_ = std::make_unique<DescriptorSource>(file, stream.file_bytes_read_, end - begin);
    stream.position_ = begin;
    stream.file_bytes_total_ = end - begin;
    return stream;
}

Result<ByteStream> ByteStream::of_memory(std::string bytes, std::string name) {
    ByteStream stream;
    stream.name_ = std::move(name);
    stream.threads_ = std::min(thread_count(0), 16u);
    stream.source_ = TRY(unpacked(std::make_unique<MemorySource>(std::move(bytes)), stream.name_));
    stream.packed_ = stream.source_->unpacks();
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
        // The first bytes tell the format; whoever then reads the file on a way of its own needs no
        // more of them.
        const std::size_t block = buffer_.empty() ? want : std::max(want, block_);
        if (buffer_.size() < block) buffer_.resize(block);
        while (end_ < want && !ended_) {
            const std::size_t count = TRY(source_->read(buffer_.data() + end_, buffer_.size() - end_));
            if (count == 0) ended_ = true;
            end_ += count;
        }
    }
    return std::span<const std::uint8_t>(buffer_.data() + begin_, end_ - begin_);
}

void ByteStream::consume(std::size_t count) {
    begin_ += count;
    position_ += count;
}

unexpected<Error> ByteStream::error_here(const std::string& message) const {
    return fail(name_, fmt::format("byte {}", position_), message);
}

}  // namespace revisit
