#include "revisit/histogram.h"

#include <algorithm>
#include <cmath>

namespace revisit {
namespace {

// Distances below this are counted one by one whatever the binning: reuses are mostly short, and a
// plain table is the cheapest counter there is (512 KiB).
constexpr std::uint64_t kDenseDistances = std::uint64_t{1} << 16;

// A bin is never spread over more pieces than this: finer detail would be invented.
constexpr std::uint64_t kMostPieces = std::uint64_t{1} << 16;

// Errors of independent estimates add in squares.
double join_errors(double a, double b) {
    return std::sqrt(a * a + b * b);
}

// Adds a bin that starts no earlier than the last one; overlapping bins become the smallest bin that
// covers both.
void append(std::vector<Bin>& bins, const Bin& bin) {
    if (bins.empty() || bins.back().high <= bin.low) {
        bins.push_back(bin);
        return;
    }
    Bin& last = bins.back();
    last.high = std::max(last.high, bin.high);
    last.count += bin.count;
    last.error = join_errors(last.error, bin.error);
}

// Asked once per histogram, not once per bin: exact profiles have 100 000 bins without errors.
bool has_beyond_errors(const Histogram& h) {
    return std::ranges::any_of(h.bins, [](const Bin& bin) { return bin.beyond_error > 0; });
}

}  // namespace

double Histogram::finite() const {
    double sum = 0;
    for (const Bin& bin : bins) sum += bin.count;
    return sum;
}

double Histogram::beyond_error(double distance) const {
    if (!has_beyond_errors(*this)) return 0;
    auto next = std::ranges::upper_bound(bins, distance, {},
                                         [](const Bin& bin) { return static_cast<double>(bin.low); });
    double after = next == bins.end() ? join_errors(cold_error, invalidated_error) : next->beyond_error;
    if (next == bins.begin() || (next - 1)->high <= distance) return after;
    const Bin& here = *(next - 1);
    return static_cast<double>(here.low) == distance ? here.beyond_error
                                                     : std::max(here.beyond_error, after);
}

void Histogram::merge(const Histogram& other) {
    const bool errors = has_beyond_errors(*this) || has_beyond_errors(other);
    const Histogram before = errors ? *this : Histogram{};
    cold += other.cold;
    invalidated += other.invalidated;
    cold_error = join_errors(cold_error, other.cold_error);
    invalidated_error = join_errors(invalidated_error, other.invalidated_error);
    std::vector<Bin> all;
    all.reserve(bins.size() + other.bins.size());
    std::merge(bins.begin(), bins.end(), other.bins.begin(), other.bins.end(), std::back_inserter(all),
               [](const Bin& a, const Bin& b) { return a.low < b.low; });
    bins.clear();
    for (const Bin& bin : all) append(bins, bin);
    if (!errors) return;
    for (Bin& bin : bins) {
        auto low = static_cast<double>(bin.low);
        bin.beyond_error = join_errors(before.beyond_error(low), other.beyond_error(low));
    }
}

Histogram Histogram::rebin(const Binning& to) const {
    Histogram out = *this;
    out.bins.clear();
    for (const Bin& bin : bins) {
        const std::uint64_t width = bin.high - bin.low;
        for (std::uint64_t at = bin.low; at < bin.high;) {
            std::uint64_t low = to.low_edge(at);
            std::uint64_t high = to.high_edge(low);
            if (width / std::max<std::uint64_t>(1, high - low) > kMostPieces) low = at, high = bin.high;
            std::uint64_t until = std::min(high, bin.high);
            double share =
                until - at == width ? 1 : static_cast<double>(until - at) / static_cast<double>(width);
            append(out.bins, {low, high, bin.count * share, bin.error * share, 0});
            at = until;
        }
    }
    if (!has_beyond_errors(*this)) return out;
    // What may lie in one bin or the next is no error of a bin that holds both: it is the difference of
    // what lies beyond its edges.
    for (Bin& bin : out.bins) {
        bin.beyond_error = beyond_error(static_cast<double>(bin.low));
        bin.error = std::min(
            bin.error, join_errors(bin.beyond_error, beyond_error(static_cast<double>(bin.high))));
    }
    return out;
}

double Histogram::percentile(double share) const {
    double wanted = share * finite();
    double seen = 0;
    for (const Bin& bin : bins) {
        if (bin.count > 0 && seen + bin.count >= wanted) {
            double inside = std::clamp((wanted - seen) / bin.count, 0.0, 1.0);
            return static_cast<double>(bin.low) + inside * static_cast<double>(bin.high - 1 - bin.low);
        }
        seen += bin.count;
    }
    return bins.empty() ? 0 : static_cast<double>(bins.back().high - 1);
}

DistanceCounter::DistanceCounter(Binning binning) : binning_(binning), dense_(kDenseDistances) {
    if (binning_.kind() == Binning::Kind::log2 && binning_.parameter() <= 1024)
        slots_.resize(binning_.index(~std::uint64_t{0}) + 1);
}

void DistanceCounter::add_large(std::uint64_t distance, std::uint64_t count) {
    if (!slots_.empty())
        slots_[binning_.index(distance)] += count;
    else
        sparse_[binning_.low_edge(distance)] += count;
}

void DistanceCounter::merge(const DistanceCounter& other) {
    for (std::size_t i = 0; i < dense_.size(); ++i) dense_[i] += other.dense_[i];
    for (std::size_t i = 0; i < slots_.size(); ++i) slots_[i] += other.slots_[i];
    for (auto [low, count] : other.sparse_) sparse_[low] += count;
    cold_ += other.cold_;
    invalidated_ += other.invalidated_;
}

Histogram DistanceCounter::histogram() const {
    Histogram out;
    out.cold = static_cast<double>(cold_);
    out.invalidated = static_cast<double>(invalidated_);
    // Gathered by low edge: the dense table's last bin and the first slot may be the same bin.
    std::map<std::uint64_t, std::uint64_t> by_edge = sparse_;
    for (std::uint64_t d = 0; d < dense_.size(); ++d)
        if (dense_[d] != 0) by_edge[binning_.low_edge(d)] += dense_[d];
    if (!slots_.empty()) {
        constexpr std::uint64_t kTop = ~std::uint64_t{0};
        for (std::uint64_t low = binning_.low_edge(kDenseDistances); low < kTop;
             low = binning_.high_edge(low))
            if (std::uint64_t count = slots_[binning_.index(low)]; count != 0) by_edge[low] += count;
    }
    out.bins.reserve(by_edge.size());
    for (auto [low, count] : by_edge)
        out.bins.push_back({low, binning_.high_edge(low), static_cast<double>(count), 0});
    return out;
}

}  // namespace revisit
