// Accesses from one state of a thread to a later one, counted by interpreting.
//
// Interpretation starts at the first state, on memory that has moved on since, and ends where place,
// next address and registers are those of the second. A value that was overwritten in between may lead
// it astray: then they never agree, and nothing is reported. They may also agree too early, where what
// a loop counts with is in memory: but then they do so over and over, or it leaves the loop at once. So
// interpretation goes on as long again (up to 30 000 accesses), and where they agree twice, or it has
// to end before, nothing is reported either. Affine loops are not interpreted to their end
// (loops.h). Checked against a naive count in
// tests/machine_replay_test.cpp.
#pragma once

#include <cstdint>

#include "machine/ahead.h"

namespace revisit::machine {

// Where it ends: before the access at `pc` to `address`, after which the registers are these.
template <class State>
struct ReplayEnd {
    std::uint64_t pc = 0, address = 0;
    State state;
};

// In all that is known of both.
template <class State>
bool same_registers(const State& a, const State& b) {
    const auto x = general_registers(a), y = general_registers(b);
    for (unsigned r = 0; r < x.size(); r++)
        if (a.is_known(r) && b.is_known(r) && x[r] != y[r]) return false;
    return true;
}

struct ReplayCount {
    std::uint64_t accesses = 0;     // 0 = unknown
    std::uint64_t before = 0;       // … of these, before the instruction was met that it ends at
    std::uint64_t interpreted = 0;  // instructions; 0 = not known
    double executed = 0;            // instructions that go with these accesses, about
    bool lacked_vectors = false;    // it ended for want of a vector register's value
};

struct SkippedLoop {
    std::uint64_t accesses = 0, left_out = 0;  // of iterations left out; instructions there
    std::uint64_t interpreted = 0;             // instructions that it took to know
};

struct NoLoops {  // loops are interpreted to their end
    void start() {}
    bool comes_round(std::uint64_t) { return false; }
    template <class... Any>
    SkippedLoop skip(const Any&...) {
        return {};
    }
};

inline std::uint64_t blocks_of(const Touched& op, unsigned shift) {
    std::uint64_t count = 0;
    for (unsigned k = 0; k < op.pieces; k++) {
        std::uint64_t low = op.address + std::uint64_t{k} * op.bytes, high = low + op.bytes - 1;
        count += (high >> shift) - (low >> shift) + 1;
    }
    return count;
}

// Interprets up to so many instructions, as long as met(), called after each access, wants more. Where
// a loop comes round its iterations up to end() are skipped, and skipped(SkippedLoop) says whether to
// go on. What is left of the instructions afterwards is in `instructions`.
template <class Ahead, class State, class Memory, class Loops, class End, class Met, class Skipped>
Step run_by_loops(Ahead& ahead, State& state, Memory& memory, Loops& loops, End end, unsigned shift,
                  std::uint64_t& instructions, Met met, Skipped skipped) {
    Step step = Step::done;
    loops.start();
    for (bool comes_round = true; comes_round && instructions > 0;) {
        comes_round = false;
        step = ahead.run(instructions, [&] {
            bool wants_more = met();
            comes_round = wants_more && ahead.is_last() && loops.comes_round(ahead.at());
            return wants_more && !comes_round;
        });
        instructions = ahead.left();
        if (comes_round) comes_round = skipped(loops.skip(ahead, state, memory, end(), shift, met));
    }
    return step;
}

// The first access to come after so many blocks; `state` is the one after it then. False = none within
// reach. `passed` = blocks on the way there.
template <class Ahead, class State>
bool find_replay_end(Ahead ahead, const State& state, ReplayEnd<State>& end, unsigned shift = 3,
                     std::uint64_t after = 0, std::uint64_t* passed = nullptr) {
    constexpr std::uint64_t kNear = 2000;
    bool met = false;
    std::uint64_t blocks = 0;
    ahead.run(kNear, [&] {
        if (blocks >= after && ahead.is_first()) {
            met = true;
            return false;
        }
        blocks += blocks_of(ahead.touched(), shift);
        return true;
    });
    end.pc = ahead.at();
    end.address = ahead.touched().address;
    end.state = state;
    if (passed != nullptr) *passed = blocks;
    return met;
}

// `ahead` starts at the first state and works on `state` and `memory`. At most so many instructions are
// interpreted, and so many can have been executed.
template <class Ahead, class State, class Memory, class Loops>
ReplayCount count_replay(Ahead ahead, State& state, Memory& memory, Loops& loops,
                         const ReplayEnd<State>& end, unsigned shift, std::uint64_t interpret,
                         std::uint64_t executed) {
    constexpr std::uint64_t kLeastFurther = 2000, kMostFurther = 30000;
    std::uint64_t accesses = 0, found = 0, left = interpret < executed ? interpret : executed;
    bool agrees = false, again = false, is_there = false;
    ReplayCount out;
    auto is_enough = [&] {
        std::uint64_t further = found < kMostFurther ? found : kMostFurther;
        return again || (agrees && accesses >= found + further + kLeastFurther);
    };
    auto met = [&] {
        const auto& op = ahead.touched();
        if (ahead.at() == end.pc && ahead.is_first()) {
            if (!is_there) out.before = accesses;
            is_there = true;
            if (op.address == end.address && same_registers(state, end.state)) {
                again = agrees;
                agrees = true;
                found = accesses;
            }
        }
        accesses += blocks_of(op, shift);
        return !is_enough();
    };
    std::uint64_t left_out = 0, before = left;
    auto skipped = [&](const SkippedLoop& loop) {
        out.interpreted += before - left + loop.interpreted;
        accesses += loop.accesses;
        left_out += loop.left_out;
        left -= left < loop.interpreted ? left : loop.interpreted;
        before = left;
        if (executed < loop.left_out) return false;
        executed -= loop.left_out;
        if (left > executed) before = left = executed;
        return !is_enough();
    };
    Step step = run_by_loops(
        ahead, state, memory, loops, [&]() -> const auto& { return end; }, shift, left, met, skipped);
    out.interpreted += before - left;
    out.lacked_vectors = step == Step::stop && ahead.left_out_vectors();
    if (is_enough() && !again) out.accesses = found;
    if (accesses > 0)
        out.executed = static_cast<double>(out.accesses) *
                       static_cast<double>(out.interpreted + left_out) / static_cast<double>(accesses);
    return out;
}

}  // namespace revisit::machine
