// Which positions in time are some block's last access, and how many of them lie after a given one.
//
// Problem. Every access moves its block's mark from an old position to the newest and asks how many
// marks lie in between. A tree answers in O(log n) with a cache miss a level.
//
// Idea. The marks are bits of a bitmap over a window of time, counted by prefix sums that are updated
// in place with vector instructions. Sixty-four accesses, one word of the bitmap, are taken at once:
//
//   inside   the block's last access is in the same batch: a popcount in one register;
//   recent   it is in the last 16 lines (7168 positions), as nearly all are in a program with any
//            locality: marks after it are summed over 16 line totals, nothing else needs updating;
//   old      the prefix sums of the levels below.
//
// A line is 64 bytes: seven words of marks and a word of tallies, seven 9-bit fields, where field k
// counts the marks in words k..6. So a query touches one line that was prefetched when the block was
// looked up. Above it a group is 16 lines, a region 8 groups, a province 16 regions; each holds prefix
// sums of its parts, and clearing a mark subtracts 1 from the later ones, which is an addition or two
// of vectors. Over the topmost level in use (`tops`, at most 256) sums are rebuilt once a batch. Within
// the batch they are stale, and an access is corrected by the number of earlier ones in its batch that
// cleared a mark under a smaller top: a triangle of byte comparisons. Consecutive queries to one word,
// as loops and scans make them, share its sums and its update.
//
// Positions are 32 bits: word index times 64 plus bit, so those that would fall on tallies do not
// exist, and line 0 is never used, which leaves 0 to mean "no position". A full window is renumbered:
// the marks keep their order and move to its front.
//
// Cost. 3–7 ns an access (Neoverse V1), 1.2 bits a position. See bench/engines.cpp.
// Source. Bennett and Kruskal 1975 for marks over time; the layout and the batching are ours.
#pragma once

#include <bit>
#include <cstdint>

#include "engines/growing_array.h"
#include "engines/simd.h"

namespace revisit {

class TimeBitmap {
 public:
    static constexpr unsigned kBatch = 64;
    static constexpr unsigned kPositionsPerLine = 448;
    static constexpr std::uint64_t kMostLines = (std::uint64_t{1} << 23) - 1;  // 32-bit positions

    struct Counted {
        unsigned count = 0;       // distances written
        std::uint64_t fresh = 0;  // bit j: access j touched its block for the first time
    };
    // previous[0, 64) are last positions of the blocks of the next `batch` accesses, 0 for none, and
    // were replaced by position() + 0, 1, 2, … while being looked up; entries from `batch` on are
    // ignored but must be readable. Writes a distance for every access that is not fresh, in any order;
    // with `order`, also which access each belongs to.
    using Count = Counted (TimeBitmap::*)(const std::uint32_t* previous, unsigned batch,
                                          std::uint32_t* distances, std::uint8_t* order);
    Count counter(bool ordered) const;

    // A window of so many lines whose first positions hold `live` marks. Tests ask for more levels than
    // the size needs.
    void restart(std::uint64_t lines, std::uint32_t live, unsigned least_levels = 2);

    static std::uint64_t lines_for(std::uint64_t positions) {
        return (positions + kPositionsPerLine - 1) / kPositionsPerLine + 1;
    }

    std::uint32_t live() const { return live_; }
    bool full() const { return word_ >= word_end_; }
    std::uint32_t position() const { return word_ * 64; }
    // Where the batch after the one at `position` will be, and whether the window has room for it.
    static std::uint32_t next_position(std::uint32_t position) {
        position += 64;
        return (position & 511) == 448 ? position + 64 : position;
    }
    bool has(std::uint32_t position) const { return position >> 6 < word_end_; }

    REVISIT_INLINE void prefetch(std::uint32_t position) const {
        __builtin_prefetch(words_.data() + (position >> 9 << 3), 1);
    }
    bool worth_prefetching() const { return levels_ > 2; }

    // Enters all lines into the sums; afterwards there is only restart().
    void settle();
    void stop_growing();
    // Once settled: calls use(rank) with the function from a marked position to the number of marks
    // before it. Marks that lie side by side in a word have ranks side by side.
    template <class Use>
    void with_ranks(Use use) const;
    // Calls use(position) for all marks, oldest first.
    template <class Use>
    void each_mark(Use use) const {
        for (std::uint32_t word = kFirstWord; word < word_; ++word) {
            if ((word & 7) == 7) continue;  // tallies
            for (std::uint64_t left = words_[word]; left != 0; left &= left - 1)
                use(word * 64 + static_cast<std::uint32_t>(std::countr_zero(left)));
        }
    }
    // How many numbers one needs to have one for every position.
    std::size_t position_end() const { return std::size_t{word_end_} * 64; }
    // Where a mark lies after restart().
    static std::uint32_t renumbered(std::uint32_t rank) {
        return kFirstWord * 64 + rank + rank / kPositionsPerLine * 64;
    }

 private:
    static constexpr unsigned kRecentLines = 16;
    static constexpr std::uint32_t kFirstWord = 8;
    static constexpr std::uint64_t kFieldOnes = 0x40201008040201u;  // 1 in each of seven 9-bit fields

    static constexpr unsigned top_shift(unsigned levels) {
        return levels == 2 ? 13 : levels == 3 ? 16 : levels == 4 ? 20 : 24;
    }
    // What a mark in word k adds to its line's tallies: 1 in fields 0..k.
    REVISIT_INLINE static std::uint64_t tally_step(std::uint32_t word) {
        return kFieldOnes >> (54 - 9 * (word & 7));
    }
    REVISIT_INLINE static std::uint32_t marks_from(std::uint64_t tallies, std::uint32_t word) {
        return static_cast<std::uint32_t>(tallies >> (9 * (word & 7))) & 511;
    }

    template <unsigned kLevels>
    REVISIT_INLINE std::uint32_t marks_up_to_line(std::uint32_t position) const;
    template <unsigned kLevels>
    REVISIT_INLINE void clear(std::uint32_t word, std::uint64_t left, std::uint64_t tallies,
                              std::uint32_t cleared);
    REVISIT_INLINE unsigned count_recent(const std::uint32_t* previous, std::uint64_t recent,
                                         std::uint64_t inside, std::uint32_t* distances,
                                         std::uint8_t* order);
    template <unsigned kLevels>
    REVISIT_INLINE unsigned count_old(const std::uint32_t* previous, std::uint64_t old,
                                      std::uint64_t fresh, std::uint32_t* distances,
                                      std::uint8_t* order);
    template <unsigned kLevels, bool kOrdered>
    REVISIT_INLINE Counted count_batch(const std::uint32_t* previous, unsigned batch,
                                       std::uint32_t* distances, std::uint8_t* order);
    template <unsigned kLevels, bool kOrdered>
    Counted count(const std::uint32_t* previous, unsigned batch, std::uint32_t* distances,
                  std::uint8_t* order);
    template <unsigned kLevels, bool kOrdered>
    Counted count_avx2(const std::uint32_t* previous, unsigned batch, std::uint32_t* distances,
                       std::uint8_t* order);
    template <bool kOrdered>
    Count counter_for_levels() const;

    REVISIT_INLINE void close_word(std::uint64_t marks, std::uint32_t count);
    void settle_line();
    void rebuild_tops();

    // The newest lines are counted by their tallies alone; the sums below know lines before settled_.
    GrowingArray<std::uint64_t> words_;
    GrowingArray<std::uint16_t> lines_;       // marks in the group up to and with this line
    GrowingArray<std::uint16_t> groups_;      // marks in the region before this group
    GrowingArray<std::uint32_t> regions_;     // marks in the province before this region
    GrowingArray<std::uint32_t> provinces_;   // marks under the top before this province
    GrowingArray<std::uint32_t> top_marks_;   // marks under this top
    GrowingArray<std::uint32_t> top_before_;  // marks under earlier tops
    std::uint32_t live_ = 0;
    std::uint32_t word_ = 0;  // being filled
    std::uint32_t word_end_ = 0;
    std::uint32_t settled_ = 0;
    std::uint32_t stale_top_ = 0;  // top_before_ is wrong from here on
    unsigned levels_ = 2;
};

template <unsigned kLevels>
REVISIT_INLINE std::uint32_t TimeBitmap::marks_up_to_line(std::uint32_t position) const {
    std::uint32_t marks = top_before_[position >> top_shift(kLevels)] + lines_[position >> 9];
    if constexpr (kLevels >= 3) marks += groups_[position >> 13];
    if constexpr (kLevels >= 4) marks += regions_[position >> 16];
    if constexpr (kLevels >= 5) marks += provinces_[position >> 20];
    return marks;
}

template <class Use>
void TimeBitmap::with_ranks(Use use) const {
    auto with_levels = [&]<unsigned kLevels>() {
        use([this](std::uint32_t position) {
            const std::uint32_t word = position >> 6;
            return marks_up_to_line<kLevels>(position) - marks_from(words_[word | 7], word) +
                   static_cast<std::uint32_t>(std::popcount(words_[word] << (~position & 63))) - 1;
        });
    };
    switch (levels_) {
        case 2:
            return with_levels.template operator()<2>();
        case 3:
            return with_levels.template operator()<3>();
        case 4:
            return with_levels.template operator()<4>();
        default:
            return with_levels.template operator()<5>();
    }
}

}  // namespace revisit
