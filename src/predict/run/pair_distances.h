// Distances of reuses by pair of sites, on their way into a profile.
#pragma once

#include <cstdint>
#include <map>
#include <utility>

#include "revisit/profile.h"

namespace revisit::predict {

using PairDistances = std::map<std::pair<std::uint32_t, std::uint32_t>, Histogram>;  // use, reuse

// Pairs that the profile does not have yet.
inline void add_pairs(Profile& to, PairDistances pairs) {
    for (auto& [key, distances] : pairs) {
        Pair p;
        p.use = key.first;
        p.reuse = key.second;
        p.count = distances.total();
        p.distances = std::move(distances);
        to.pairs.push_back(std::move(p));
    }
}

}  // namespace revisit::predict
