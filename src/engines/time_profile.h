// The profile of the time method: time distances as counted, reuse distances as a model reads them out.
#pragma once

#include <span>
#include <vector>

#include "engines/phases.h"

namespace revisit {

// Bins for counting time distances that are fine enough for a model: those wanted, or, where the wanted
// ones are logarithmic and coarse, finer ones that fold into them without loss.
Binning model_time_bins(const Binning& wanted);

// What the time method knows at the end: distances for the model, by phase where it wants that, and
// for the report.
struct TimeCounts {
    Histogram fine;
    Histogram wanted;
    std::span<const Window> windows;
    std::uint64_t accesses = 0;
    std::uint64_t distinct = 0;
};
Result<Profile> time_profile(const EngineOptions& options, TimeCounts counts);

}  // namespace revisit
