// Traces: streams of accesses in many formats, read in bounded memory.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
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

class TraceReader {
 public:
    virtual ~TraceReader() = default;
    // The next accesses, valid until the next call; an empty batch is the end.
    virtual Result<AccessBatch> next() = 0;
    virtual TraceInfo info() const { return {}; }
    // Whether its sites stand for places in code: profiles of it are by site unless told otherwise.
    virtual bool tells_places() const { return false; }
    // Bytes of the file read so far and in all (0 = unknown), for progress.
    virtual std::uint64_t bytes_read() const { return 0; }
    virtual std::uint64_t bytes_total() const { return 0; }
};

class TraceWriter {
 public:
    virtual ~TraceWriter() = default;
    virtual Result<void> write(const AccessBatch& batch) = 0;
    // Makes the file appear under its name; without it nothing is left behind.
    virtual Result<void> finish(const TraceInfo& info) = 0;
};

// `format` empty: told by content, compression unpacked on the way. Path "-" is standard input.
Result<std::unique_ptr<TraceReader>> open_trace(const std::string& path, std::string_view format = {});
Result<std::unique_ptr<TraceWriter>> create_trace(const std::string& path,
                                                  std::string_view format = {});

}  // namespace revisit
