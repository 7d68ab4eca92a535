// A trace in parts, for readers side by side.
#pragma once

#include "revisit/trace.h"

namespace revisit {

// The accesses of part `part` out of `parts`, in order; all parts together are the trace. Formats of
// records of one size, not packed, are opened at the right byte. Others are read from the start and
// skipped, after a first reading that counts the accesses.
Result<std::unique_ptr<TraceReader>> open_trace_part(const std::string& path, std::string_view format,
                                                     unsigned part, unsigned parts);

}  // namespace revisit
