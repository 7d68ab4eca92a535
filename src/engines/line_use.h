// How many bytes of the lines that a cache fetches are used before they leave it.
//
// Problem. A program that reads 8 bytes of every 64-byte line moves eight times the data it needs: a
// struct with cold fields, a column of a matrix, a sparse gather. Miss rates do not show it.
// Idea. Run a true set-associative LRU cache beside the engine; every line in it has a bit for each
// part of it (a byte, in lines of 64) that was touched since the line came, and the site that fetched
// it. When the line is evicted, and at the end, its bits are counted for that site:
//
//     site 1 reads bytes 0…7 of line L      a miss: L is fetched by site 1
//     site 2 reads bytes 8…15 of line L     a hit: 16 bytes are used
//     L is evicted                          site 1: one fetch, 16 of 64 bytes used
//
// Regular streams. A fetch on a constant stride (as far from the site's last fetch as one of the two
// before it was from the one before; a struct of 96 bytes alternates between one line and two) is one
// that a prefetcher hides. Counted at the same place: a walk 0, 1, 2, 3 is regular, a list's is not.
//
// Cost. Memory of the cache's lines, 24 bytes each, whatever the program touches. The line found last
// is first in its set, so most accesses look at one entry; docs/report.md has the measured cost.
// Source. The figure that ThreadSpotter calls fetch utilization (Berg, Hagersten 2005 gather it from
// samples).
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "revisit/access.h"
#include "revisit/cache_spec.h"
#include "revisit/error.h"
#include "revisit/profile.h"

namespace revisit {

class LineUseTally {
 public:
    static Result<LineUseTally> create(const CacheSpec& spec);

    // Blocks of the cache's line size with their parts; sites may be missing.
    void add(const BlockBatch& batch);
    // Into Profile::line_use and the sites of the profile, by id; lines still in the cache leave it.
    void fill(Profile& profile);

 private:
    struct Entry {
        std::uint64_t line = 0;
        std::uint64_t parts = 0;  // 0: free
        std::uint32_t site = 0;
    };
    struct Sum {
        std::uint64_t fetches = 0, parts = 0;
        std::uint64_t which = 0;  // parts used in some fetch
        std::uint64_t last = 0, steps[2] = {};
        std::uint64_t fetched = 0, regular = 0;
    };

    explicit LineUseTally(const CacheSpec& spec);
    Sum& sum_of(std::uint32_t site);
    void fetch(const Entry& entry);
    void leave(const Entry& entry);

    CacheSpec spec_;
    std::uint64_t sets_, ways_;
    std::uint64_t mask_;          // sets - 1 where that is a power of two, else 0
    std::vector<Entry> entries_;  // of each set, the most recent first
    std::vector<Sum> sums_;       // by site where its id is small
    std::unordered_map<std::uint32_t, Sum> more_sums_;
};

}  // namespace revisit
