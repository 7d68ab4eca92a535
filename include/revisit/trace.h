// Stored traces in many formats, read in bounded memory.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "revisit/access.h"
#include "revisit/error.h"
#include "revisit/source.h"

namespace revisit {

class TraceWriter {
 public:
    virtual ~TraceWriter() = default;
    virtual Result<void> write(const AccessBatch& batch) = 0;
    // Makes the file appear under its name; without it nothing is left behind.
    virtual Result<void> finish(const TraceInfo& info) = 0;
};

// `format` empty: told by content, compression unpacked on the way. Path "-" is standard input.
Result<std::unique_ptr<TraceReader>> open_trace(const std::string& path, std::string_view format = {});
// Several as one, in their order: a trace that was stored in pieces.
Result<std::unique_ptr<TraceReader>> open_traces(std::span<const std::string> paths,
                                                 std::string_view format = {});
Result<std::unique_ptr<TraceWriter>> create_trace(const std::string& path,
                                                  std::string_view format = {});

}  // namespace revisit
