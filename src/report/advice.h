// What to do about the worst pairs: who used the data last, who comes back for it, how much is touched
// in between, where the two call paths meet, and what usually helps there.
//
// Rules speak only of what the profile shows. A place that comes back for its own data sweeps more than
// fits: tile, interchange, transpose. Two places of one function: fuse. Two functions: change the order
// of work where they meet. The page (web/src/advice.ts) says the same at more length.
#pragma once

#include <string>
#include <vector>

#include "revisit/cache.h"
#include "revisit/profile.h"

namespace revisit {

struct Advice {
    double share = 0;   // of all misses
    std::string what;   // the pair, its data and distance
    std::string where;  // the least common ancestor; empty when no call paths are known
    std::string help;
};

// At most `most`, the worst first; those that explain less than a hundredth of the misses are left out.
std::vector<Advice> advise(const Profile& profile, const CacheSpec& cache, std::size_t most);

}  // namespace revisit
