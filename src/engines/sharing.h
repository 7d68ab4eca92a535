// Who takes which block from whom: the private model's invalidated reuses, one by one.
//
// Problem. "12 % of the reuses were invalidated" names no line, no data and no writer. Idea. The write
// that takes a block leaves its site, thread and the parts of the block it touched with every thread
// that loses the block; the access that misses it later finds them there. The two make one record:
//
//     thread 1 reads bytes 8…15 of line L        (holds L)
//     thread 0 writes bytes 0…7 of line L        takes it: (site of the write, thread 0, bytes 0…7)
//     thread 1 reads bytes 8…15 of line L        invalidated; no common byte: false sharing
//
// Records of one line, pair of sites and pair of threads are summed. The number of sums is bounded as
// pairs are (core/frequent.h), and the totals count all.
//
// Cost. 8 bytes per block and thread; a store when a block is taken, a lookup when it is missed.
#pragma once

#include <compare>
#include <cstdint>
#include <unordered_map>

#include "core/frequent.h"
#include "engines/block_table.h"
#include "revisit/profile.h"

namespace revisit {

// A bit for each part of a block from the first to the last (BlockBatch::parts).
inline std::uint64_t part_mask(std::uint16_t parts) {
    const unsigned first = parts & 63u, last = parts >> 8 & 63u;
    return (~std::uint64_t{0} >> (63 - (last < first ? first : last))) & (~std::uint64_t{0} << first);
}

class SharingTally {
 public:
    using Touch = BlockTable::Touch;

    void add(std::uint64_t block, const Touch& writer, const Touch& victim, bool victim_writes);
    // Into Profile::sharing by falling count; each stands for `scale` invalidated reuses.
    void fill(Profile& profile, double scale = 1) const;

 private:
    static constexpr FrequentLimits kLimits{std::size_t{1} << 15, std::size_t{1} << 16, 14};

    struct Key {
        std::uint64_t block;
        std::uint32_t writer_site, victim_site;
        std::uint16_t writer_thread, victim_thread;
        bool is_false;
        auto operator<=>(const Key&) const = default;
    };
    struct Hash {
        std::size_t operator()(const Key& key) const;
    };
    struct Sum {
        std::uint64_t count = 0, writer_parts = 0, victim_parts = 0;
        bool victim_writes = false;
    };

    std::unordered_map<Key, Sum, Hash> sums_;
    FrequentKeys keys_{kLimits};
    std::uint64_t invalidated_ = 0, false_ = 0, unlisted_ = 0;
};

}  // namespace revisit
