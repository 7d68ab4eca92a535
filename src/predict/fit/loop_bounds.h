// What the trip counts of a stream's loops depend on.
#pragma once

#include <set>
#include <vector>

#include "predict/fit/rows.h"

namespace revisit::predict {

struct LoopBounds {
    // By variable (sizes, then loops): how often the iteration count of the reference can multiply by
    // it, which is the number of loops that depend on it.
    std::vector<int> caps;
    std::vector<std::set<std::size_t>> depends;     // by loop: sizes its trip count depends on
    std::vector<std::set<std::size_t>> bounded_by;  // by loop: outer loops it depends on

    // Loops whose variables can meaningfully be compared: they share a size, or one bounds the other.
    bool related(std::size_t i, std::size_t j) const;
};

LoopBounds bounds_of(const Stream& stream, std::size_t sizes);

}  // namespace revisit::predict
