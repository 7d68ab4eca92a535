// From samples to a profile.
//
// Each sample stands for the accesses since the one before it. A reuse met while looking ahead counts
// as that many; one that a watchpoint caught also for those that were not watched or lost their
// watchpoint, by one of two rules (--weights). Samples whose watchpoint still waited at the end of
// their thread are last accesses to a block, of which there are as many as first ones: cold. Reuse
// distances of the short reuses are counted by the look-ahead; those of the long ones come from their
// time distances by the footprint model. Errors: share_errors.h.
#pragma once

#include <optional>

#include "revisit/engine.h"
#include "watch/clock/clock.h"

namespace revisit::watch {

enum class Weights : std::uint8_t {
    inverse,       // one over the chance of being seen (Horvitz and Thompson)
    proportional,  // all samples of the use's context since the last reuse seen from it (RDX)
    none,
};

struct EstimateOptions {
    Binning bins = Binning::log2(8);
    std::uint64_t granularity = 64;
    Weights weights = Weights::inverse;
    bool sites = true, pairs = true;
    unsigned runs =
        1;  // that each thread's samples are of, one behind the other; the profile is of one
    bool from_beginning = true;  // of the program: what is resident was touched in what was sampled
    double sampled_share = 1;    // of the program's time: that of the threads that have samples
};

// The profile by labels; `explain` turns them into places.
Profile estimate(const Samples& samples, const Origins& origins, const EstimateOptions& options,
                 const FunctionCounts* counts = nullptr);
// … by a clock that is known already.
Profile estimate(const Samples& samples, const Origins& origins, const EstimateOptions& options,
                 const AccessClock& clock);

}  // namespace revisit::watch
