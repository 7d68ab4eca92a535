// What a profile says, worked out once for every view: the terminal prints it, `report --json` writes
// it, and the HTML page carries the same JSON and draws it. The page itself computes only what its
// sliders change.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "report/advice.h"
#include "report/knees.h"
#include "report/pages.h"
#include "revisit/cache.h"
#include "revisit/profile.h"

namespace revisit {

// One cache: its rates, and what to do about its misses.
struct LevelFindings {
    CachePrediction rates;
    std::string conflicts;  // where simulation and model differ (set_conflicts.h)
    std::vector<Advice> advice;
};

// One of the sites with the most misses in the focus cache.
struct SiteFindings {
    const Site* site = nullptr;
    double misses = 0;     // with the sets of the cache where those are known
    double conflicts = 0;  // … of these, what random sets would not have
    double share = 0;      // of all sites' misses
    double miss_rate = 0;  // of its own accesses
    std::string reason;    // why it misses; empty: not known
    bool few_samples = false;
    std::string line_use;  // "16 of 64 bytes" of what it fetches
};

struct Findings {
    std::string lead;  // the first sentence of every view
    bool few_samples = false;
    std::vector<std::pair<double, double>> percentiles;  // (50, blocks), …
    std::vector<Knee> working_sets;                      // the largest drop first
    std::optional<Knee> main_working_set;                // beyond what any cache holds
    std::vector<LevelFindings> levels;                   // caches whose lines are the profile's blocks
    std::string left_out;                                // why other caches are not among them
    std::optional<CacheSpec> focus;                      // sites are ranked by their misses in it
    std::vector<SiteFindings> sites;
    PageFindings pages;                                         // TLBs, where pages were counted
    std::string line_use;                                       // of the whole run, in a sentence
    std::vector<std::pair<std::string, std::string>> measured;  // how: method, samples, model, …
};

// The profile must outlive the result.
Findings findings_of(const Profile& profile, const std::vector<CacheSpec>& caches);

std::string findings_json(const Findings& findings, const Profile& profile);  // revisit/report@1

// Caches whose lines are as large as the profile's blocks: of others, the profile has no hit rates.
std::vector<CacheSpec> comparable_caches(const Profile& profile, const std::vector<CacheSpec>& caches);

// The cache to rank places by: the second level, because beyond the first is where misses cost; where
// no cache is comparable, LRU of the same size in the profile's blocks. None without caches.
std::optional<CacheSpec> focus_cache(const Profile& profile, const std::vector<CacheSpec>& caches);

}  // namespace revisit
