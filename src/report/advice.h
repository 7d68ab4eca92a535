// What to do about the misses in one cache: the worst pairs of use and reuse, first touches,
// invalidations and working sets that almost fit, each with what it would save by the model.
//
// Rules speak only of what the profile shows:
//   interchange  a line reuses its own data after eviction, and most of its accesses miss: no spatial
//                locality either, the innermost loop walks across memory
//   tile         a line reuses its own data after eviction, and lines it fetched were used
//   partition    a line, or two of one loop, reuse data after eviction at addresses without a stride:
//                no order of the loops helps, only another order of what is looked up
//   fuse         two lines of one function use the same data, too far apart
//   reorder      two functions do; the work is in the function where their call paths meet
//   shrink       a working set is at most four times the cache
//   touch less   first touches; no cache helps
//   pad rows     the simulated cache misses more than one with random sets: addresses that collide
//   unshare      writes of other threads invalidate the data
//   nothing      the cache serves 99.5 % of the accesses, or nothing stands out
//
// Places are the user's own: a miss inside the C library's memcpy is its caller's. What rests on too
// few samples is left out (words.h). All views take advice from here.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "revisit/cache.h"
#include "revisit/profile.h"

namespace revisit {

struct Advice {
    std::string rule;
    double misses = 0;
    double share = 0;                  // of all misses
    double gain = 0;                   // misses that it saves at best, by the model
    double rank = 0;                   // misses × share of the time there, where that was sampled
    std::string gain_says;             // what it gains where that is not fewer misses of the cache
    std::string what;                  // the pair, its data and distance
    std::string where;                 // the function to work in; empty when it is not known
    std::vector<std::string> help;     // what fits best first
    std::optional<std::uint32_t> use;  // sites of the worst pair
    std::optional<std::uint32_t> reuse;
};

// At most `most`, those that matter most first; what explains less than a hundredth of the misses, or
// rests on too few samples, is left out. Never empty for a profile that has accesses. `caches` are all
// that the report is about, TLBs among them.
std::vector<Advice> advise(const Profile& profile, const CacheSpec& cache, std::size_t most,
                           const std::vector<CacheSpec>& caches = {});

// "at best −96.7 % of the misses: 27.4 % → 0.9 % of accesses"
std::string gain_text(const Advice& advice, const Profile& profile, const CacheSpec& cache);

}  // namespace revisit
