// Private caches with a shared last level, from one profile: the private histograms serve every level
// but the last, the shared histogram serves the last. `analyze --simulate A+B+C` holds this against a
// simulation (engines/hierarchy.h).
#pragma once
#include <vector>

#include "revisit/cache_spec.h"
#include "revisit/error.h"
#include "revisit/profile.h"

namespace revisit {

// Shares of all accesses that miss each level. An Error where the profile has one stack only.
Result<std::vector<double>> predict_hierarchy(const Profile& profile,
                                              const std::vector<CacheSpec>& levels);

}  // namespace revisit
