// The bytes of a trace file: read in large blocks, unpacked on the way, looked at before they are
// taken.
//
// Files are read, not mapped: a mapped file that is cut short while we read would end the program with
// SIGBUS, and copying costs 0.3–0.8 ns an access where the fastest engine needs ten times that.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "revisit/error.h"

namespace revisit {

// Where bytes come from: a file descriptor, or an unpacker around another source.
class ByteSource {
 public:
    virtual ~ByteSource() = default;
    // Fills up to `size` bytes; 0 is the end.
    virtual Result<std::size_t> read(std::uint8_t* into, std::size_t size) = 0;
    virtual bool unpacks() const { return false; }
};

// Wraps `packed` when its first bytes are those of zstd, xz or gzip; `head` is what was read to tell.
Result<std::unique_ptr<ByteSource>> unpacked(std::unique_ptr<ByteSource> packed,
                                             const std::string& name);

class ByteStream {
 public:
    static Result<ByteStream> open(const std::string& path);  // "-" = standard input
    // Bytes [begin, end) of a file, as they are.
    static Result<ByteStream> open_range(const std::string& path, std::uint64_t begin,
                                         std::uint64_t end);
    static Result<ByteStream> of_memory(std::string bytes, std::string name = "memory");

    // The next bytes: at least `want` unless the end comes first; valid until the next peek.
    Result<std::span<const std::uint8_t>> peek(std::size_t want);
    void consume(std::size_t count);

    const std::string& name() const { return name_; }
    std::uint64_t position() const { return position_; }  // unpacked bytes consumed
    std::uint64_t file_bytes_read() const { return *file_bytes_read_; }
    std::uint64_t file_bytes_total() const { return file_bytes_total_; }  // 0 = unknown
    bool packed() const { return packed_; }

    std::unexpected<Error> error_here(const std::string& message) const;

 private:
    std::string name_;
    std::unique_ptr<ByteSource> source_;
    std::vector<std::uint8_t> buffer_;
    std::size_t begin_ = 0;
    std::size_t end_ = 0;
    bool ended_ = false;
    std::uint64_t position_ = 0;
    std::shared_ptr<std::uint64_t> file_bytes_read_ = std::make_shared<std::uint64_t>(0);
    std::uint64_t file_bytes_total_ = 0;
    bool packed_ = false;
};

}  // namespace revisit
