// From time distances to reuse distances: the expected number of distinct blocks.
//
// Problem. The time distance of a reuse costs one subtraction; its reuse distance costs a search. Given
// only the histogram of time distances, what do the reuse distances look like?
// Idea. A reuse over time d has d - 1 accesses in between. The one j accesses before the end is the
// last to its block in that window, and so counts as a distinct block, if its own next access is more
// than j away. Take its time distance to be like anybody's: the reuse distance is then on average
//     D(d) = sum over j = 1 .. d - 1 of P(time distance > j | time distance != j).
// The condition is ours: j accesses on, the reused block itself is accessed, so nobody else's reuse can
// end there. It makes short distances come out right (d = 2 gives 1, always) and fades for long ones.
// Cold accesses are reuses from infinitely far and count as such: some block's last access is among
// them. Cost. O(L) for L bars. Where it fails. It takes windows of one length to be alike. Phases that
// touch different data, and loops whose long reuses all see the same few blocks, break that:
// docs/models.md has figures. Source. Eklov and Hagersten 2010 (StatStack), Hu et al. 2016 (AET);
// equation 1 of Shen and Shaw.
#include "models/time_to_reuse.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/try.h"

namespace revisit {
namespace {

constexpr TimeModelEntry kTimeModels[] = {
    {"phases", "the mean number of distinct blocks in a window, by phase of the run",
     TimeModel::phases},
    {"expected", "the mean number of distinct blocks in a window", TimeModel::expected},
    {"shen", "Shen and Shaw's scalable form: that mean with a binomial spread", TimeModel::shen},
    {"shen-basic", "their basic form, bars of width 1; slow", TimeModel::shen_basic},
};

}  // namespace

std::span<const TimeModelEntry> time_models() {
    return kTimeModels;
}

Result<TimeModel> parse_time_model(std::string_view name) {
    std::string names;
    for (const TimeModelEntry& entry : kTimeModels) {
        if (entry.name == name) return entry.model;
        names += fmt::format("{}{}", names.empty() ? "" : ", ", entry.name);
    }
    return fail(fmt::format("expected a time model out of {}, found \"{}\"", names, name));
}

TimeBars time_bars(const Histogram& time) {
    TimeBars out;
    out.infinite = time.cold + time.invalidated;
    out.total = out.infinite;
    double at = 1;
    for (const Bin& bin : time.bins) {
        double low = std::max(at, static_cast<double>(bin.low));
        double high = std::max(low + 1, static_cast<double>(bin.high));
        if (low > at) out.bars.push_back({at, low, 0});
        out.bars.push_back({low, high, bin.count});
        out.total += bin.count;
        at = high;
    }
    return out;
}

void spread_expected(const TimeBars& time, DistanceSpread& spread) {
    double left = time.total;  // accesses with a time distance of at least the bar's low edge
    double distance = 0;       // D(bar.low)
    for (const TimeBar& bar : time.bars) {
        double width = bar.width();
        double beyond = std::max(0.0, left - bar.count);
        double at_one_time = bar.count / width;
        double others = time.total - at_one_time;  // those that do not end right here
        double gain = 0, last_gain = 0;
        if (others > 0) {
            gain = std::min(width, (beyond * width + bar.count * (width - 1) / 2) / others);
            last_gain = std::min(1.0, beyond / others);
        }
        // A reuse of time d sees D(d) blocks on average: a share of it floor(D), the rest one more.
        spread.add_even(distance, distance + gain - last_gain + 1, bar.count);
        distance += gain;
        left = beyond;
    }
}

Result<Histogram> reuse_from_time(const Histogram& time, double distinct, TimeModel model,
                                  const Binning& bins) {
    Histogram out;
    out.cold = time.cold;
    out.invalidated = time.invalidated;
    out.cold_error = time.cold_error;
    out.invalidated_error = time.invalidated_error;
    DistanceSpread spread(bins, distinct);
    // A binomial costs a hundred evaluations of the Normal's integral; very long histograms are folded.
    constexpr std::size_t kMostBinomials = 1 << 14;
    const bool fold = model == TimeModel::shen && time.bins.size() > kMostBinomials;
    TimeBars bars = time_bars(fold ? time.rebin(Binning::log2(256)) : time);
    switch (model) {
        case TimeModel::phases:
        case TimeModel::expected:
            spread_expected(bars, spread);
            break;
        case TimeModel::shen:
            spread_shen(bars, distinct, spread);
            break;
        case TimeModel::shen_basic:
            TRY(spread_shen_basic(bars, distinct, spread));
            break;
    }
    out.bins = spread.bins(time.finite());
    return out;
}

}  // namespace revisit
