// Sources of accesses: what a trace is to those who analyze it, wherever it comes from.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "revisit/access.h"
#include "revisit/error.h"

namespace revisit {

// One loaded object of the traced program; sites are its code's addresses when the trace has a map.
struct Module {
    std::uint64_t low = 0;  // address range while the program ran
    std::uint64_t high = 0;
    std::uint64_t file_offset = 0;
    std::string path;
    std::string build_id;
    bool operator==(const Module&) const = default;
};

// What a trace knows beside its accesses. Small; filled by the time the last batch was read.
struct TraceInfo {
    std::vector<Module> modules;
    std::vector<std::uint64_t>
        site_addresses;  // site id → instruction address; empty when ids are opaque
    std::vector<std::string> command;
    std::uint64_t natural_granularity =
        0;                   // what `analyze` takes unless told; 0 = the usual cache line
    std::string extra_json;  // recorders' attribution (contexts, objects, region marks), opaque here
};

// A file that holds nothing but little-endian 8-byte addresses.
struct AddressFile {
    int descriptor = -1;
    std::uint64_t offset = 0;  // of the first address
    std::uint64_t count = 0;   // addresses
};

// Accesses that any thread may read, in any order, more than once, as cheaply as copying them: a plain
// file of records of one size, or arrays in memory.
class REVISIT_API AccessRanges {
 public:
    virtual ~AccessRanges() = default;
    virtual std::uint64_t count() const = 0;  // accesses
    // Accesses [first, first + count), valid as long as `into` and the source are.
    virtual Result<AccessBatch> read(std::uint64_t first, std::size_t count,
                                     AccessColumns& into) const = 0;
    // For engines that read the file on ways of their own.
    virtual std::optional<AddressFile> address_file() const { return std::nullopt; }
};

// Parts of a trace, in order, each of which any thread may decode.
class REVISIT_API AccessChunks {
 public:
    virtual ~AccessChunks() = default;
    virtual std::size_t count() const = 0;  // chunks
    // Of all chunks; a guess where only decoding tells.
    virtual std::uint64_t accesses() const = 0;
    // The accesses of a chunk, perhaps none; valid as long as `into` is.
    virtual Result<AccessBatch> decode(std::size_t chunk, AccessColumns& into) const = 0;
};

// A source of accesses. All can be read as a stream; some offer more, and analyze() makes use of it.
class REVISIT_API TraceReader {
 public:
    virtual ~TraceReader() = default;
    // The next accesses, valid until the next call; an empty batch is the end.
    virtual Result<AccessBatch> next() = 0;
    // The whole trace, whatever was read as a stream; null where it can only be read as a stream.
    virtual const AccessRanges* ranges() const { return nullptr; }
    virtual const AccessChunks* chunks() const { return nullptr; }
    virtual TraceInfo info() const { return {}; }
    // Whether it has sites, and they stand for places in code: profiles of it are by site unless told
    // otherwise.
    virtual Result<bool> tells_places() { return false; }
    // Bytes of the file read so far and in all (0 = unknown), for progress.
    virtual std::uint64_t bytes_read() const { return 0; }
    virtual std::uint64_t bytes_total() const { return 0; }
    // What a stored trace was read as, e.g. "lackey"; empty for other sources.
    const std::string& format() const { return format_; }
    void set_format(std::string_view name) { format_ = name; }

 private:
    std::string format_;
};

}  // namespace revisit
