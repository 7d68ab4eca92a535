// Which sites the distances belong to, for engines that find distances by the batch.
//
// Pairs need to know which site used the block last, so they keep a table of that. Where pairs are
// counted, a site's histogram is the sum of the pairs it ends, made once at the end: counting both
// access by access took half as long again. Pairs are bounded: a program has thousands, but a trace may
// claim 2^64.
#pragma once

#include <bit>
#include <cstdint>
#include <span>
#include <vector>

#include "engines/last_access.h"
#include "engines/tally.h"

namespace revisit {

class SiteAttribution {
 public:
    static constexpr std::uint32_t kCold = 0xffffffffu;         // as a distance: first touch
    static constexpr std::uint32_t kInvalidated = 0xfffffffeu;  // lost to another thread's write
    static constexpr std::size_t kMostPairs = std::size_t{1} << 20;

    explicit SiteAttribution(const EngineOptions& options, std::size_t most_pairs = kMostPairs)
        : options_(options),
          most_pairs_(most_pairs),
          slots_(SmallCounter::keeps_slots(options.bins)),
          octaves_(options.bins == Binning::log2()) {}

    // Columns may be empty, or are as long as `distances`. Who knows which site used each block before
    // passes that as well.
    void add(const BlockBatch& batch, std::span<const std::uint32_t> distances,
             std::span<const std::uint32_t> use_sites = {});
    void fill(Profile& profile) const;

 private:
    struct CachedPair {
        std::uint64_t key = 0;
        SmallCounter* counter = nullptr;
    };

    void add_to_sites(const BlockBatch& batch, std::span<const std::uint32_t> distances);
    void add_to_pairs(const BlockBatch& batch, std::span<const std::uint32_t> distances);
    void add_to_pair(std::uint32_t use, std::uint32_t reuse, std::uint32_t distance);
    SmallCounter* pair_counter(std::uint64_t key);
    SiteTally& site_tally(std::uint32_t id);
    void count(SmallCounter& counter, std::uint64_t distance) {
        if (octaves_)
            counter.add_to_bin(static_cast<std::uint64_t>(std::bit_width(distance)));
        else if (slots_)
            counter.add_to_bin(options_.bins.index(distance));
        else
            counter.add(options_.bins, distance);
    }

    EngineOptions options_;
    std::size_t most_pairs_;
    bool slots_;              // counters number their bins
    bool octaves_;            // one bin a power of two: its number is the distance's width in bits
    bool sum_pairs_ = false;  // sites lack the reuses that pairs have
    Attribution attribution_;
    // Found again without hashing: sites by their id where it is small, pairs in a little direct cache.
    std::vector<SiteTally*> site_of_id_;
    std::vector<CachedPair> pair_cache_;
    LastAccess<std::uint64_t> last_site_;  // + 1
    std::uint64_t blocks_ = 0;
    std::uint64_t reuses_outside_pairs_ = 0;
};

}  // namespace revisit
