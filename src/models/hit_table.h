// One cache against many histograms.
//
// A profile has up to 10^5 sites and 10^6 pairs, all cut along the same few hundred edges. The hit
// probability of a bin costs a thousand divisions (see cache.cpp), so it is worked out once an edge
// pair and looked up ever after.
#pragma once

#include <cstdint>
#include <unordered_map>

#include "revisit/cache.h"

namespace revisit {

class HitTable {
 public:
    explicit HitTable(CacheSpec cache) : cache_(std::move(cache)) {}

    double hits(const Histogram& histogram);  // expected, out of histogram.total()
    double misses(const Histogram& histogram) { return histogram.total() - hits(histogram); }
    Histogram missed(const Histogram& histogram);  // what of its reuses misses, bin by bin
    const CacheSpec& cache() const { return cache_; }

 private:
    double probability(const Bin& bin);
    struct Edges {
        std::uint64_t low, high;
        bool operator==(const Edges&) const = default;
    };
    struct Hash {
        std::size_t operator()(const Edges& edges) const {
            return (edges.low * 0x9e3779b97f4a7c15u) ^ (edges.high + (edges.low >> 7));
        }
    };
    CacheSpec cache_;
    std::unordered_map<Edges, double, Hash> known_;
};

}  // namespace revisit
