// How fast accesses go, counted after the fact.
//
// Problem. Foreseen accesses cannot be timed where memory is slow: looking ahead has brought the data
// near. Idea. Time first, count then. One interruption keeps the registers, the next, some microseconds
// on, has those that came of them; in between the program ran undisturbed. Interpreting from the first
// until registers, place and next address are those of the second tells how many accesses that were,
// and what this touches has just been touched anyway. Memory has moved on in between. The top of the
// stack, where registers are spilled, is kept at the first interruption and read from there; another
// value that was overwritten is read as it is now, and may lead astray. Then the registers never agree
// and nothing is told. They may also agree too early, where what a loop counts with is in memory: but
// then they do so over and over. So interpretation goes on as long again, and where they agree twice
// nothing is told either. Cost. Two short interruptions and an interpretation, about a
// millisecond for each 50 microseconds of a program that computes.
#pragma once

#include "watch/preload/look.h"

namespace revisit::watch {

class Replayer {
 public:
    explicit Replayer(Thread& thread) : t_(thread), shift_(process.settings.shift) {}

    // Nanoseconds to the next interruption: until the traces of the sample before are gone, then for as
    // long as interpreting it is worth.
    static std::uint64_t next_stop(Thread& t) {
        constexpr std::uint64_t kSettle = 300000;
        constexpr double kAccesses = 40000, kShortest = 12000, kLongest = 150000, kUsual = 2;
        if (t.replay.phase == Replay::Phase::settles) return kSettle;
        double speed = static_cast<double>(t.replay.at(t.replay.from.pc).speed);
        double length = kAccesses / (speed > 0 ? speed : kUsual);
        length = length < kShortest ? kShortest : length > kLongest ? kLongest : length;
        return static_cast<std::uint64_t>(length * (0.5 + t.random.unit()));
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
    // nanosecond, at most; 0 = cannot be told.
    std::uint64_t count(const ucontext_t& now, std::uint64_t nanoseconds, unsigned fastest) {
        constexpr std::uint64_t kMost = 500000, kAtFirst = 150000;  // where none has succeeded yet
        std::uint64_t instructions = nanoseconds * fastest;
        std::uint64_t most = t_.replay.at(t_.replay.from.pc).failed == 0 && t_.replay.failed == 0 &&
                                     t_.replay.at(t_.replay.from.pc).speed > 0
                                 ? kMost
                                 : kAtFirst;
        if (instructions > most) instructions = most;
        Machine::read_state(t_.state, now);
        if (!meet_next()) return 0;
        bool& needs_vectors = t_.needs_vectors[t_.replay.from.pc >> 6 & 255];
        for (;;) {
            bool follows = needs_vectors;
            std::uint64_t found = go(instructions, follows);
            if (found != 0 || follows || !lacked_vectors_) return found;
            needs_vectors = true;
        }
    }

 private:
    using Ahead = Machine::Ahead<LookMemory>;

    // The first access to come, and the registers after it.
    bool meet_next() {
        constexpr std::uint64_t kNear = 2000;
        start();
        Ahead ahead = Machine::ahead(t_.state, t_.memory, t_.kept, false);
        bool met = false;
        ahead.run(kNear, [&] {
            met = true;
            return false;
        });
        pc_ = ahead.at();
        address_ = ahead.touched().address;
        to_ = t_.state;
        return met;
    }

    std::uint64_t go(std::uint64_t instructions, bool follows_vectors) {
        constexpr std::uint64_t kLeastFurther = 2000;
        const Replay& replay = t_.replay;
        start();
        for (unsigned i = 0; i < replay.words; i++)
            t_.memory.store(replay.stack + 8 * std::uint64_t{i}, 8, replay.word[i], true);
        t_.memory.lose_stores();
        t_.state = replay.from;
        Ahead ahead = Machine::ahead(t_.state, t_.memory, t_.kept, follows_vectors);
        std::uint64_t accesses = 0, found = 0;
        bool agrees = false, again = false;
        Step step = ahead.run(instructions, [&] {
            const Touched& op = ahead.touched();
            if (ahead.at() == pc_ && op.address == address_ && same_registers(t_.state, to_)) {
                again = agrees;
                agrees = true;
                found = accesses;
            }
            accesses += blocks(op);
            return !agrees || (!again && accesses < 2 * found + kLeastFurther);
        });
        lacked_vectors_ = step == Step::stop && ahead.left_out_vectors() && !agrees;
        return agrees && !again ? found : 0;
    }

    void start() {
        t_.memory.start(process.pid);
        for (unsigned i = 0; i < t_.reservoir.watchpoints(); i++)
            if (t_.reservoir.held(i)) t_.memory.avoid(t_.watch[i].word);
        if (t_.stretch.waits) t_.memory.avoid(t_.stretch.post[t_.stretch.at].word);
    }

    std::uint64_t blocks(const Touched& op) const {
        std::uint64_t count = 0;
        for (unsigned k = 0; k < op.pieces; k++) {
            std::uint64_t low = op.address + std::uint64_t{k} * op.bytes, high = low + op.bytes - 1;
            count += (high >> shift_) - (low >> shift_) + 1;
        }
        return count;
    }

    Thread& t_;
    std::uint64_t shift_;
    std::uint64_t pc_ = 0, address_ = 0;
    Machine::State to_;
    bool lacked_vectors_ = false;
};

}  // namespace revisit::watch
