#include "models/distance_spread.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

namespace revisit {
namespace {

constexpr double kMostCells = 1 << 22;           // 32 MiB of counts
constexpr double kHighestDistance = 0x1p62;      // far above any distance, far below overflow
constexpr double kReach = 7;                     // a Normal ends this many deviations out
constexpr std::uint64_t kMostEvaluations = 128;  // of the Normal's integral, for one bar

Binning grid_for(const Binning& bins, double top) {
    if (bins.kind() == Binning::Kind::log2) return bins;
    double width = static_cast<double>(bins.parameter());
    return top / width <= kMostCells ? bins : Binning::log2(4096);
}

// The integral of the Normal's distribution function: z Phi(z) + phi(z).
double normal_ramp(double z) {
    if (z < -8) return 0;
    if (z > 8) return z;
    double density = std::exp(-z * z / 2) / std::sqrt(2 * std::numbers::pi);
    return z * 0.5 * std::erfc(-z / std::numbers::sqrt2) + density;
}

double normal_share(double z) {
    return 0.5 * std::erfc(-z / std::numbers::sqrt2);
}

}  // namespace

DistanceSpread::DistanceSpread(const Binning& bins, double distinct)
    : wanted_(bins),
      grid_(grid_for(bins, distinct > 0 ? distinct : kHighestDistance)),
      top_(distinct > 0 ? std::min(std::max(1.0, std::ceil(distinct)), kHighestDistance)
                        : kHighestDistance) {}

double& DistanceSpread::cell(std::uint64_t distance) {
    std::uint64_t index = grid_.index(distance);
    if (index >= counts_.size()) counts_.resize(index + 1);
    return counts_[index];
}

void DistanceSpread::add_even(double low, double high, double count) {
    if (!(count > 0)) return;
    low = std::clamp(low, 0.0, top_ - 1);
    high = std::clamp(high, low, top_);
    // Sums of many shares miss a whole number by a rounding error; a distance must not fall with it.
    double slack = 1e-9 * std::max(1.0, low);
    if (double whole = std::round(low); std::fabs(whole - low) < slack) low = whole;
    if (double whole = std::round(high); std::fabs(whole - high) < slack) high = whole;
    if (high - low < slack)
        cell(static_cast<std::uint64_t>(low)) += count;
    else
        add_piece(low, high, count);
}

void DistanceSpread::add_piece(double low, double high, double count) {
    const double density = count / (high - low);
    std::uint64_t bin = grid_.low_edge(static_cast<std::uint64_t>(low));
    for (double at = low; at < high;) {
        std::uint64_t next = grid_.high_edge(bin);
        double until = std::min(high, static_cast<double>(next));
        cell(bin) += density * (until - at);
        at = until;
        bin = next;
    }
}

void DistanceSpread::add_normal(double low, double high, double deviation, double count) {
    if (!(count > 0)) return;
    if (!(deviation > 1e-6 * std::max(1.0, low))) return add_even(low, high, count);
    low = std::clamp(low, 0.0, top_ - 1);
    high = std::clamp(high, low, top_);
    const bool point = high - low < 1e-3 * deviation;
    auto share_below = [&](double x) {
        if (point) return normal_share((x - (low + high) / 2) / deviation);
        return deviation / (high - low) *
               (normal_ramp((x - low) / deviation) - normal_ramp((x - high) / deviation));
    };
    double begin = std::max(0.0, std::floor(low - kReach * deviation));
    double end = std::min(top_, std::ceil(high + kReach * deviation) + 1);
    std::uint64_t bin = grid_.low_edge(static_cast<std::uint64_t>(begin));
    std::uint64_t bins_inside = grid_.index(static_cast<std::uint64_t>(end)) - grid_.index(bin) + 1;
    std::uint64_t stride = (bins_inside + kMostEvaluations - 1) / kMostEvaluations;
    // What lies outside [begin, end) is folded in by scaling.
    double below = share_below(begin);
    double scale = count / (share_below(end) - below);
    if (!std::isfinite(scale)) return add_even(low, high, count);
    for (double at = begin; at < end;) {
        std::uint64_t next = grid_.high_edge(bin);
        for (std::uint64_t i = 1; i < stride && static_cast<double>(next) < end; ++i)
            next = grid_.high_edge(next);
        double until = std::min(end, static_cast<double>(next));
        double share = share_below(until);
        if (share > below) {
            if (stride == 1)
                cell(bin) += (share - below) * scale;
            else
                add_piece(at, until, (share - below) * scale);
            below = share;
        }
        at = until;
        bin = next;
    }
}

std::vector<Bin> DistanceSpread::bins(double finite) const {
    double sum = 0;
    for (double count : counts_) sum += count;
    Histogram out;
    const double scale = sum > 0 ? finite / sum : 0;
    for (std::uint64_t low = 0;;) {
        std::uint64_t index = grid_.index(low);
        if (index >= counts_.size()) break;
        std::uint64_t high = grid_.high_edge(low);
        if (counts_[index] > 0) out.bins.push_back({low, high, counts_[index] * scale, 0});
        if (high <= low || high == ~std::uint64_t{0}) break;
        low = high;
    }
    if (grid_ == wanted_) return out.bins;
    // Cutting spreads a bin over its pieces: none of them may lie where no distance can.
    if (!out.bins.empty())
        out.bins.back().high = std::min(out.bins.back().high, static_cast<std::uint64_t>(top_));
    return out.rebin(wanted_).bins;
}

}  // namespace revisit
