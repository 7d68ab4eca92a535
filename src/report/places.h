// Where the misses are: one table by site, function, file, pair, object or thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "report/terminal.h"
#include "revisit/cache.h"
#include "revisit/error.h"
#include "revisit/profile.h"

namespace revisit {

inline constexpr std::string_view kPlaceKinds[] = {"site", "loop",   "function", "file",
                                                   "pair", "object", "thread",   "line"};

// The `rows` places with the most misses in `cache`, each with its share of all misses, its own miss
// rate and its median distance. An Error when the profile has no such places.
Result<std::string> place_table(const Profile& profile, std::string_view by, const CacheSpec& cache,
                                std::size_t rows);

// "main › solve": who called, outermost first, the nearest few. Recorded by the compiler, a path ends
// with the function itself, which is shown already.
std::string path_of(const Profile& profile, std::uint32_t context, const std::string& itself);

// The same for the cache that the report ranks sites by (focus_cache in findings.h).
Result<std::string> places_of(const Profile& profile, std::string_view by,
                              const std::vector<CacheSpec>& caches);

}  // namespace revisit
