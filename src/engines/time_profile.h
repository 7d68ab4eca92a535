// The profile of the time method: time distances as counted, reuse distances as a model reads them out.
#pragma once

#include <span>
#include <vector>

#include "revisit/engine.h"

namespace revisit {

// Bins for counting time distances that are fine enough for a model: those wanted, or, where the wanted
// ones are logarithmic and coarse, finer ones that fold into them without loss.
Binning model_time_bins(const Binning& wanted);

// A histogram a phase, out of one that only grows. Phases are 16 Ki accesses at first and are joined
// two by two whenever there are too many, so any run ends with 64 to 128 of one length.
class PhaseRecorder {
 public:
    std::uint64_t phase_end() const { return begin_ + length_; }
    // The run stands at `accesses` with these time distances so far: a phase ends here.
    void end_phase(std::uint64_t accesses, const Histogram& so_far);

    std::span<const TimePhase> phases() const { return phases_; }

 private:
    void join_pairs();

    std::uint64_t begin_ = 0;
    std::uint64_t length_ = std::uint64_t{1} << 14;
    Histogram before_;
    std::vector<TimePhase> phases_;
};

// What the time method knows at the end: distances for the model, by phase where it wants that, and
// for the report.
struct TimeCounts {
    Histogram fine;
    Histogram wanted;
    std::span<const TimePhase> phases;
    std::uint64_t accesses = 0;
    std::uint64_t distinct = 0;
};
Result<Profile> time_profile(const EngineOptions& options, TimeCounts counts);

}  // namespace revisit
