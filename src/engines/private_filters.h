// What a shared cache sees behind private ones.
//
// Problem. A shared cache gets only the accesses that miss the private caches, and orders its lines by
// these alone. The stack that all threads share has every access: where the private caches together are
// as large as the shared one, it predicts up to 30 points of miss rate too many or too few.
// Idea. Keep some sets of private caches of a few sizes for every core, true LRU sets with holes where
// another core's write took a line. What misses there goes to some sets of the shared caches behind,
// one per number of sets, each deep enough for any associativity:
//
//     core 0, L2 set 5:  a b c …  ┐ what is deeper than the ways,   shared set 5 of  512:  a x d …
//     core 1, L2 set 5:  x d e …  ┘ first touches, invalidated  ─▶  shared set 5 of 1024:  a d f …
//
// The depth at which a reuse finds its line decides for every number of ways. Sets are real ones, not
// sets drawn at random, so an array that just fits is seen to fit. Which sets are followed is random.
// The private model knows which accesses are first touches or invalidated, and which thread lost what.
// Cost. Five sizes with 32 sets each are an eighth of the accesses that are not to the thread's last
// line again, on the thread that counts the shared stack: `analyze --model both` of
// examples/multicore/mesh takes 10 % longer on 2 cores (Neoverse V1). Source. All-associativity
// simulation: Mattson et al. 1970, Hill and Smith 1989; sampled sets: Puzak 1985. The private filter in
// front is ours. docs/sharing.md has the measured error.
#pragma once

#include <cstdint>
#include <vector>

#include "engines/simd.h"
#include "revisit/cache_spec.h"
#include "revisit/profile.h"

namespace revisit {

class PrivateFilters {
 public:
    // Common sizes of private caches, and `asked` of these that have lines of `granularity` bytes.
    PrivateFilters(const std::vector<CacheSpec>& asked, std::uint64_t granularity, std::uint64_t seed);
    // Followed without being asked for.
    static bool is_common(const CacheSpec& cache);

    enum class Kind : std::uint8_t {
        first,   // nobody had the block
        missed,  // this thread had not, or lost it to a write
        reuse,
        remove,  // another thread's write takes it from this one
    };
    struct Event {
        std::uint64_t block;
        std::uint32_t thread;  // counted from 0
        Kind kind;
    };
    // Whether events of this block count. An access to the block that its thread used last changes
    // nothing and may be left out.
    REVISIT_INLINE bool follows(std::uint64_t block) const {
        return follows_any_ || masks_[block % kMasks] != 0;
    }
    void add(const Event& event);
    // Into Profile::filters; nothing where there were too many threads.
    void fill(Profile& profile) const;

 private:
    static constexpr std::uint64_t kMasks = 8192;
    static constexpr unsigned kNumbersOfSets = 8;  // of shared caches, doubling from the private one's

    // LRU sets of one depth: tags, most recent first; 0 is a hole or a place never used.
    using Tags = std::vector<std::uint32_t>;

    struct Filter {
        std::uint64_t sets = 0;
        std::uint32_t ways = 0, depth = 0, followed = 0;  // followed: sets
        bool masked = false;                              // found through masks_
        std::vector<std::uint32_t> slot;                  // of a set, from 1; 0: not followed
        std::vector<std::uint32_t> offset;                // by slot: which shared sets behind it
        std::vector<Tags> own;                            // by thread, `followed` sets
        Tags shared[kNumbersOfSets];
        std::vector<std::uint64_t> depths;
        std::vector<std::uint64_t> shared_depths[kNumbersOfSets];
    };
    void add_filter(std::uint64_t sets, std::uint32_t ways, std::uint32_t most, std::uint64_t& random);
    void add_to(Filter& filter, const Event& event);

    std::vector<Filter> filters_;
    std::vector<std::uint8_t> masks_;  // bit i: filter i follows blocks of this remainder
    bool follows_any_ = false;
    bool given_up_ = false;
};

}  // namespace revisit
