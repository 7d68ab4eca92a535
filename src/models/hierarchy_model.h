// Private caches with a shared last level, from one profile. `analyze --simulate A+B+C` holds this
// against a simulation (engines/hierarchy.h).
//
// Where the profile has sets of such private caches (Profile::filters, engines/private_filters.h), they
// serve all levels: sets like the cache's own for a private one, and what missed there for the shared
// one. Private caches between two sizes lie between the two. Else the private histogram serves every
// level but the last, and the shared histogram the last: right where the shared cache is much larger
// than the private ones together.
#pragma once
#include <vector>

#include "revisit/cache.h"
#include "revisit/cache_spec.h"
#include "revisit/error.h"
#include "revisit/profile.h"

namespace revisit {

// L3, L4 or LLC.
bool has_shared_name(const CacheSpec& cache);

// Whether cores share that cache by its name, and the profile has a stack for all threads (--model
// both).
bool is_shared_level(const Profile& profile, const CacheSpec& cache);

// Shares of all accesses that miss each level. An Error where the profile has one stack only.
Result<std::vector<double>> predict_hierarchy(const Profile& profile,
                                              const std::vector<CacheSpec>& levels);

// One of a machine's caches: a shared one lies behind the largest private one of the others.
CachePrediction predict_level(const Profile& profile, const CacheSpec& cache,
                              const std::vector<CacheSpec>& caches);

}  // namespace revisit
