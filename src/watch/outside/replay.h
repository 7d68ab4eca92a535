// How fast accesses go, counted after the fact.
//
// Problem. Only processor time is measured, and a reuse distance counts accesses. Idea. Time first,
// count then. One stop keeps the registers, the next, some microseconds on, has those that came of
// them; in between the program ran undisturbed. Interpreting from the first until registers, place and
// next address are those of the second gives how many accesses that were (machine/replay_count.h).
// Memory has moved on in between. The top of the stack, where registers are spilled, is kept at the
// first stop and read from there; another value that was overwritten is read as it is now, and may lead
// astray: then nothing is counted. Cost. Two short stops and an interpretation: a quarter of a
// millisecond on average, which is 10 microseconds of a program that computes, or half a millisecond of
// affine loops.
#pragma once

#include "machine/replay_count.h"
#include "watch/outside/look.h"

namespace revisit::watch::outside {

class Replayer {
 public:
    Replayer(Bench& bench, Task& task) : b_(bench), t_(task) {}

    // Nanoseconds to the next stop: until the traces of the sample before are gone, then for as long as
    // interpreting it is worth.
    static std::uint64_t next_stop(Task& t) {
        constexpr std::uint64_t kSettle = 1500000;
        if (t.replay.phase == Replay::Phase::settles) return kSettle;
        double length = static_cast<double>(t.replay.at(t.replay.from.pc).length);
        return static_cast<std::uint64_t>((length > 0 ? length : kFirst) * (0.5 + t.random.unit()));
    }

    // How long the next one at that place is to be: as long as so many instructions take to be
    // interpreted, not much longer than this one, which may have been an exception; shorter after one
    // that could not be counted.
    static float length_after(const Replay::Place& place, const machine::ReplayCount& counted,
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

    // At the first stop: the registers, and the words above the stack pointer.
    void keep() {
        Replay& replay = t_.replay;
        replay.from = b_.stopped;
        replay.stack = Machine::stack_pointer(replay.from) & ~std::uint64_t{7};
        for (replay.words = 0; replay.words < Replay::kMostWords; replay.words++)
            if (b_.memory.load(replay.stack + 8 * std::uint64_t{replay.words}, 8,
                               replay.word[replay.words]) != machine::Loaded::value)
                break;
    }

    // Accesses from there to where the thread is now, which took so long at so many instructions per
    // nanosecond, at most.
    machine::ReplayCount count(std::uint64_t nanoseconds, unsigned fastest) {
        constexpr std::uint64_t kMost = 400000, kAtFirst = 200000;  // where none has succeeded yet
        const Replay::Place& place = t_.replay.at(t_.replay.from.pc);
        bool succeeds = place.failed == 0 && t_.replay.failed == 0 && place.length > 0;
        b_.memory.forget_stores();
        b_.state = b_.stopped;
        machine::ReplayCount counted;
        if (!machine::find_replay_end(ahead(false), b_.state, end_)) return counted;
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

    Machine::Ahead<RemoteMemory> ahead(bool follows_vectors) {
        return Machine::ahead(b_.state, b_.memory, *t_.process->kept, follows_vectors);
    }

    machine::ReplayCount go(std::uint64_t interpret, std::uint64_t executed, bool follows_vectors) {
        const Replay& replay = t_.replay;
        b_.memory.forget_stores();
        for (unsigned i = 0; i < replay.words; i++)
            b_.memory.store(replay.stack + 8 * std::uint64_t{i}, 8, replay.word[i], true);
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
