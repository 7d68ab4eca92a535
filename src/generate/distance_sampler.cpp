#include "generate/distance_sampler.h"

#include <algorithm>
#include <bit>
#include <numeric>

namespace revisit {

DistanceSampler::DistanceSampler(const Histogram& reuse, std::uint64_t distinct) {
    std::iota(order_.begin(), order_.end(), std::uint16_t{0});
    double total = 0, sum = 0;
    for (const Bin& bin : reuse.bins) total += std::max(0.0, bin.count);
    for (const Bin& bin : reuse.bins) {
        if (!(bin.count > 0)) continue;
        std::uint64_t high = std::min(bin.high, distinct);
        double share = bin.count / total;
        sum += share;
        steps_.push_back({sum, static_cast<double>(high - bin.low) / share, bin.low, high - 1});
    }
    steps_.back().until = 2;  // whatever rounding left
    start_.resize(std::bit_ceil(steps_.size() * 2));
    std::uint32_t step = 0;
    for (std::size_t i = 0; i < start_.size(); ++i) {
        double u = static_cast<double>(i) / static_cast<double>(start_.size());
        while (steps_[step].until <= u) ++step;
        start_[i] = step;
    }
}

std::uint64_t DistanceSampler::distance_at(double u) const {
    const Step* step =
        &steps_[start_[static_cast<std::size_t>(u * static_cast<double>(start_.size()))]];
    while (u >= step->until) ++step;
    double from = step == steps_.data() ? 0 : step[-1].until;
    auto offset = static_cast<std::uint64_t>((u - from) * step->density);
    return std::min(step->low + offset, step->last);
}

void DistanceSampler::draw(Random& random, std::span<std::uint64_t, kRound> distances) {
    for (std::uint32_t i = 0; i < kRound; ++i) {
        std::uint64_t bits = random.next();
        auto other = i + static_cast<std::uint32_t>((bits >> 40) * (kRound - i) >> 24);
        std::swap(order_[i], order_[other]);
        double inside = static_cast<double>(bits & 0xff'ffff'ffff) * 0x1p-40;
        // Parts in their order, to places in random order: the search then walks along its tables.
        distances[order_[i]] = distance_at((i + inside) * (1.0 / kRound));
    }
}

}  // namespace revisit
