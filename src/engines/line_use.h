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
    };

    explicit LineUseTally(const CacheSpec& spec);
    void leave(const Entry& entry);

    CacheSpec spec_;
    std::uint64_t sets_, ways_;
    std::vector<Entry> entries_;  // of each set, the most recent first
    std::vector<Sum> sums_;       // by site where its id is small
    std::unordered_map<std::uint32_t, Sum> more_sums_;
};

}  // namespace revisit
