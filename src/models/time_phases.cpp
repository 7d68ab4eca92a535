// From time distances to reuse distances, phase by phase.
//
// Problem. The expected number of distinct blocks in a window is the same for all windows of one length
// only while the program does the same thing. A phase that scans and a phase that computes have reuses
// of equal time distance and unequal reuse distance; averaging over both is wrong for each.
// Idea. Cut the run into phases and keep a histogram of time distances for each: the reuses that end in
// it. A reuse that ends at moment t after time d saw, as before, those accesses in between whose own
// next access comes after t. The one j accesses back lies in a known phase, so ask that phase how
// likely a time distance above j is:
//     D(t, d) = sum over j = 1 .. d - 1 of P(time distance > j | access in the phase at t - j).
// That takes the accesses' forward time distances by phase. They are the backward ones seen from the
// other end: a reuse that ends evenly in phase p after time d began evenly in p shifted back by d.
// Accesses of a phase left over after that are never reused.
// Cost. O(phases * L); nothing an access, as a histogram a phase is a difference of two running ones.
#include "models/time_phases.h"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "models/time_to_reuse.h"

namespace revisit {
namespace {

// Moments at which reuses end, for each phase: the more phases, the shorter they are.
int moments_a_phase(std::size_t phases) {
    return static_cast<int>(std::clamp<std::size_t>(128 / phases, 1, 8));
}

using PhaseBars = PhaseModel::PhaseBars;

std::vector<double> common_edges(std::span<const TimePhase> phases) {
    std::vector<double> edges{1}, own, joined;
    for (const TimePhase& phase : phases) {
        own.clear();
        for (const Bin& bin : phase.time.bins)
            for (std::uint64_t edge : {bin.low, bin.high})
                if (own.empty() || own.back() < static_cast<double>(edge))
                    own.push_back(std::max(1.0, static_cast<double>(edge)));
        joined.clear();
        std::set_union(edges.begin(), edges.end(), own.begin(), own.end(), std::back_inserter(joined));
        edges.swap(joined);
    }
    return edges;
}

// Counts on the common bars; a bin that covers several is spread by width.
std::vector<double> on_bars(const Histogram& time, const std::vector<double>& edges) {
    std::vector<double> out(edges.size());
    std::size_t at = 0;
    for (const Bin& bin : time.bins) {
        double low = std::max(1.0, static_cast<double>(bin.low)), high = static_cast<double>(bin.high);
        while (edges[at] < low) ++at;  // every bin's edges are among them
        for (; at + 1 < edges.size() && edges[at] < high; ++at)
            out[at] += bin.count * (edges[at + 1] - edges[at]) / (high - low);
    }
    return out;
}

// Moves the reuses that end in `phases[p]` to where they began.
void begin_reuses(std::vector<PhaseBars>& phases, std::size_t p, const std::vector<double>& edges) {
    std::size_t first = p;  // falls as the bars rise
    for (std::size_t bar = 0; bar + 1 < edges.size(); ++bar) {
        double count = phases[p].ending[bar];
        if (count <= 0) continue;
        double time = (edges[bar] + edges[bar + 1] - 1) / 2;
        double low = std::max(0.0, phases[p].begin - time), high = phases[p].end - time;
        if (high <= low) {  // longer than the run so far allows for this bar's middle
            phases[0].beginning[bar] += count;
            continue;
        }
        while (first > 0 && phases[first].begin > low) --first;
        for (std::size_t q = first; q <= p && phases[q].begin < high; ++q) {
            double common = std::min(high, phases[q].end) - std::max(low, phases[q].begin);
            if (common > 0) phases[q].beginning[bar] += count * common / (high - low);
        }
    }
}

void sum_distinct(PhaseBars& phase, const std::vector<double>& edges) {
    double left = phase.length(), sum = 0;
    for (std::size_t bar = 0; bar < edges.size(); ++bar) {
        phase.distinct[bar] = sum;
        if (bar + 1 == edges.size()) break;
        double width = edges[bar + 1] - edges[bar], count = std::min(left, phase.beginning[bar]);
        double others = phase.length() - count / width;
        double beyond = left - count;
        if (others > 0) sum += std::min(width, (beyond * width + count * (width - 1) / 2) / others);
        left = beyond;
    }
}

// D(t, d) for rising d: walks back through the phases, and along the bars in each.
class WindowWalk {
 public:
    WindowWalk(const std::vector<PhaseBars>& phases, const std::vector<double>& edges, std::size_t p,
               double moment)
        : phases_(phases), edges_(edges), phase_(p), moment_(moment) {}

    // `bar` is where `time` lies; both rise from call to call.
    double distinct(double time, std::size_t bar) {
        while (phase_ > 0 && moment_ - phases_[phase_].begin < time) {
            double reach = moment_ - phases_[phase_].begin;
            before_ += sum_at(reach, bar_of(reach)) - from_;
            --phase_;
            from_ = sum_at(reach, bar_of(reach));
        }
        return before_ + sum_at(time, bar) - from_;
    }

 private:
    std::size_t bar_of(double time) const {
        auto at = std::upper_bound(edges_.begin(), edges_.end(), time) - edges_.begin();
        return at > 0 ? static_cast<std::size_t>(at - 1) : 0;
    }
    double sum_at(double time, std::size_t bar) const {
        const std::vector<double>& sums = phases_[phase_].distinct;
        if (time <= 1) return 0;
        if (bar + 1 >= edges_.size()) return sums.back();
        double share = (time - edges_[bar]) / (edges_[bar + 1] - edges_[bar]);
        return sums[bar] + (sums[bar + 1] - sums[bar]) * std::min(1.0, share);
    }

    const std::vector<PhaseBars>& phases_;
    const std::vector<double>& edges_;
    std::size_t phase_;
    double moment_;
    double before_ = 0;  // seen in the later phases
    double from_ = 0;    // what the present phase's sum starts from
};

}  // namespace

PhaseModel::PhaseModel(std::span<const TimePhase> time) : edges_(common_edges(time)) {
    for (const TimePhase& one : time) {
        phases_.push_back({one.begin, one.end, on_bars(one.time, edges_), {}, {}});
        phases_.back().beginning.resize(edges_.size());
        phases_.back().distinct.resize(edges_.size());
    }
    for (std::size_t p = 0; p < phases_.size(); ++p) begin_reuses(phases_, p, edges_);
    for (PhaseBars& phase : phases_) sum_distinct(phase, edges_);
}

double PhaseModel::distance(double moment, double time) const {
    if (phases_.empty() || time <= 1) return 0;
    std::size_t phase = 0;
    while (phase + 1 < phases_.size() && phases_[phase].end < moment) ++phase;
    auto above = std::upper_bound(edges_.begin(), edges_.end(), time) - edges_.begin();
    return WindowWalk(phases_, edges_, phase, moment)
        .distinct(time, above > 0 ? static_cast<std::size_t>(above - 1) : 0);
}

Histogram reuse_from_phases(std::span<const TimePhase> time, double distinct, const Binning& bins) {
    Histogram out;
    double finite = 0;
    for (const TimePhase& one : time) {
        out.cold += one.time.cold;
        out.invalidated += one.time.invalidated;
        finite += one.time.finite();
    }
    const PhaseModel model(time);
    const std::vector<PhaseBars>& phases = model.phases();
    const std::vector<double>& edges = model.edges();

    DistanceSpread spread(bins, distinct);
    const int moments = phases.empty() ? 0 : moments_a_phase(phases.size());
    for (std::size_t p = 0; p < phases.size(); ++p)
        for (int k = 0; k < moments; ++k) {
            double moment = phases[p].begin + phases[p].length() * (k + 0.5) / moments;
            WindowWalk walk(phases, edges, p, moment);
            for (std::size_t bar = 0; bar + 1 < edges.size(); ++bar) {
                if (phases[p].ending[bar] <= 0) continue;
                double low = walk.distinct(edges[bar], bar);
                double high = walk.distinct(edges[bar + 1] - 1, bar);
                spread.add_even(low, std::max(low, high) + 1, phases[p].ending[bar] / moments);
            }
        }
    out.bins = spread.bins(finite);
    return out;
}

}  // namespace revisit
