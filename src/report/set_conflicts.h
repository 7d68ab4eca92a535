// Where a simulated cache differs from what reuse distances predict: which sets, and which data.
#pragma once

#include <string>

#include "revisit/cache.h"
#include "revisit/profile.h"

namespace revisit {

// "more conflicts than in random sets: 83 % of the misses are in sets 0–7 of 64, most by heap main
// (matmul.c:76)". Empty where the cache was not simulated, or the two agree within half a point.
std::string conflicts_text(const Profile& profile, const CachePrediction& rates);

}  // namespace revisit
