// How fast accesses go, counted after the fact.
//
// Problem. Foreseen accesses cannot be timed where memory is slow: looking ahead has brought the data
// near. Idea. Time first, count then. One interruption keeps the registers, the next, some microseconds
// on, has those that came of them; in between the program ran undisturbed. Interpreting from the first
// until registers, place and next address are those of the second tells how many accesses that were
// (replay_count.h), and what this touches has just been touched anyway. Memory has moved on in between.
// The top of the stack, where registers are spilled, is kept at the first interruption and read from
// there; another value that was overwritten is read as it is now, and may lead astray: then nothing is
// told. Cost. Two short interruptions and an interpretation: a quarter of a millisecond on average,
// which is 10 microseconds of a program that computes, or half a millisecond of one whose loops are
// plain.
#pragma once

#include "machine/replay_count.h"
#include "watch/preload/look.h"

namespace revisit::watch {

class Replayer {
 public:
    explicit Replayer(Thread& thread) : t_(thread) {}

    // Nanoseconds to the next interruption: until the traces of the sample before are gone (after 0.3
    // ms a stencil whose grids fill the last cache was 12 % slower than it is), then for as long as
    // interpreting it is worth.
    static std::uint64_t next_stop(Thread& t) {
        constexpr std::uint64_t kSettle = 1500000;
        if (t.replay.phase == Replay::Phase::settles) return kSettle;
        double length = static_cast<double>(t.replay.at(t.replay.from.pc).length);
        return static_cast<std::uint64_t>((length > 0 ? length : kFirst) * (0.5 + t.random.unit()));
    }

    // How long the next one at that place is to be: as long as so many instructions take to be
    // interpreted, not much longer than this one, which may have been an exception; shorter after one
    // that could not be counted.
    static float length_after(const Replay::Place& place, const ReplayCount& counted,
                              std::uint64_t taken) {
        constexpr double kInstructions = 100000, kShortest = 30000, kLongest = 400000, kMore = 3;
        double length = place.length > 0 ? static_cast<double>(place.length) : kFirst;
        if (counted.accesses == 0)
            length /= 2;
        else {
            auto interpreted =
                static_cast<double>(counted.interpreted ? counted.interpreted : 4 * counted.accesses);
            double more = kInstructions / interpreted;
            length = static_cast<double>(taken) * (more < kMore ? more : kMore);
        }
        return static_cast<float>(length < kShortest  ? kShortest
                                  : length > kLongest ? kLongest
                                                      : length);
    }

    // At the first interruption: the registers, and the words above the stack pointer.
    void keep(const ucontext_t& now) {
        Replay& replay = t_.replay;
        Machine::read_state(replay.from, now);
        start();
        replay.stack = Machine::stack_pointer(replay.from) & ~std::uint64_t{7};
        for (replay.words = 0; replay.words < Replay::kMostWords; replay.words++)
            if (t_.memory.load(replay.stack + 8 * std::uint64_t{replay.words}, 8,
                               replay.word[replay.words]) != Loaded::value)
                break;
    }

    // Accesses from there to where the thread is now, which took so long at so many instructions a
    // nanosecond, at most.
    ReplayCount count(const ucontext_t& now, std::uint64_t nanoseconds, unsigned fastest) {
        constexpr std::uint64_t kMost = 400000, kAtFirst = 200000;  // where none has succeeded yet
        const Replay::Place& place = t_.replay.at(t_.replay.from.pc);
        bool succeeds = place.failed == 0 && t_.replay.failed == 0 && place.length > 0;
        start();
        Machine::read_state(t_.state, now);
        ReplayCount counted;
        if (!find_replay_end(Machine::ahead(t_.state, t_.memory, t_.kept, false), t_.state, end_))
            return counted;
        bool& needs_vectors = t_.needs_vectors[t_.replay.from.pc >> 6 & 255];
        std::uint64_t interpreted = 0;
        for (;;) {
            bool follows = needs_vectors;
            counted = go(succeeds ? kMost : kAtFirst, 2 * nanoseconds * fastest, follows);
            counted.interpreted += interpreted;
            if (counted.accesses != 0 || follows || !counted.lacked_vectors ||
                !Machine::kFollowsVectors)
                return counted;
            needs_vectors = true;
            interpreted = counted.interpreted;
        }
    }

 private:
    static constexpr double kFirst = 20000;

    ReplayCount go(std::uint64_t interpret, std::uint64_t executed, bool follows_vectors) {
        const Replay& replay = t_.replay;
        start();
        for (unsigned i = 0; i < replay.words; i++)
            t_.memory.store(replay.stack + 8 * std::uint64_t{i}, 8, replay.word[i], true);
        t_.memory.lose_stores();
        t_.state = replay.from;
        return count_replay(Machine::ahead(t_.state, t_.memory, t_.kept, follows_vectors), t_.state,
                            t_.memory, t_.kept.loops, end_,
                            static_cast<unsigned>(process.settings.shift), interpret, executed);
    }

    void start() {
        t_.memory.start(process.pid);
        for (unsigned i = 0; i < t_.reservoir.watchpoints(); i++)
            if (t_.reservoir.held(i)) t_.memory.avoid(t_.watch[i].word);
        if (t_.stretch.waits) t_.memory.avoid(t_.stretch.post[t_.stretch.at].word);
    }

    Thread& t_;
    ReplayEnd<Machine::State> end_;
};

}  // namespace revisit::watch
