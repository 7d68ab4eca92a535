// Private caches with a shared last level, from one profile: the private histograms serve every level
// but the last, the shared histogram serves the last. `analyze --simulate A+B+C` holds this against a
// simulation (engines/hierarchy.h).
#pragma once
#include <vector>

#include "revisit/cache_spec.h"
#include "revisit/error.h"
#include "revisit/profile.h"

namespace revisit {

// Whether cores share that cache, and the profile has a stack for all threads (--model both): L3, L4 or
// LLC by its name.
bool is_shared_level(const Profile& profile, const CacheSpec& cache);

// Shares of all accesses that miss each level. An Error where the profile has one stack only.
Result<std::vector<double>> predict_hierarchy(const Profile& profile,
                                              const std::vector<CacheSpec>& levels);

}  // namespace revisit
