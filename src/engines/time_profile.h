// The profile of the time method: time distances as counted, reuse distances as a model reads them out.
#pragma once

#include "revisit/engine.h"

namespace revisit {

// Bins for counting time distances that are fine enough for a model: those wanted, or, where the wanted
// ones are logarithmic and coarse, finer ones that fold into them without loss.
Binning model_time_bins(const Binning& wanted);

// `fine` is what the model gets; `time` is reported.
Result<Profile> time_profile(const EngineOptions& options, Histogram time, const Histogram& fine,
                             std::uint64_t accesses, std::uint64_t distinct);

}  // namespace revisit
