// Where bins begin and end, known only by the bin of a distance.
#pragma once

#include <cstdint>
#include <functional>
#include <unordered_map>

namespace revisit::predict {

inline constexpr std::int64_t kMostDistance = std::int64_t{1} << 59;  // larger ones are not reported

// The bin of a distance, rising with it; empty = every distance on its own.
using BinOf = std::function<std::uint64_t(std::uint64_t distance)>;

// The distances that share a bin with another, found once a bin: bins are asked for far more often than
// there are any.
class BinEdges {
 public:
    explicit BinEdges(const BinOf& bin) : bin_(bin) {}

    struct Edges {
        std::int64_t first, last;
    };
    const Edges& around(std::int64_t distance) {
        if (distance >= latest_.first && distance <= latest_.last) return latest_;
        const auto bin = bin_(static_cast<std::uint64_t>(distance));
        const auto [known, is_new] = known_.try_emplace(bin);
        if (is_new) known->second = {reach(distance, -1, bin), reach(distance, 1, bin)};
        return latest_ = known->second;
    }

 private:
    std::int64_t reach(std::int64_t from, std::int64_t direction, std::uint64_t bin) const {
        const std::int64_t most = direction < 0 ? from : kMostDistance - from;
        std::int64_t in = 0, out = most + 1;
        const auto same = [&](std::int64_t steps) {
            return bin_(static_cast<std::uint64_t>(from + direction * steps)) == bin;
        };
        for (std::int64_t step = 1; in + step < out; step *= 2) {
            if (!same(in + step)) {
                out = in + step;
                break;
            }
            in += step;
        }
        while (out - in > 1) {
            const auto middle = in + (out - in) / 2;
            (same(middle) ? in : out) = middle;
        }
        return from + direction * in;
    }

    const BinOf& bin_;
    Edges latest_{0, -1};
    std::unordered_map<std::uint64_t, Edges> known_;
};

}  // namespace revisit::predict
