// What samples know about sites besides their reuses: processor time, and how regular their misses are.
//
// Time. A sample stands for the processor time since the one before it, spent at the instruction that
// it interrupted. Processors interrupt at or after the instruction that waits, rarely exactly there, so
// time counts by source line: a site has the share of the samples that its line has; where lines are
// not known, that of its instruction alone. Regular: visits.h.
#pragma once

#include "watch/samples/samples.h"

namespace revisit::watch {

// `profile` is by place already (explain).
void add_site_facts(Profile& profile, const Samples& samples, const Origins& origins);

}  // namespace revisit::watch
