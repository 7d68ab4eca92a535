#include "engines/time_profile.h"

#include <bit>
#include <cmath>

#include "core/try.h"

namespace revisit {
namespace {

// A model is as good as the bars it gets: these are 0.4 to 0.8 % wide at most.
constexpr std::uint64_t kModelBinsPerOctave = 128;

// A model's counts are fractions; the accesses they stand for are not. Rounding the running sum keeps
// the total and moves no edge by more than half an access.
void round_counts(Histogram& histogram) {
    double sum = 0, rounded = 0;
    std::vector<Bin> kept;
    for (Bin bin : histogram.bins) {
        sum += bin.count;
        bin.count = std::round(sum) - rounded;
        rounded += bin.count;
        if (bin.count > 0) kept.push_back(bin);
    }
    histogram.bins = std::move(kept);
}

}  // namespace

Binning model_time_bins(const Binning& wanted) {
    if (wanted.kind() != Binning::Kind::log2) return Binning::log2(kModelBinsPerOctave);
    std::uint64_t times = (kModelBinsPerOctave + wanted.parameter() - 1) / wanted.parameter();
    return Binning::log2(wanted.parameter() * std::bit_ceil(times));
}

Result<Profile> time_profile(const EngineOptions& options, TimeCounts counts) {
    const auto distinct = static_cast<double>(counts.distinct);
    std::vector<TimePhase> phases;
    for (const Window& window : counts.windows)
        phases.push_back(
            {static_cast<double>(window.begin), static_cast<double>(window.end), window.gained});
    Histogram reuse =
        TRY(options.time_model == TimeModel::phases
                ? reuse_from_phases(phases, distinct, options.bins)
                : reuse_from_time(counts.fine, distinct, options.time_model, options.bins));
    round_counts(reuse);
    Profile profile;
    profile.method = "time";
    profile.granularity = options.granularity;
    profile.accesses = static_cast<double>(counts.accesses);
    profile.distinct = distinct;
    profile.reuse = std::move(reuse);
    profile.time = std::move(counts.wanted);
    for (const TimeModelEntry& entry : time_models())
        if (entry.model == options.time_model)
            profile.notes.push_back(
                "reuse distances are estimated from time distances by the model \"" +
                std::string(entry.name) + "\": " + std::string(entry.summary));
    return profile;
}

}  // namespace revisit
