// Something known of the last access to every block, kept by its position in time (time_bitmap.h).
//
// Problem. Pairs want to know which site used a block last, time distances when that was. A table from
// blocks to either is a second lookup an access, as dear as the first.
// Idea. The first lookup already tells the position of the last access. So what is known of an access
// is written to an array at its position, in order, and read at the position that was found: nothing is
// hashed, and what was used lately is near. Renumbering moves values as it moves marks, and the values
// of all blocks in the order of last touch are those at the marks.
// Cost. The window's positions, 4 to 12 a block, times the size of a value.
#pragma once

#include <cstdint>

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

}  // namespace revisit
