// Something known of the last access to every block, kept by its position in time (time_bitmap.h).
//
// Problem. Pairs want to know which site used a block last, time distances when that was. A table from
// blocks to either is a second lookup an access, as dear as the first.
// Idea. The first lookup already gives the position of the last access. So what is known of an access
// is written to an array at its position, in order, and read at the position that was found: nothing is
// hashed, and what was used lately is near. Renumbering moves values as it moves marks, and the values
// of all blocks in the order of last touch are those at the marks.
// Cost. The window's positions, 4 to 12 a block, times the size of a value.
//
// Times need not even be written: positions are given out in order of time, so they follow from the
// position, up to where positions were renumbered last, and from there on they are kept by rank: 8
// bytes a block.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "engines/big_vector.h"
#include "engines/growing_array.h"
#include "engines/time_bitmap.h"

namespace revisit {

template <class Value>
class PositionColumn {
 public:
    // Before values are put, and whenever the window has grown.
    void require(const TimeBitmap& marks) { values_.require(marks.position_end()); }

    REVISIT_INLINE void prefetch(std::uint32_t position) const {
        __builtin_prefetch(values_.data() + position);
    }
    Value* at(std::uint32_t position) const { return values_.data() + position; }
    // Anything where there is no position.
    REVISIT_INLINE void get(const std::uint32_t* positions, unsigned count, Value* out) const {
        for (unsigned j = 0; j < count; ++j) out[j] = values_[positions[j]];
    }

    // Marks move to the front and keep their order, so none overtakes another.
    void renumber(const TimeBitmap& marks) {
        std::uint32_t rank = 0;
        marks.each_mark([&](std::uint32_t position) {
            values_[TimeBitmap::renumbered(rank++)] = values_[position];
        });
    }
    // Of all blocks, the one touched longest ago first.
    BigVector<Value> by_rank(const TimeBitmap& marks) const {
        BigVector<Value> out;
        out.reserve(marks.live());
        marks.each_mark([&](std::uint32_t position) { out.push_back(values_[position]); });
        return out;
    }

 private:
    GrowingArray<Value> values_;
};

class PositionTimes {
 public:
    // A batch of accesses, one after the other from `time` on, takes the positions from `position` on.
    REVISIT_INLINE void put(std::uint32_t position, std::uint64_t time) {
        const std::uint64_t shift = time - linear(position);
        if (stretches_.empty() || stretches_.back().shift != shift) [[unlikely]]
            begin_stretch(linear(position), shift);
    }
    // Accesses of an engine that is new, at any times, in their order.
    void put(std::uint32_t position, std::span<const std::uint64_t> times) {
        kept_.resize(linear(position) - kFirst + times.size());
        std::ranges::copy(times, kept_.end() - static_cast<std::ptrdiff_t>(times.size()));
    }

    REVISIT_INLINE void prefetch(std::uint32_t position) const {
        const std::uint64_t at = linear(position) - kFirst;
        if (at < kept_.size()) __builtin_prefetch(kept_.data() + at);
    }
    // Anything where there is no position.
    REVISIT_INLINE void get(const std::uint32_t* positions, unsigned count, std::uint64_t* out) const {
        for (unsigned j = 0; j < count; ++j) {
            const std::uint64_t at = linear(positions[j]);
            out[j] = at >= newest_ ? at + newest_shift_ : find(at);
        }
    }

    void renumber(const TimeBitmap& marks) {
        kept_ = by_rank(marks);
        stretches_.clear();
        newest_ = kNever;
    }
    BigVector<std::uint64_t> by_rank(const TimeBitmap& marks) const {
        BigVector<std::uint64_t> out;
        out.reserve(marks.live());
        marks.each_mark([&](std::uint32_t position) {
            std::uint64_t time;
            get(&position, 1, &time);
            out.push_back(time);
        });
        return out;
    }

 private:
    static constexpr std::uint64_t kNever = ~std::uint64_t{0};
    // Without the positions that do not exist.
    REVISIT_INLINE static std::uint64_t linear(std::uint32_t position) {
        return std::uint64_t{position >> 9} * TimeBitmap::kPositionsPerLine + (position & 511);
    }
    static constexpr std::uint64_t kFirst = TimeBitmap::kPositionsPerLine;  // line 0 is never used

    void begin_stretch(std::uint64_t from, std::uint64_t shift) {
        stretches_.push_back({from, shift});
        newest_ = from;
        newest_shift_ = shift;
    }
    [[gnu::noinline]] std::uint64_t find(std::uint64_t at) const {
        if (at - kFirst < kept_.size()) return kept_[at - kFirst];
        const auto after = std::ranges::upper_bound(stretches_, at, {}, &Stretch::from);
        return after == stretches_.begin() ? 0 : at + std::prev(after)->shift;
    }

    struct Stretch {
        std::uint64_t from, shift;  // time less position
    };
    BigVector<std::uint64_t> kept_;  // by rank, of the positions given out by renumbering
    std::vector<Stretch> stretches_;
    std::uint64_t newest_ = kNever, newest_shift_ = 0;  // the last of them
};

}  // namespace revisit
