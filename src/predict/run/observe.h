// How far the numbers go that decide what a program does, in one run.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "predict/slice/slice.h"

namespace revisit::predict {

struct Extremes {
    std::int64_t low = INT64_MAX, high = INT64_MIN;

    bool empty() const { return low > high; }
    bool operator==(const Extremes&) const = default;
    void add(__int128 value) {
        constexpr __int128 kMost = std::int64_t{1} << 62;
        const auto v = static_cast<std::int64_t>(std::clamp(value, -kMost, kMost));
        low = std::min(low, v);
        high = std::max(high, v);
    }
    void add(const Extremes& more) {
        low = std::min(low, more.low);
        high = std::max(high, more.high);
    }
};

// Of one watched instruction (or the selector of a switch) in one run.
struct Observed {
    Extremes margin;          // what its case depends on the sign of, see extremes.cpp
    Extremes first, second;   // operands of unsigned operations: their sign is a case too
    Extremes value;           // the result, before it is cut to its width
    std::vector<bool> taken;  // edges of a switch
};

// Numbers the instructions and switches to be watched (Instruction::watch, Block::watch), from 1; the
// same for programs of one shape. Returns how many there are.
std::int32_t watch_all(Program& program);

// Operations that take their operands as unsigned.
inline bool is_unsigned(Op op) {
    return op == Op::ult || op == Op::ule || op == Op::umin || op == Op::umax || op == Op::udiv ||
           op == Op::urem || op == Op::lshr || op == Op::zext;
}

// Notes one execution.
void observe(const Instruction& i, std::int64_t a, std::int64_t b, std::int64_t result, Observed& to);

}  // namespace revisit::predict
