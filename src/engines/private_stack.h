// One thread's LRU stack with holes, as two bitmaps over time.
//
// Problem. A private cache loses a block when another core writes to it and keeps an empty way behind.
// So the stack of a thread has slots that hold a block and slots that are holes, both count towards the
// depth, and an access fills the topmost hole above the block's own slot, which itself becomes a hole.
//
// Idea. A slot is a position in time, a bit in the first bitmap; the depth of a position is the number
// of bits after it, counted by words, then lines of 8 words, groups of 64 lines and regions of 64
// groups. Holes are bits in the second, with a bit a word over them and so on up, so that the topmost
// one is at hand and the next is found in a few steps. Blocks keep their position elsewhere. When the
// window of time is full, slots move to its front in order.
//
// Cost. O(log64 of the window) an operation. 2.1 bits a position.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <vector>

#include "engines/simd.h"

namespace revisit {

// Positions that can be added anywhere and taken from the top.
class HoleSet {
 public:
    void restart(std::uint64_t positions) {
        for (auto& level : levels_) {
            positions = (positions + 63) / 64;
            level.assign(positions, 0);
        }
        top_ = 0;
        any_ = false;
    }
    bool any() const { return any_; }
    std::uint32_t top() const { return top_; }

    void add(std::uint32_t position) {
        std::uint32_t at = position;
        for (auto& level : levels_) {
            std::uint64_t& word = level[at >> 6];
            const bool had_some = word != 0;
            word |= std::uint64_t{1} << (at & 63);
            if (had_some) break;
            at >>= 6;
        }
        if (!any_ || position > top_) top_ = position;
        any_ = true;
    }

    void remove_top() {
        std::uint32_t at = top_;
        for (unsigned level = 0; level < kLevels; level++, at >>= 6) {
            std::uint64_t& word = levels_[level][at >> 6];
            word &= ~(std::uint64_t{1} << (at & 63));
            if (word == 0) continue;
            // The highest bit left in this word is above all else that is left.
            at = (at & ~63u) + static_cast<std::uint32_t>(63 - std::countl_zero(word));
            while (level-- > 0)
                at = at * 64 + static_cast<std::uint32_t>(63 - std::countl_zero(levels_[level][at]));
            top_ = at;
            return;
        }
        any_ = false;
    }

    template <class Use>
    void for_each(Use use) const {
        if (!any_) return;
        for (std::uint32_t word = 0; word <= top_ >> 6; word++)
            for (std::uint64_t left = levels_[0][word]; left != 0; left &= left - 1)
                use(word * 64 + static_cast<std::uint32_t>(std::countr_zero(left)));
    }

 private:
    static constexpr unsigned kLevels = 6;  // 64^6 > 2^31 positions
    std::array<std::vector<std::uint64_t>, kLevels> levels_;
    std::uint32_t top_ = 0;
    bool any_ = false;
};

class PrivateStack {
 public:
    static constexpr std::uint32_t kFirst = 2;  // smaller numbers are free for callers' marks
    static constexpr std::uint64_t kMostPositions = std::uint64_t{1} << 31;

    PrivateStack() { restart(kLeastPositions); }

    bool full() const { return next_ == end_; }
    std::uint32_t top() const { return next_ - 1; }

    // Slots above this one, holes counted.
    REVISIT_INLINE std::uint32_t depth(std::uint32_t position) const {
        const std::uint32_t last = top();
        std::uint32_t word = position >> 6;
        auto above = static_cast<std::uint32_t>(std::popcount(slots_[word] >> 1 >> (position & 63)));
        for (const std::uint32_t end = least(word | 7, last >> 6); word < end;)
            above += static_cast<std::uint32_t>(std::popcount(slots_[++word]));
        above += sum_after(lines_, position >> 9, last >> 9);
        above += sum_after(groups_, position >> 15, last >> 15);
        for (std::uint32_t region = position >> 21; region < last >> 21;) above += regions_[++region];
        return above;
    }

    // The block at `position` goes on top: its slot becomes a hole and the topmost hole is filled.
    REVISIT_INLINE std::uint32_t raise(std::uint32_t position) {
        if (holes_.any() && holes_.top() > position) [[unlikely]] {
            clear(holes_.top());
            holes_.remove_top();
            holes_.add(position);
        } else {
            clear(position);
        }
        return push();
    }
    // A block that was not there goes on top and fills the topmost hole.
    std::uint32_t fetch() {
        if (holes_.any()) {
            clear(holes_.top());
            holes_.remove_top();
        }
        return push();
    }
    void make_hole(std::uint32_t position) { holes_.add(position); }

    REVISIT_INLINE void prefetch(std::uint32_t position) const {
        __builtin_prefetch(slots_.data() + (position >> 6 << 0), 1, 3);
    }

    // Moves all slots to the front of a window of at least so many positions. Calls use(renumber) with
    // the function from an old position to the new one.
    template <class Use>
    void renumber(std::uint64_t positions, Use use) {
        std::vector<std::uint32_t> before(lines_.size());  // slots in earlier lines
        std::uint32_t slots = 0;
        for (std::size_t line = 0; line < before.size(); line++) {
            before[line] = slots;
            slots += lines_[line];
        }
        auto new_position = [&](std::uint32_t position) {
            const std::uint32_t word = position >> 6;
            std::uint32_t rank = before[position >> 9];
            for (std::uint32_t w = word & ~7u; w < word; w++)
                rank += static_cast<std::uint32_t>(std::popcount(slots_[w]));
            const std::uint64_t below = (std::uint64_t{1} << (position & 63)) - 1;
            return kFirst + rank + static_cast<std::uint32_t>(std::popcount(slots_[word] & below));
        };
        use(new_position);
        std::vector<std::uint32_t> holes;
        holes_.for_each([&](std::uint32_t position) { holes.push_back(new_position(position)); });
        restart(positions < slots + kLeastPositions ? slots + kLeastPositions : positions);
        while (slots-- > 0) push();
        for (std::uint32_t position : holes) holes_.add(position);
    }

 private:
    static constexpr std::uint64_t kLeastPositions = 512;

    static std::uint32_t least(std::uint32_t a, std::uint32_t b) { return a < b ? a : b; }

    // Entries of the same 64 after this one, and none after `last`.
    template <class Count>
    REVISIT_INLINE static std::uint32_t sum_after(const std::vector<Count>& counts, std::uint32_t at,
                                                  std::uint32_t last) {
        std::uint32_t sum = 0;
        const std::uint32_t end = least(at | 63, last);
        for (std::uint32_t i = at + 1; i <= end; i++) sum += counts[i];
        return sum;
    }

    REVISIT_INLINE void clear(std::uint32_t position) {
        slots_[position >> 6] &= ~(std::uint64_t{1} << (position & 63));
        lines_[position >> 9]--;
        groups_[position >> 15]--;
        regions_[position >> 21]--;
    }
    REVISIT_INLINE std::uint32_t push() {
        const std::uint32_t position = next_++;
        slots_[position >> 6] |= std::uint64_t{1} << (position & 63);
        lines_[position >> 9]++;
        groups_[position >> 15]++;
        regions_[position >> 21]++;
        return position;
    }

    void restart(std::uint64_t positions) {
        positions = (positions + 511) & ~std::uint64_t{511};
        if (positions > kMostPositions) positions = kMostPositions;
        slots_.assign(positions >> 6, 0);
        lines_.assign(positions >> 9, 0);
        groups_.assign((positions + 0x7fff) >> 15, 0);
        regions_.assign((positions + 0x1fffff) >> 21, 0);
        holes_.restart(positions);
        next_ = kFirst;
        end_ = static_cast<std::uint32_t>(positions - 1);
    }

    std::vector<std::uint64_t> slots_;
    std::vector<std::uint16_t> lines_;
    std::vector<std::uint32_t> groups_;
    std::vector<std::uint32_t> regions_;
    HoleSet holes_;
    std::uint32_t next_ = kFirst;
    std::uint32_t end_ = 0;
};

}  // namespace revisit
