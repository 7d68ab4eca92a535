// Where the misses come from: the few sites behind most of them.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "revisit/cache.h"
#include "revisit/profile.h"

namespace revisit {

// A site's misses by kind: too far back, never there, taken by another thread's write.
struct SiteMisses {
    const Site* site = nullptr;
    double capacity = 0;
    double cold = 0;
    double coherence = 0;
    double misses = 0;  // those that count
};

// The first `sites` of the ranking cause `covered` (a share, at least `coverage`) of the misses.
struct MissSelection {
    double coverage = 0;
    std::size_t sites = 0;
    double covered = 0;
};

struct LowLocality {
    CacheSpec cache;
    double misses = 0;
    std::vector<SiteMisses> ranking;  // most misses first
    std::vector<MissSelection> selections;
};

struct LowLocalityOptions {
    std::optional<CacheSpec> cache;  // none: chosen so that `miss_share` of the reuses miss
    double miss_share = 0.1;
    bool cold_counts = true;
    std::vector<double> coverages = {0.75, 0.80, 0.90, 0.95};
};

// A fully associative cache that this share of the reuses misses.
CacheSpec cache_for_miss_share(const Profile& profile, double miss_share);

// The profile must outlive the result. Without sites there is nothing to rank: an Error.
Result<LowLocality> low_locality(const Profile& profile, const LowLocalityOptions& options);

// Wall's weight matching: how much of what the reference's best N sites weigh do the estimate's best N
// weigh, both by the reference's weights? Cache and N are the reference's.
struct WeightMatch {
    double coverage = 0;
    std::size_t sites = 0;
    double match = 0;
};
Result<std::vector<WeightMatch>> weight_match(const Profile& reference, const Profile& estimate,
                                              const LowLocalityOptions& options);

std::string low_locality_text(const LowLocality& found, std::uint64_t granularity);
std::string weight_match_text(const std::vector<WeightMatch>& matches);

}  // namespace revisit
