// Named figures of a profile: what gates compare and exports write.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "revisit/cache.h"
#include "revisit/profile.h"

namespace revisit {

enum class Unit : std::uint8_t {
    share,  // 0 … 1, shown in percent
    count,  // accesses, blocks, misses
    bytes,  // distances, as the memory they span
    score,  // S and S_hat
};

struct Figure {
    Unit unit = Unit::count;
    double value = 0;
    double error = 0;  // 95 % half-width; 0 = exact
};

// The cache a name means: a chosen cache by its name ("L2", "L1d" also as "l1"), by its place ("l1" is
// the first chosen, "llc" the last), or a spec such as 32K:8:64.
Result<CacheSpec> cache_named(std::string_view name, const std::vector<CacheSpec>& chosen);

// accesses, distinct, cold_share, invalidated_share, p1 … p99.9, and hit_rate, miss_rate and misses of
// a cache, as in "llc.miss_rate". S and S_hat need two profiles and are not among them.
Result<Figure> figure_of(const Profile& profile, std::string_view name,
                         const std::vector<CacheSpec>& chosen);

// Several runs of the same thing: the mean, with the larger of what sampling and what the spread of the
// runs leave open (Student's t, 95 %).
Figure mean_of(const std::vector<Figure>& runs);

std::string show(const Figure& figure);             // "12.34 %", "1.2 M", "64 KiB"
std::string show_change(Unit unit, double change);  // "+1.20 points", "+3.4 K"

}  // namespace revisit
