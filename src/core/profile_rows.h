// One row of each table of a profile, read from JSON. Each expects the reader before a value, reads all
// of it, and complains to the reader about what is missing or out of range.
#pragma once
#include "core/json_reader.h"
#include "revisit/profile.h"

namespace revisit {

Histogram read_histogram(JsonReader& in);
Site read_site(JsonReader& in);
Context read_context(JsonReader& in, std::size_t index);
FirstTouch read_touch(JsonReader& in);
Pair read_pair(JsonReader& in);
Object read_object(JsonReader& in);
ThreadProfile read_thread(JsonReader& in);
RunGroup read_run_group(JsonReader& in);
Phase read_phase(JsonReader& in);
ProcessSummary read_process(JsonReader& in);
Sharing read_sharing(JsonReader& in);
SharingTotals read_sharing_totals(JsonReader& in);
GranularityProfile read_granularity(JsonReader& in);
SimulatedCache read_cache(JsonReader& in);
PrivateFilter read_filter(JsonReader& in);
LineUseTotals read_line_use(JsonReader& in);
Sampling read_sampling(JsonReader& in);

}  // namespace revisit
