// Misses of this machine's caches, with the sets that lines were seen to lie in.
//
// Problem. Miss rates come from reuse distances, and sets are then taken as drawn at random
// (models/cache.cpp). Rows that are a power of two long put a column into a few sets: matrix multiply
// of 1024 x 1024 misses L2 in 50 % of its accesses, where random sets give 6 %. Idea. Windows see
// addresses (samples/window_sets.h). A use that came back in its window missed iff its set had been
// filled, which is counted. Of a use that was open at the window's end, k lines of its set had followed
// among d; its reuse distance D says how many more came. Where the lines of a window crowd in some
// sets, the use's set goes on to have as many, or as few, for three times the lines that were seen; all
// others fall into sets at random: P(miss) = P(k + crowding + Binomial(rest, 1 / sets) >= ways). Where
// they fill sets evenly, as arrays do that are walked line by line, they go on to do so, and a cache
// holds as many lines as it has. What a cache misses more or less than the same samples have by the
// model goes on top of the model's figure. Where that is more than its error and half a point, or known
// twice as well as the model's, the cache is in Profile::caches as those that exact profiles simulate.
// Example. 16 ways, k = 18 of d = 300: missed, whatever D. k = 1 of 300, D = 1300, 2048 sets: 1000 more
// in random sets are half a line, hit. Limits. Addresses are virtual, as where sets are simulated;
// crowding that begins beyond the window is not seen. Cost. O(samples).
#pragma once

#include <map>
#include <vector>

#include "revisit/cache.h"
#include "watch/estimate/seen.h"

namespace revisit::watch {

class SetMisses {
 public:
    explicit SetMisses(const std::vector<CacheSpec>& caches);

    // `near_scale`: what uses that came back weigh more than the thread's own.
    void add(const SeenThread& seen, double near_scale);
    // Into caches and sites of a profile that is by labels, and of 1 / `divided` of what was added.
    void put_into(Profile& profile, double divided) const;

 private:
    struct OfCache {
        CacheSpec spec;
        double hits = 0, misses = 0, by_model = 0;  // by what was seen of sets; misses by the model
        double squares = 0;                         // of the error, 95 %
        std::map<std::uint32_t, double> more;       // misses than by the model, by label
        std::vector<double> random_misses;          // P(miss) at small distances, by the model
    };
    void add(OfCache& to, std::size_t index, const SeenThread& seen, double near_scale);
    std::vector<OfCache> caches_;
};

}  // namespace revisit::watch
