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

class REVISIT_API TraceWriter {
 public:
    virtual ~TraceWriter() = default;
    virtual Result<void> write(const AccessBatch& batch) = 0;
    // Makes the file appear under its name; without it nothing is left behind.
    virtual Result<void> finish(const TraceInfo& info) = 0;
    // The columns that its format can hold; what else a batch has is left out.
    virtual ColumnSet holds() const { return {true, true, true, true}; }
};

// `format` empty: recognized by content, compression unpacked on the way. Path "-" is standard input.
REVISIT_API Result<std::unique_ptr<TraceReader>> open_trace(const std::string& path,
                                                            std::string_view format = {});
// Several as one, in their order: a trace that was stored in pieces.
REVISIT_API Result<std::unique_ptr<TraceReader>> open_traces(std::span<const std::string> paths,
                                                             std::string_view format = {});
// Packed files are unpacked and parsed on this many threads; 0, and the two above: on all cores.
REVISIT_API Result<std::unique_ptr<TraceReader>> open_trace(const std::string& path,
                                                            std::string_view format, unsigned threads);
REVISIT_API Result<std::unique_ptr<TraceReader>> open_traces(std::span<const std::string> paths,
                                                             std::string_view format, unsigned threads);
REVISIT_API Result<std::unique_ptr<TraceWriter>> create_trace(const std::string& path,
                                                              std::string_view format = {});

}  // namespace revisit
