// A true simulation of a hierarchy: private caches per core, then one that all cores share.
//
// What a prediction from one profile of `--model both` is held against: levels 1 to n − 1 from the
// private histogram, the last level from the shared one. An access goes to the first level of its core;
// a miss goes on to the next, and the line is put into every level on the way. A write removes the line
// from the private caches of all other cores; the room it leaves is filled first, as a hole in a
// private stack is.
//
//     core 0 reads L          misses all levels, is in L1 and L2 of core 0 and in L3
//     core 1 writes L         misses L1 and L2 of core 1, hits L3; core 0 loses L
//     core 0 reads L          misses L1 and L2, hits L3
//
// Cost. Ways of a set per level and access; a write also looks at the sets of the other cores.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "revisit/access.h"
#include "revisit/cache_spec.h"
#include "revisit/error.h"
#include "revisit/profile.h"

namespace revisit {

class HierarchySimulator {
 public:
    // "32K:8:64+1M:8:64+32M:16:64": two levels at least, lines of one size, the last one shared.
    static Result<std::vector<CacheSpec>> parse(std::string_view text);
    static Result<HierarchySimulator> create(std::vector<CacheSpec> levels);

    // Blocks of the caches' line size; threads are cores.
    void access(const BlockBatch& batch);

    const std::vector<CacheSpec>& levels() const { return levels_; }
    std::uint64_t accesses() const { return accesses_; }
    std::uint64_t misses(std::size_t level) const { return misses_[level]; }  // of it and all above

 private:
    static constexpr std::uint64_t kFree = ~std::uint64_t{0};

    // A set-associative cache, each set with the most recent line first.
    class Level {
     public:
        explicit Level(const CacheSpec& spec);
        bool access(std::uint64_t line);  // true: it was there
        void remove(std::uint64_t line);

     private:
        std::uint64_t sets_, ways_;
        std::vector<std::uint64_t> lines_;
    };

    explicit HierarchySimulator(std::vector<CacheSpec> levels);
    std::vector<Level>& core(std::uint16_t number);

    std::vector<CacheSpec> levels_;
    std::vector<std::vector<Level>> cores_;  // private levels; empty: not met yet
    Level shared_;
    std::uint64_t accesses_ = 0;
    std::vector<std::uint64_t> misses_;
};

}  // namespace revisit
