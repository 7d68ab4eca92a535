// Accesses up to the next touch of a block, counted by looking ahead.
//
// Problem. A watchpoint reports when a block is touched again, and how many accesses that were follows
// from the time: off by some microseconds, as the program is slow after a sample. Where reuses come
// after ten or twenty microseconds and all have one length, all are counted in a wrong bin. Idea. Count
// them instead. To interpret so many accesses would take as long as tens of samples, but where the
// loops on the way are affine (loops.h) most of their iterations need not be
// interpreted: what they touch is known, so it is known which one comes to the block, and what they
// store is taken for unknown from then on. It goes on for as long as that pays: `most` accesses are
// interpreted, and one for every eight left out. Cost. That of a few iterations for each time a loop is
// entered: once for an array that is gone through again and again, some thirty times for a band of a
// blocked stencil, which is 130 000 accesses. The sum of an array of 200 000 numbers, whose reuses were
// all counted one bin too low, has S = 1 by it. Checked against a naive count in
// tests/machine_replay_test.cpp.
#pragma once

#include "machine/affine.h"
#include "machine/replay_count.h"

namespace revisit::machine {

struct NextTouch {  // of this block
    std::uint64_t block = 0;
    std::uint64_t accesses = ~std::uint64_t{0};  // no more than so many are left out
};

struct TouchCount {
    enum class Why : std::uint8_t { found, unknown, work };
    std::uint64_t distance = 0;
    Why why = Why::work;  // what it ended for: the look-ahead did, or it was as far as it was to go
};

inline constexpr std::uint64_t kToRecord = 100;  // what a loop takes besides, in instructions

// Goes on from where `ahead` is. The distance, or 0; found(address, distance) is called at the touch.
// At most so many instructions are interpreted.
template <class Ahead, class State, class Memory, class Loops, class Found>
TouchCount count_to_touch(Ahead& ahead, State& state, Memory& memory, Loops& loops, NextTouch to,
                          unsigned shift, std::uint64_t most, std::uint64_t instructions, Found found) {
    constexpr std::uint64_t kPays = 8;
    std::uint64_t distance = 0, left_out = 0, touched = 0;
    auto met = [&] {
        for_blocks(ahead.touched(), shift, [&](std::uint64_t block, std::uint64_t address) {
            if (touched != 0) return;
            distance++;
            if (block != to.block) return;
            touched = distance;
            found(address, distance);
        });
        return touched == 0 && distance - left_out < most + left_out / kPays;
    };
    auto skipped = [&](const SkippedLoop& loop) {
        if (touched != 0) return false;
        distance += loop.accesses;
        left_out += loop.accesses;
        instructions -= fewer(instructions, loop.interpreted + kToRecord);
        return true;
    };
    Step step = run_by_loops(
        ahead, state, memory, loops, [&] { return to; }, shift, instructions, met, skipped);
    using Why = TouchCount::Why;
    return {touched, touched != 0 ? Why::found : step == Step::stop ? Why::unknown : Why::work};
}

struct Passed {
    std::uint64_t accesses = 0, left_out = 0;  // all, and those of iterations left out
    bool ended = false;                        // the look-ahead did, before that many
};

// Goes on for so many accesses, or so many instructions that are interpreted. met() is called after
// each access that is interpreted; those that touch the block are. Where it ends is the same each time
// for the same number of accesses.
template <class Ahead, class State, class Memory, class Loops, class Met>
Passed pass(Ahead& ahead, State& state, Memory& memory, Loops& loops, std::uint64_t block,
            unsigned shift, std::uint64_t accesses, std::uint64_t instructions, Met met) {
    Passed out;
    auto count = [&] {
        met();
        out.accesses += blocks_of(ahead.touched(), shift);
        return out.accesses < accesses;
    };
    if (accesses == 0) return out;
    auto skipped = [&](const SkippedLoop& loop) {
        out.accesses += loop.accesses;
        out.left_out += loop.accesses;
        instructions -= fewer(instructions, loop.interpreted + kToRecord);
        return out.accesses < accesses;
    };
    auto end = [&] { return NextTouch{block, accesses - out.accesses}; };
    out.ended = run_by_loops(ahead, state, memory, loops, end, shift, instructions, count, skipped) ==
                Step::stop;
    return out;
}

}  // namespace revisit::machine
