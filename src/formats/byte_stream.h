// The bytes of a trace file: read in large blocks, unpacked on the way, looked at before they are
// taken.
//
// Files are read, not mapped: a mapped file that is cut short while we read would end the program with
// SIGBUS, and a library must not catch that signal for its program (mapped_file.h has the exception).
// Reading 256 KiB at a time into memory that stays in the second-level cache costs 1 ns per address,
// mapping half of that, and the fastest engine ten times as much (Neoverse V1).
#pragma once

#include <atomic>
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

// Wraps `packed` when its first bytes are those of zstd, xz, gzip or zip. Unpacked by the reader itself
// on one thread, else ahead of it: only what never waits for somebody else (a regular file) may be.
Result<std::unique_ptr<ByteSource>> unpacked(std::unique_ptr<ByteSource> packed,
                                             const std::string& name, unsigned threads = 1);

// A file of known size that any thread may read anywhere.
class PlainFile {
 public:
    PlainFile(int descriptor, std::uint64_t begin, std::uint64_t size, std::string name)
        : descriptor_(descriptor), begin_(begin), size_(size), name_(std::move(name)) {}
    PlainFile(const PlainFile&) = delete;
    ~PlainFile();

    std::uint64_t size() const { return size_; }
    const std::string& name() const { return name_; }
    int descriptor() const { return descriptor_; }
    std::uint64_t begin() const { return begin_; }  // of what is read, in the file
    // Bytes [at, at + size). An error where the file has become shorter.
    Result<void> read(std::uint64_t at, void* into, std::size_t size) const;
    // It ends at this byte of the file, before what was wanted.
    unexpected<Error> became_shorter(std::uint64_t end) const;

 private:
    int descriptor_;
    std::uint64_t begin_, size_;
    std::string name_;
};

class ByteStream {
 public:
    // "-" = standard input. Packed files are unpacked on this many threads, which takes memory; 0 = all
    // cores.
    static Result<ByteStream> open(const std::string& path, unsigned threads = 0);
    // Bytes [begin, end) of a file, as they are.
    static Result<ByteStream> open_range(const std::string& path, std::uint64_t begin,
                                         std::uint64_t end);
    static Result<ByteStream> of_memory(std::string bytes, std::string name = "memory");

    // The next bytes: at least `want` unless the end comes first; valid until the next peek.
    Result<std::span<const std::uint8_t>> peek(std::size_t want);
    void consume(std::size_t count);
    // For those who read many at once: how much memory each may take.
    void read_in_blocks_of(std::size_t bytes) { block_ = bytes; }

    const std::string& name() const { return name_; }
    std::uint64_t position() const { return position_; }  // unpacked bytes consumed
    std::uint64_t file_bytes_read() const { return *file_bytes_read_; }
    std::uint64_t file_bytes_total() const { return file_bytes_total_; }  // 0 = unknown
    bool packed() const { return packed_; }
    // How many threads a reader may use, at most 16.
    unsigned threads() const { return threads_; }
    // The file as it lies on disk, perhaps packed; null for what is not a file or is empty.
    std::shared_ptr<const PlainFile> file() const { return file_; }

    unexpected<Error> error_here(const std::string& message) const;

 private:
    std::string name_;
    std::unique_ptr<ByteSource> source_;
    std::vector<std::uint8_t> buffer_;
    std::size_t block_ = std::size_t{4} << 20;
    std::size_t begin_ = 0;
    std::size_t end_ = 0;
    bool ended_ = false;
    std::uint64_t position_ = 0;
    std::shared_ptr<std::atomic<std::uint64_t>> file_bytes_read_ =
        std::make_shared<std::atomic<std::uint64_t>>(0);
    std::uint64_t file_bytes_total_ = 0;
    bool packed_ = false;
    unsigned threads_ = 1;
    std::shared_ptr<const PlainFile> file_;
};

}  // namespace revisit
