// Sums of what sites and objects have beside their histograms.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "revisit/profile.h"

namespace revisit {

inline void sum_up(LineUse& into, const LineUse& more) {
    const double all = into.fetches + more.fetches;
    if (all > 0) into.error = std::hypot(into.error * into.fetches, more.error * more.fetches) / all;
    into.fetches += more.fetches;
    into.bytes += more.bytes;
    into.parts |= more.parts;
}

// Misses in each of Profile::caches.
inline void sum_up(std::vector<double>& into, const std::vector<double>& more) {
    into.resize(std::max(into.size(), more.size()));
    for (std::size_t i = 0; i < more.size(); ++i) into[i] += more[i];
}

}  // namespace revisit
