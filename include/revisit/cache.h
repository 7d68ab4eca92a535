// What a cache makes of a profile.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "revisit/error.h"
#include "revisit/profile.h"

namespace revisit {

struct CacheSpec {
    std::uint64_t bytes = 0;
    std::uint64_t ways = 0;  // 0 = fully associative
    std::uint64_t line = 64;
    std::string name;  // "L1d", or the spec as written

    std::uint64_t blocks() const { return bytes / line; }
    std::uint64_t associativity() const { return ways == 0 ? blocks() : ways; }
    // SIZE:WAYS:LINE or NAME=SIZE:WAYS:LINE; "full" as WAYS is fully associative.
    static Result<CacheSpec> parse(std::string_view spec);
};

// The data and unified caches of this machine, nearest first; empty when the system does not tell.
std::vector<CacheSpec> host_caches();

// P(hit | reuse distance): fully associative, a step; set-associative, the binomial of SDCM.
double hit_probability(const CacheSpec& cache, double distance);
// The mean over a bin, its mass taken as spread evenly.
double hit_probability(const CacheSpec& cache, const Bin& bin);

struct CachePrediction {
    CacheSpec cache;
    double hit_rate = 0;
    double miss_rate = 0;
    double error = 0;  // 95 % half-width on the rates; 0 = exact profile
};

// A cache holds bytes / line blocks, whatever the profile's granularity: a distance of a profile with
// smaller blocks counts as so many lines, each of its blocks in a line of its own (as Razzak et al. take
// elements). True hit rates want a profile at the cache's line.
CachePrediction predict_cache(const Profile& profile, const CacheSpec& cache);

struct CurvePoint {
    double blocks = 0;
    double miss_rate = 0;
};
// Miss ratio of a fully associative cache of every size worth telling apart.
std::vector<CurvePoint> miss_ratio_curve(const Histogram& reuse);

}  // namespace revisit
