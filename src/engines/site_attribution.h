// Which sites the distances belong to, for engines that find distances by the batch.
//
// Where pairs are counted, a site's histogram is the sum of the pairs it ends, made once at the end:
// counting both access by access took half as long again. Pairs are bounded: the first ones and those
// that occur often are kept apart (core/frequent.h), the rest is part of its site.
//
// On several threads (chunk_resolver.h) every chunk of time has an attribution of its own, without a
// bound, and notes when each pair was first met. So the sum knows which pairs came first, and is what
// one thread would have counted, as long as all pairs are kept.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "core/frequent.h"
#include "core/key_table.h"
#include "engines/tally.h"

namespace revisit {

class SiteAttribution {
 public:
    static constexpr std::uint32_t kCold = 0xffffffffu;         // as a distance: first touch
    static constexpr std::uint32_t kInvalidated = 0xfffffffeu;  // lost to another thread's write
    static constexpr FrequentLimits kPairs{std::size_t{1} << 16, std::size_t{1} << 18, 16};

    explicit SiteAttribution(const EngineOptions& options, const FrequentLimits& pairs = kPairs)
        : options_(options), pairs_(pairs), slots_(SmallCounter::keeps_slots(options.bins)) {
        if (!slots_) return;
        near_bins_.resize(kNearBins);
        for (std::size_t i = 0; i < kNearBins; i++)
            near_bins_[i] = static_cast<std::uint16_t>(options.bins.index(i));
    }

    // A piece of a whole: of the accesses from `time` on.
    static SiteAttribution piece(const EngineOptions& options, std::uint64_t time);

    // Columns of the batch may be empty, or are as long as `distances`. `use_sites`, which site used
    // each block before, is needed for pairs.
    void add(const BlockBatch& batch, std::span<const std::uint32_t> distances,
             std::span<const std::uint32_t> use_sites = {});
    // First touches of a chunk that other pieces know as accesses: only distances are new.
    struct Found {
        std::uint64_t time;
        std::uint32_t site, use_site, distance;
    };
    void add_found(const Found& found);

    // Puts what lies in the cache of pairs where it belongs; more may be added. For a piece, on its own
    // thread: add_pieces() is one thread's work.
    void settle();

    // Adds the pieces of a stretch of accesses that follows what was added. What is cold to a chunk is
    // not known to be cold: `chunks` of them come first, and theirs is left out.
    void add_pieces(std::span<SiteAttribution> pieces, std::size_t chunks);

    void fill(Profile& profile) const;
    void add_so_far(SiteOctaves& out) const;

 private:
    // A pair that was met lately. Its counters lie here for the moment, so that counting an access
    // reads this and one of them, and nothing else.
    struct CachedPair {
        std::uint64_t key = 0;
        std::uint64_t* bins = nullptr;
        std::uint64_t writes = 0;  // of its site, not in the site's tally yet
        std::uint32_t size = 0;    // of bins
    };
    struct NewPair {
        std::uint64_t time, key;
        auto operator<=>(const NewPair&) const = default;
    };

    void add_to_sites(const BlockBatch& batch, std::span<const std::uint32_t> distances);
    void add_to_pairs(const BlockBatch& batch, std::span<const std::uint32_t> distances,
                      std::span<const std::uint32_t> use_sites);
    void add_to_pairs_in_slots(const BlockBatch& batch, std::span<const std::uint32_t> distances,
                               std::span<const std::uint32_t> use_sites);
    void add_to_pair(std::uint32_t use, std::uint32_t reuse, std::uint32_t distance);
    void make_pairs(std::span<const SiteAttribution> pieces);
    SmallCounter* pair_counter(std::uint64_t key, std::uint64_t weight = 1);
    void add_new_to_cached(CachedPair& cached, std::uint64_t key, std::uint64_t bin,
                           std::uint64_t writes);
    SiteTally& site_tally(std::uint32_t id);
    // Where counters have slots.
    std::uint64_t bin_of(std::uint64_t distance) const {
        return distance < kNearBins ? near_bins_[distance] : options_.bins.index(distance);
    }
    void count(SmallCounter& counter, std::uint64_t distance) {
        if (slots_)
            counter.add_to_bin(bin_of(distance));
        else
            counter.add(options_.bins, distance);
    }

    EngineOptions options_;
    FrequentKeys pairs_;
    bool slots_;  // counters number their bins
    static constexpr std::size_t kNearBins = 4096;
    std::vector<std::uint16_t> near_bins_;  // of small distances, where they have slots
    bool is_piece_ = false;
    std::uint64_t now_ = 0;           // time of the access being added
    std::vector<NewPair> new_pairs_;  // of a piece
    Attribution attribution_;
    // Found again without hashing: sites by their id where it is small, pairs in a little direct cache.
    std::vector<SiteTally*> site_of_id_;
    static constexpr unsigned kPairCacheBits = 12, kPieceCacheBits = 11;
    unsigned pair_shift_ = 64 - kPairCacheBits;
    std::vector<CachedPair> pair_cache_;
    KeyTable pair_numbers_;
    std::vector<SmallCounter*> pair_of_number_;
    std::uint64_t reuses_outside_pairs_ = 0;
};

}  // namespace revisit
