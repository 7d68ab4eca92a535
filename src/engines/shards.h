// Spatially hashed sampling; shards.cpp explains how it works.
#pragma once

#include <array>
#include <cstdint>
#include <map>

#include "revisit/engine.h"

namespace revisit {

// A weighted histogram that knows how far it may be off: the sampled blocks are dealt into groups by
// other bits of their hash, and what the groups differ by is what another sample would differ by.
class GroupedHistogram {
 public:
    static constexpr unsigned kGroups = 32;

    void add(std::uint64_t low_edge, unsigned group, double weight) {
        bins_[low_edge][group] += weight;
    }
    void add_cold(unsigned group, double weight) { cold_[group] += weight; }
    // SHARDS-adj: the hash may take more or fewer accesses than its rate promises, mostly because of a
    // few hot blocks, whose reuses are short. What `total` has over the sum goes to the shortest
    // distances.
    Histogram histogram(const Binning& binning, double total) const;

 private:
    using Shares = std::array<double, kGroups>;
    std::map<std::uint64_t, Shares> bins_;
    Shares cold_{};
};

}  // namespace revisit
