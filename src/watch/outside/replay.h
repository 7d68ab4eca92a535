// How fast accesses go, counted after the fact.
//
// Problem. Only processor time is measured, and a reuse distance counts accesses. Idea. Time first,
// count then. When the timer fires for a sample, the kernel's record has the registers and the top of
// the stack, and the program runs on; it is stopped some microseconds later, and has the registers that
// came of those.
//
//     timer's record       stop: the sample
//          │   140 us         │
//     ─────┴──────────────────┴─ · · ·      rdx = 0x1000 → 0x9000: 16384 accesses in 140 us
//
// Interpreting from the first until registers, place and next address are those of the second gives
// how many accesses that were (machine/replay_count.h). Every sample may so have the rate of the moment
// that it stands for. Memory has moved on in between. The top of the stack, where registers are
// spilled, is read as it was; another value that was overwritten is read as it is now, and may lead
// astray: then nothing is counted. What lies below the stack pointer is not in a record: it is read
// when we wake up, and where it has changed by the end, stretches of that code begin with a short stop,
// which keeps it, and after which the program is slow for a while (clock/slow_start.h). So do those of
// code that needs its vector registers. How long a stretch is depends on what the last ones of the
// thread took, not on where it begins: else samples would come at moments that depend on the code.
// Cost. Up to a millisecond on another processor, while the program runs, and 20 us for a short stop;
// ten milliseconds where the shortest stretch has a million instructions (a sparse matrix in cache),
// for which there is no other clock: traps are as late as such code takes to the next milepost.
// Measured. Nine programs on a host with busy neighbours, three runs each: the number of accesses is
// off by 27 % (root of the mean square of its logarithm) and within its error, 35 % in the median, in
// 22 of 27. Where all stretches began with a stop it was 36 %, 40 % and 21.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstring>

#include "machine/progress.h"
#include "machine/replay_count.h"
#include "watch/outside/look.h"

namespace revisit::watch::outside {

class Replayer {
 public:
    Replayer(Bench& bench, Task& task) : b_(bench), t_(task) {}

    // Nanoseconds from the first stop to the second.
    static std::uint64_t next_length(Task& t) {
        double length = t.replay.length > 0 ? t.replay.length : kFirst;
        return static_cast<std::uint64_t>(length * (0.6 + 0.8 * t.random.unit()));
    }

    // How long the next ones are to be: as long as so many instructions take to be interpreted, not all
    // at once, as this one may have been an exception; shorter after one that could not be counted.
    static double length_after(double length, const machine::ReplayCount& counted) {
        constexpr double kInstructions = 100000, kLongest = 250000;
        if (length <= 0) length = kFirst;
        if (counted.accesses == 0)
            length *= is_too_long(counted) ? 0.5 : 0.8;
        else {
            auto interpreted =
                static_cast<double>(counted.interpreted ? counted.interpreted : 4 * counted.accesses);
            length *= std::clamp(std::sqrt(kInstructions / interpreted), 0.5, 1.5);
        }
        return std::clamp(length, kShortest, kLongest);
    }

    // Whether it was given up because there was too much to interpret, where a shorter one is possible.
    static bool is_too_long(const machine::ReplayCount& counted) {
        return counted.accesses == 0 && counted.interpreted >= kDoubtful;
    }
    // Whether what was counted does not explain the time, as so many of the uses there may miss. Either
    // the thread did something else: a new page may take 100 us in a virtual machine, and an allocator
    // then went on by a single call. Or it was in the same state more than once, as an interpreter is
    // after each round of a script's loop, whose counter is in memory: python3 had 716 accesses in 83
    // us, and 0.05 of all its accesses by that.
    static bool stood_still(const machine::ReplayCount& counted, std::uint64_t nanoseconds,
                            double open_share) {
        constexpr double kInstruction = 3, kMiss = 150, kToGoOn = 40000;  // nanoseconds, of slow ones
        constexpr double kLeast = 0.02, kMore = 4;  // share of accesses that miss; times what was seen
        const double misses = std::min(1.0, kLeast + kMore * open_share);
        return counted.accesses > 0 && static_cast<double>(nanoseconds) >
                                           kToGoOn + kInstruction * counted.executed +
                                               kMiss * misses * static_cast<double>(counted.accesses);
    }
    static bool can_be_shorter(const Replay& replay) { return replay.length > kShortest; }

    // At the first stop: the registers, and the words above the stack pointer.
    void keep() {
        Replay& replay = t_.replay;
        replay.from = b_.stopped;
        replay.began_running = false;
        replay.until = 0;
        replay.below = replay.changed = 0;
        replay.stack = Machine::stack_pointer(replay.from) & ~std::uint64_t{7};
        for (replay.words = 0; replay.words < Replay::kMostWords; replay.words++)
            if (b_.memory.load(replay.stack + 8 * std::uint64_t{replay.words}, 8,
                               replay.word[replay.words]) != machine::Loaded::value)
                break;
    }

    // When the timer fires: what its record has, as `from` is read already.
    void keep(const Moment& moment) {
        Replay& replay = t_.replay;
        replay.began_running = true;
        constexpr unsigned kBelow = Machine::kBelowStack / 8;
        replay.stack = (Machine::stack_pointer(replay.from) + 7) & ~std::uint64_t{7};
        replay.words = replay.below = kBelow;
        replay.changed = 0;
        if (kBelow > 0 && !RemoteMemory::read(t_.process->pid, replay.stack, replay.word, 8 * kBelow))
            replay.changed = (1u << kBelow) - 1;
        const std::uint64_t skipped = replay.stack + 8 * kBelow - Machine::stack_top(replay.from);
        if (moment.stack.size() <= skipped) return;
        const std::size_t more =
            std::min<std::size_t>((moment.stack.size() - skipped) / 8, Replay::kMostWords - kBelow);
        std::memcpy(replay.word + kBelow, moment.stack.data() + skipped, 8 * more);
        replay.words += static_cast<unsigned>(more);
    }

    // At the second: whether what is spilled, outer loops' counters among it, has stayed the same.
    void compare_stack() {
        constexpr unsigned kNearest = 64;
        Replay& replay = t_.replay;
        if (replay.began_running) Machine::complete(replay.from, b_.stopped);
        replay.same_stack = replay.changed == 0;
        for (unsigned i = 0; i < std::min(replay.words, kNearest); i++) {
            if (i >= replay.below && !replay.same_stack) break;
            std::uint64_t now = 0;
            if (b_.memory.load(replay.stack + 8 * std::uint64_t{i}, 8, now) == machine::Loaded::value &&
                now == replay.word[i])
                continue;
            replay.same_stack = false;
            if (i < replay.below) replay.changed |= 1u << i;
        }
    }

    // Accesses from there to where the thread stood at the sample, which took so long. What a register
    // holds that was computed from a value overwritten since never comes out again; it is soon replaced
    // by what is read anew, so that later states are tried as well.
    machine::ReplayCount count(std::uint64_t nanoseconds) {
        constexpr unsigned kFastest = 12;  // … per nanosecond
        constexpr unsigned kPages = 1500;
        constexpr std::uint64_t kLater[] = {0, 3, 8, 21};  // accesses
        std::uint64_t most = t_.replay.failed > 1                ? kDoubtful
                             : t_.replay.far == Replay::Far::yes ? kFar
                                                                 : kMost,
                      interpreted = 0;
        bool& needs_vectors = t_.needs_vectors[t_.replay.from.pc >> 6 & 255];
        machine::ReplayCount counted;
        if (t_.replay.same_stack) counted = progress(t_.replay.from, b_.stopped, needs_vectors);
        // Not from a record, which has none: what is noted here makes looks at this place dearer, too.
        const bool may_follow = Machine::kFollowsVectors && !t_.replay.began_running;
        if (counted.lacked_vectors && !needs_vectors && may_follow) {
            needs_vectors = true;
            counted = progress(t_.replay.from, b_.stopped, true);
        }
        // An index that is drawn from a counter of all threads moves with their progress too.
        if (counted.accesses > kFastest * nanoseconds) counted.accesses = 0;
        if (counted.accesses > 0) return counted;
        interpreted = counted.interpreted;
        for (std::uint64_t later : kLater) {
            std::uint64_t passed = 0;
            b_.memory.allow_pages(kPages);
            b_.memory.forget_stores();
            b_.state = b_.stopped;
            if (!machine::find_replay_end(ahead(needs_vectors), b_.state, end_,
                                          static_cast<unsigned>(b_.settings.shift), later, &passed))
                break;
            bool follows = needs_vectors;
            counted = go(most, 2 * nanoseconds * kFastest, follows);
            if (counted.accesses == 0 && !follows && counted.lacked_vectors && may_follow) {
                needs_vectors = true;
                interpreted += counted.interpreted;
                counted = go(most, 2 * nanoseconds * kFastest, true);
            }
            interpreted += counted.interpreted;
            if (counted.accesses > passed) {
                counted.accesses -= passed;
                break;
            }
            counted.accesses = 0;
            if (interpreted > most / 4 || t_.replay.changed != 0) break;
        }
        counted.interpreted = interpreted;
        return counted;
    }

    // From how far the registers have moved (machine/progress.h): needs nothing of what was
    // overwritten.
    machine::ReplayCount progress(const Machine::State& from, const Machine::State& to,
                                  bool follows_vectors) {
        constexpr unsigned kPages = 300;
        const auto shift = static_cast<unsigned>(b_.settings.shift);
        machine::ReplayEnd<Machine::State> first;
        b_.memory.allow_pages(kPages);
        b_.memory.forget_stores();
        b_.state = from;
        if (!machine::find_progress_begin(ahead(follows_vectors), b_.state, b_.memory, first, shift))
            return {};
        b_.memory.forget_stores();
        b_.state = to;
        return machine::count_by_progress(ahead(follows_vectors), b_.state, first, shift);
    }

 private:
    static constexpr double kFirst = 80000, kShortest = 70000;                          // nanoseconds
    static constexpr std::uint64_t kMost = 300000, kDoubtful = 150000, kFar = 1200000;  // instructions

    Machine::Ahead<RemoteMemory> ahead(bool follows_vectors) {
        return Machine::ahead(b_.state, b_.memory, *t_.process->kept, follows_vectors);
    }

    machine::ReplayCount go(std::uint64_t interpret, std::uint64_t executed, bool follows_vectors) {
        const Replay& replay = t_.replay;
        b_.memory.forget_stores();
        for (unsigned i = 0; i < replay.words; i++)
            b_.memory.store(replay.stack + 8 * std::uint64_t{i}, 8, replay.word[i],
                            i >= replay.below || !(replay.changed >> i & 1));
        b_.memory.lose_stores();
        b_.state = replay.from;
        return machine::count_replay(ahead(follows_vectors), b_.state, b_.memory,
                                     t_.process->kept->loops, end_,
                                     static_cast<unsigned>(b_.settings.shift), interpret, executed);
    }

    Bench& b_;
    Task& t_;
    machine::ReplayEnd<Machine::State> end_;
};

}  // namespace revisit::watch::outside
