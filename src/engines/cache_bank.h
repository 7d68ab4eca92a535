// The caches of one machine, simulated beside an engine.
//
// Problem. A reuse distance does not know sets. The model that takes sets as drawn at random is off by
// up to 1.5 points of miss rate on regular programs (matmul 200 in 32K:8:64: 7.8 %, simulated 6.3 %).
// Idea. Simulate the few caches that the reader has, each as if it saw every access, as in the model.
// Where the sets of one divide those of the next, they form a chain. A hit of the first is a hit of all
// and changes nothing in the others; what misses one is looked up in the next:
//
//     32 KiB, 64 sets ──misses──▶ 1 MiB, 1024 sets ──misses──▶ 32 MiB, 32768 sets
//     recent_lines.h              what each has beyond the last: older_lines.h
//
// Accesses pass a level some thousand at a time, so that its sets can be prefetched. Caches that do not
// divide each other are several chains.
//
// Where a cache misses more than random sets would, the reader wants to know which sets are crowded and
// which data is in them: misses are counted per set, and per site (explained as data afterwards).
//
// Where there are processors enough, parts work side by side, each for a residue of lines: with r
// parts, set s of a cache of part p is set r s + p of the whole, and it knows line r n + p as n. They
// see the lines that dealt_lines.h leaves of a batch.
//
// Cost. About 1 ns per access that hits the first, and 10 ns per miss and level (Xeon, 2.6 GHz,
// shared): matmul 300 takes 2.6 ns per access and three caches, where moving lines took 10 to 12.
// Programs that miss the first cache every other access cost as much as that (matmul 400 and 512).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "engines/dealt_lines.h"
#include "engines/older_lines.h"
#include "engines/recent_lines.h"
#include "revisit/engine.h"

namespace revisit {

class CacheBank {
 public:
    // Those of `caches` that have lines of `line` bytes, sets, and at most 64 ways; perhaps none.
    CacheBank(const std::vector<CacheSpec>& caches, std::uint64_t line);

    bool empty() const { return caches_.empty(); }
    // Accesses that are known to hit all caches and to change nothing.
    void add_hits(std::uint64_t accesses) { accesses_ += accesses; }
    // Sites may be missing. They are those of the lines, or with `at`, each line's is at that place.
    void access(std::span<const std::uint64_t> lines, std::span<const std::uint32_t> sites = {},
                std::span<const std::uint32_t> at = {});
    std::vector<SimulatedCache> results() const;
    // Misses of a site in each of results().
    std::vector<double> misses_of(std::uint32_t site) const;

    // All that the parts of a bank counted, as one bank has it. They are used up.
    static CacheBank joined(std::vector<CacheBank> parts, const std::vector<CacheSpec>& caches,
                            std::uint64_t line);

 private:
    struct Cache {
        CacheSpec spec;
        std::uint64_t sets = 0;
        std::size_t ways = 0;
        std::uint64_t misses = 0;
        std::vector<std::uint64_t> set_misses, site_misses;
    };
    // What a cache has beyond the one before it.
    struct Level {
        OlderLines lines;
        std::size_t cache;
    };
    // Caches each of whose sets divide those of the next.
    struct Chain {
        RecentLines lines;
        std::optional<std::size_t> first_cache;  // where those are its lines
        std::vector<Level> levels;
    };
    void add_chain(std::span<const std::size_t> caches);
    struct Sites {
        std::span<const std::uint32_t> sites, at;
    };
    void access_some(std::span<const std::uint64_t> lines, const Sites& sites);
    template <class Lines>
    void count(const Lines& of, std::size_t cache, const MissedLines& missed, const Sites& sites);
    static SimulatedCache result(const Cache& cache, std::uint64_t accesses);
    std::vector<const Cache*> by_size() const;

    std::vector<Cache> caches_;  // fewest sets first
    std::vector<Chain> chains_;
    MissedLines missed_, missed_next_;
    std::uint64_t accesses_ = 0;
};

// A bank in parts, each of which may have a thread: every batch goes to every part, in order.
class CacheParts {
 public:
    // As many parts as `threads` allow and the caches can be divided into. Whoever counts line use
    // beside them, from the same lines, names that cache too.
    CacheParts(const std::vector<CacheSpec>& caches, std::uint64_t line, unsigned threads,
               const std::optional<CacheSpec>& line_use = {});

    bool empty() const { return parts_[0].empty(); }
    std::size_t count() const { return plan_.parts; }
    // How lines must be dealt to the parts.
    const LinePlan& plan() const { return plan_; }
    void access(std::size_t part, const DealtLines& batch);
    // Into Profile::caches and the sites, once, when all parts have seen all batches.
    void fill(Profile& profile);

 private:
    std::vector<CacheSpec> caches_;
    std::uint64_t line_;
    LinePlan plan_;
    std::vector<CacheBank> parts_;
};

}  // namespace revisit
