// How far the numbers go that decide what a program does, size by size.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "predict/slice.h"

namespace revisit::predict {

struct Trace;

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

// Notes one execution.
void observe(const Instruction& i, std::int64_t a, std::int64_t b, std::int64_t result, Observed& to);

// Extremes of all runs seen, and what they say of a size that was not run.
class Reach {
 public:
    void add(const std::vector<std::int64_t>& size, const Program& program, const Trace& trace);

    // Cases that may occur at the target and did in no run, each a sentence. `checked` are sizes at
    // which the formulas were tested: fixed numbers have to be small beside one of them.
    std::vector<std::string> surprises(const Program& program, const std::vector<std::int64_t>& target,
                                       std::span<const std::vector<std::int64_t>> checked) const;

 private:
    std::vector<std::vector<std::int64_t>> sizes_;
    std::vector<std::vector<Observed>> runs_;       // by run and watch
    std::vector<std::vector<std::int64_t>> spans_;  // by run and reference: elements from end to end
    std::vector<std::vector<bool>> tables_;         // by global: entries that some run read
};

}  // namespace revisit::predict
