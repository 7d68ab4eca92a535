#include "core/common_bins.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace revisit {
namespace {

bool starts_before(const Bin& a, const Bin& b) {
    return a.low != b.low ? a.low < b.low : a.high > b.high;
}

// The first bin of `bins` that ends after `distance`.
auto bin_after(const std::vector<Bin>& bins, std::uint64_t distance) {
    return std::upper_bound(bins.begin(), bins.end(), distance,
                            [](std::uint64_t at, const Bin& bin) { return at < bin.high; });
}

}  // namespace

void CommonBins::add(const Histogram& histogram) {
    std::vector<Bin> all;
    all.reserve(bins_.size() + histogram.bins.size());
    std::merge(bins_.begin(), bins_.end(), histogram.bins.begin(), histogram.bins.end(),
               std::back_inserter(all), starts_before);
    bins_.clear();
    for (const Bin& bin : all) {
        if (bins_.empty() || bins_.back().high <= bin.low) {
            bins_.push_back({bin.low, bin.high, 0, 0});
        } else if (bin.high > bins_.back().high) {  // it starts inside the last one and ends beyond it
            if (!first_clash_) first_clash_ = Clash{bins_.back(), bin};
            bins_.back().high = bin.high;
        }
    }
}

std::string CommonBins::clash() const {
    if (!first_clash_) return {};
    const auto& [a, b] = *first_clash_;
    return fmt::format("[{}, {}) and [{}, {})", a.low, a.high, b.low, b.high);
}

Histogram CommonBins::fold(const Histogram& histogram) const {
    Histogram out = histogram;
    out.bins.clear();
    for (const Bin& bin : histogram.bins) {
        auto common = bin_after(bins_, bin.low);
        bool inside = common != bins_.end() && common->low <= bin.low && bin.high <= common->high;
        std::uint64_t low = inside ? common->low : bin.low, high = inside ? common->high : bin.high;
        if (out.bins.empty() || out.bins.back().low != low) {
            out.bins.push_back({low, high, bin.count, bin.error});
            continue;
        }
        out.bins.back().count += bin.count;
        out.bins.back().error = std::hypot(out.bins.back().error, bin.error);
    }
    return out;
}

bool CommonBins::changes(const Histogram& histogram) const {
    return std::any_of(histogram.bins.begin(), histogram.bins.end(), [&](const Bin& bin) {
        auto common = bin_after(bins_, bin.low);
        return common != bins_.end() && common->low <= bin.low && bin.high <= common->high &&
               (common->low != bin.low || common->high != bin.high);
    });
}

}  // namespace revisit
