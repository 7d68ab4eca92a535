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
// Parts. A set depends on no other, so threads can have a part of the sets each (dealt_lines.h).
// Strides alone depend on the order of all fetches: parts mark theirs, and whoever is the last to see a
// batch goes through the marks in their order.
//
// Cost. Memory of the cache's lines, 32 bytes each, whatever the program touches. Most accesses find
// the line that was used last in its set, and look at nothing else. For the others a line's tag is
// sought eight ways at once, and the line used longest ago by times: nothing moves. 12 ns per access
// where two thirds are streams and the rest a gather from 1.6 MB, in 2 MiB of 16 ways (32 where sets
// were kept in order of use; x86_64); docs/report.md has the measured cost of a profile.
// Source. The figure that ThreadSpotter calls fetch utilization (Berg, Hagersten 2005 gather it from
// samples).
#pragma once

#include <bit>
#include <cstdint>
#include <deque>
#include <limits>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "engines/dealt_lines.h"
#include "revisit/access.h"
#include "revisit/cache_spec.h"
#include "revisit/error.h"
#include "revisit/profile.h"

namespace revisit {

// Something counted for every site.
template <class Sum>
class SumsOfSites {
 public:
    Sum& operator[](std::uint32_t site) {
        if (site >= kWithoutHash) [[unlikely]]
            return others_[site];
        if (site >= sums_.size()) [[unlikely]]
            grow(site);
        return sums_[site];
    }
    const Sum* find(std::uint32_t site) const {
        if (site < sums_.size()) return &sums_[site];
        const auto found = others_.find(site);
        return found != others_.end() ? &found->second : nullptr;
    }
    template <class Use>
    void each(Use use) const {
        for (std::size_t site = 0; site < sums_.size(); ++site)
            use(static_cast<std::uint32_t>(site), sums_[site]);
        for (const auto& [site, sum] : others_) use(site, sum);
    }

 private:
    static constexpr std::uint32_t kWithoutHash = std::uint32_t{1} << 20;
    [[gnu::noinline]] void grow(std::uint32_t site) {
        sums_.resize(std::bit_ceil(std::size_t{site} + 64));
    }
    std::vector<Sum> sums_;
    std::unordered_map<std::uint32_t, Sum> others_;
};

class LineUseParts {
    // Times are signed where they are compared.
    static constexpr std::uint32_t kFree = 0, kNever = std::numeric_limits<std::int32_t>::max();

 public:
    // Whether such a cache can be simulated.
    static Result<void> check(const CacheSpec& spec);
    // Tests set the time that is the last, to see the times run out.
    LineUseParts(const CacheSpec& spec, unsigned parts, std::uint32_t last_time = kNever - 1);

    std::size_t count() const { return parts_.size(); }
    // Every batch goes to every part, in order; parts may be on different threads.
    void add(std::size_t part, const DealtLines& batch);
    // Into Profile::line_use and the sites of the profile, by id, when all parts have seen all batches.
    // Lines still in the cache leave it.
    void fill(Profile& profile);

 private:
    struct Use {
        std::uint64_t fetches = 0, bytes = 0;
        std::uint64_t which = 0;  // bytes used in some fetch
    };
    struct Strides {
        std::uint64_t last = 0, steps[2] = {};
        std::uint64_t fetched = 0, regular = 0;
    };
    struct Entry {
        std::uint64_t line = 0;
        std::uint64_t bytes = 0;  // 0: free
        std::uint32_t site = 0;
    };
    struct Part {
        void leave(const Entry& entry);
        std::vector<Entry> entries;              // row_ of them for each set
        std::vector<std::uint32_t> tags, times;  // of their lines, and of the last use
        std::vector<std::uint8_t> last;          // of each set: where the line is that was used last
        std::uint32_t now = 0;
        SumsOfSites<Use> uses;
        std::vector<std::uint64_t> fetched;  // of the batch at hand: a bit per access
        std::uint64_t batches = 0;
    };
    // A batch that some parts have seen.
    struct Seen {
        std::size_t left = 0;
        std::vector<std::uint64_t> fetched;
    };
    struct Order {
        std::mutex guard;  // of all below
        std::deque<Seen> seen;
        std::uint64_t first = 0;  // number of the first of them
        std::vector<std::vector<std::uint64_t>> spare;
        SumsOfSites<Strides> strides;
    };

    static constexpr std::size_t kLanes = 8;

    template <bool kAlone>
    void look_up(Part& part, const DealtLines::Part& ours, std::span<const std::uint32_t> sites);
    template <bool kAlone>
    void look_up_avx2(Part& part, const DealtLines::Part& ours, std::span<const std::uint32_t> sites);
    template <bool kAlone>
    void look_up_in(Part& part, const DealtLines::Part& ours, std::span<const std::uint32_t> sites);
    void renumber(Part& part) const;
    void count_stride(std::uint64_t line, std::uint32_t site);
    void hand_on(Part& part, const DealtLines& batch);
    void count_strides(const std::vector<std::uint64_t>& fetched, const DealtLines& batch);

    CacheSpec spec_;
    std::uint64_t sets_, ways_;  // of a part
    std::uint64_t mask_;         // sets - 1 where that is a power of two, else 0
    std::size_t row_;            // ways, filled up with places that are never free
    std::uint32_t last_time_;    // before they are numbered anew
    std::vector<Part> parts_;
    std::unique_ptr<Order> order_;
};

// The same in one part, from batches as they come.
class LineUseTally {
 public:
    static Result<LineUseTally> create(const CacheSpec& spec);

    // Blocks of the cache's line size with their parts; sites may be missing.
    void add(const BlockBatch& batch);
    void fill(Profile& profile) { use_.fill(profile); }

 private:
    explicit LineUseTally(const CacheSpec& spec);

    LineUseParts use_;
    LineDealer dealer_;
    DealtLines dealt_;
};

}  // namespace revisit
