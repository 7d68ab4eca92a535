// What a cache makes of a profile.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "revisit/cache_spec.h"
#include "revisit/error.h"
#include "revisit/profile.h"

namespace revisit {

// The data and unified caches of this machine, nearest first; empty when the system does not say.
REVISIT_API std::vector<CacheSpec> host_caches();

// The TLBs of this machine as caches whose lines are pages of 4 KiB and 2 MiB; empty when the processor
// does not say. `typical_tlbs` stands in for them: 64 entries, and 1536 in 12 ways.
REVISIT_API std::vector<CacheSpec> host_tlbs();
REVISIT_API std::vector<CacheSpec> typical_tlbs();

// P(hit | reuse distance): fully associative, a step; set-associative, the binomial of SDCM.
REVISIT_API double hit_probability(const CacheSpec& cache, double distance);
// The mean over a bin, its mass taken as spread evenly.
REVISIT_API double hit_probability(const CacheSpec& cache, const Bin& bin);

struct CachePrediction {
    CacheSpec cache;
    double hit_rate = 0;
    double miss_rate = 0;
    double error = 0;            // 95 % half-width on the rates; 0 = exact profile
    bool simulated = false;      // counted while the program ran, not by the model
    double model_miss_rate = 0;  // where it was simulated, what the model would say
};

// From the histogram in blocks of the cache's line, where the profile has it (Profile::granularities).
// Else a cache holds bytes / line blocks, whatever the profile's granularity: a distance of a profile
// with smaller blocks counts as so many lines, each of its blocks in a line of its own (as Razzak et
// al. take elements). True hit rates want a profile at the cache's line. Where the
// profile has this cache simulated, that is the answer.
REVISIT_API CachePrediction predict_cache(const Profile& profile, const CacheSpec& cache);
// From the distances alone: sets are taken as drawn at random.
REVISIT_API CachePrediction predict_by_model(const Profile& profile, const CacheSpec& cache);

struct CurvePoint {
    double blocks = 0;
    double miss_rate = 0;
};
// Miss ratio of a fully associative cache of every size worth telling apart.
REVISIT_API std::vector<CurvePoint> miss_ratio_curve(const Histogram& reuse);

}  // namespace revisit
