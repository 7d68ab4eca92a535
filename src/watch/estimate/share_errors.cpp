#include "watch/estimate/share_errors.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace revisit::watch {
namespace {

constexpr double kDeviations = 1.96;
// The factor by which the footprint model is off, one standard deviation: found by simulation with
// exact time distances on the traces of docs/watch.md.
constexpr double kModelError = 0.08;
constexpr double kMostClockError = 1.2;          // likewise, of a clock of which nothing is known
constexpr double kUnseen = 2;                    // long reuses that might have been seen elsewhere
constexpr double kOther = 0.75, kMostOther = 6;  // samples of other code, of so many times the usual

// Which bin of a histogram a distance is in; cold after the last.
class Places {
 public:
    Places(const Histogram& histogram, const Binning& bins) : bins_(bins) {
        for (const Bin& bin : histogram.bins) at_.emplace(bin.low, at_.size());
    }
    std::size_t of(double distance) const {
        auto found = at_.find(bins_.low_edge(static_cast<std::uint64_t>(distance)));
        return found == at_.end() ? at_.size() : found->second;
    }
    std::size_t cold() const { return at_.size(); }
    std::size_t count() const { return at_.size() + 1; }

 private:
    const Binning& bins_;
    std::map<std::uint64_t, std::size_t> at_;
};

using Row = std::vector<double>;  // by bin, cold last

Row suffix_sums(Row row) {
    for (std::size_t b = row.size() - 1; b-- > 0;) row[b] += row[b + 1];
    return row;
}

std::vector<SamplePart> parts_of(const SeenThread& seen, const Places& places) {
    std::vector<SamplePart> parts = sample_parts(seen);
    for (const SeenWindow& window : seen.windows)
        for (auto [value, count] : window.reuse)
            parts[window.sample].near.emplace_back(places.of(value), window.weight * count);
    if (seen.pairs.empty()) return parts;
    const Sample* first = seen.first;
    for (const Seen& one : seen.pairs) {
        auto i = static_cast<std::size_t>(one.sample - first);
        if (one.cold())
            parts[i].far.emplace_back(places.cold(), one.weight);
        else if (one.far || seen.windows.empty())
            for (double reuse : one.reuse)
                (one.far ? parts[i].far : parts[i].near)
                    .emplace_back(places.of(reuse), one.weight / static_cast<double>(one.reuse.size()));
    }
    return parts;
}

void add_sampling(const std::vector<SamplePart>& parts, const Row& all, double total, Row& bins,
                  Row& beyond) {
    std::size_t count = all.size();
    Row far(count);
    double open = 0, seen_open = 0, told = 0;
    for (const SamplePart& part : parts) {
        open += part.open;
        told += !part.far.empty();
        for (auto [bin, mass] : part.far) {
            far[bin] += mass;
            seen_open += mass;
        }
    }
    Row far_beyond = suffix_sums(far), all_beyond = suffix_sums(all), own(count);
    if (seen_open > 0)
        for (std::size_t b = 0; b < count; b++) {
            far[b] /= seen_open;
            far_beyond[b] /= seen_open;
        }
    for (const SamplePart& part : parts) {
        std::ranges::fill(own, 0);
        double own_far = 0;
        for (auto [bin, mass] : part.near) own[bin] += mass;
        for (auto [bin, mass] : part.far) {
            own[bin] += mass;
            own_far += mass;
        }
        double more = part.open - own_far, mass = (part.back + part.open) / total, tail = 0;
        for (std::size_t b = count; b-- > 0;) {
            tail += own[b];
            bins[b] += std::pow(own[b] + far[b] * more - all[b] * mass, 2);
            beyond[b] += std::pow(tail + far_beyond[b] * more - all_beyond[b] * mass, 2);
        }
    }
    // The next sample could have met other code, and stand for as many accesses as any.
    double most = 0, mean = total / static_cast<double>(std::max<std::size_t>(1, parts.size()));
    for (const SamplePart& part : parts) most = std::max(most, part.back + part.open);
    double other = kOther * std::min(most, kMostOther * mean) / kDeviations;
    for (std::size_t b = 0; b < count; b++) {
        double share = all_beyond[b] / total;
        bins[b] += std::pow(other * all[b] / total, 2);
        beyond[b] += std::pow(other * std::max(share, 1 - share), 2);
    }
    bins.back() += std::pow(other, 2);
    // The next long reuse could be in any bin, but not nearer than all of them.
    double one = open / std::max(1.0, told) * kUnseen;
    if (open <= 0) return;
    for (std::size_t b = 0; b < count; b++) {
        if (far[b] > 0) bins[b] += one * one * std::min(1.0, 4 * far[b]);
        if (b + 1 == count && far[b] < 0.25) bins[b] += one * one * (1 - 4 * far[b]);  // or never come
        if (far_beyond[b] < 0.999) beyond[b] += one * one;
    }
}

// Mass of timed reuses within a factor of an edge, and of those that the correction took across it.
void add_systematic(const SeenThread& seen, const Histogram& histogram, Row& bins, Row& beyond) {
    const double factor = distance_factor(seen);
    std::vector<std::pair<double, double>> timed;  // distance, mass
    Row moved(beyond.size());
    auto edge_above = [&](double distance) {  // the first bin that begins beyond
        auto next = std::ranges::upper_bound(
            histogram.bins, distance, {}, [](const Bin& bin) { return static_cast<double>(bin.low); });
        return static_cast<std::size_t>(next - histogram.bins.begin());
    };
    for (const Seen& one : seen.pairs) {
        if (one.unresolved())  // no reuse, or one after the edge
            for (std::size_t b = edge_above(one.uncorrected); b < moved.size(); b++)
                moved[b] += 2 * one.weight;
        if (!one.far || one.cold()) continue;
        double share = one.weight / static_cast<double>(one.reuse.size());
        for (double reuse : one.reuse) timed.emplace_back(reuse, share);
        if (one.exact) continue;
        double now = one.reuse[one.reuse.size() / 2];
        for (std::size_t b = edge_above(now); b < edge_above(one.uncorrected); b++)
            moved[b] += one.weight;
    }
    std::ranges::sort(timed);
    Row sums{0};
    for (auto [distance, mass] : timed) sums.push_back(sums.back() + mass);
    auto below = [&](double distance) {
        auto at = std::ranges::lower_bound(timed, distance, {}, [](auto& one) { return one.first; });
        return sums[static_cast<std::size_t>(at - timed.begin())];
    };
    Row shifted(beyond.size());
    shifted.back() = moved.back() / 2;
    bins.back() += std::pow(shifted.back(), 2);
    for (std::size_t b = 0; b < histogram.bins.size(); b++) {
        auto low = static_cast<double>(histogram.bins[b].low);
        if (low < 1) continue;
        shifted[b] = std::hypot((below(low * factor) - below(low / factor)) / 2, moved[b] / 2);
    }
    for (std::size_t b = 0; b < histogram.bins.size(); b++) {
        beyond[b] += shifted[b] * shifted[b];
        bins[b] += std::pow(shifted[b], 2) + std::pow(shifted[b + 1], 2);
    }
}

}  // namespace

std::vector<SamplePart> sample_parts(const SeenThread& seen) {
    std::vector<SamplePart> parts(seen.masses.size());
    double masses = 0;
    for (const SeenThread::Mass& mass : seen.masses) masses += mass.back + mass.open;
    double scale = masses > 0 ? seen.length / masses : 0;
    for (std::size_t i = 0; i < parts.size(); i++) {
        parts[i].back = seen.masses[i].back * scale;
        parts[i].open = seen.masses[i].open * scale;
    }
    return parts;
}

double sampling_variance(const std::vector<SamplePart>& parts, const std::array<double, 2>& masses) {
    Row bins(2), beyond(2);
    add_sampling(parts, Row(masses.begin(), masses.end()), masses[0] + masses[1], bins, beyond);
    return kDeviations * kDeviations * beyond[1];
}

double distance_factor(const SeenThread& seen) {
    return std::exp(kDeviations * std::hypot(kModelError, std::min(kMostClockError, seen.clock_error)));
}

void ShareErrors::put_into(Histogram& histogram, const Binning& bins) const {
    Places places(histogram, bins);
    Row all, var(places.count()), var_beyond(places.count());
    for (const Bin& bin : histogram.bins) all.push_back(bin.count);
    all.push_back(histogram.cold);
    double total = histogram.total();
    if (total <= 0) return;
    for (const SeenThread* seen : threads_)
        add_sampling(parts_of(*seen, places), all, total, var, var_beyond);
    Row systematic(places.count()), systematic_beyond(places.count());
    for (const SeenThread* seen : threads_)
        add_systematic(*seen, histogram, systematic, systematic_beyond);
    auto error = [](double variance, double squares) {
        return std::sqrt(kDeviations * kDeviations * variance + squares);
    };
    for (std::size_t b = 0; b < histogram.bins.size(); b++) {
        histogram.bins[b].error = error(var[b], systematic[b]);
        histogram.bins[b].beyond_error = error(var_beyond[b], systematic_beyond[b]);
    }
    histogram.cold_error = error(var[places.cold()], systematic[places.cold()]);
}

}  // namespace revisit::watch
