// Accesses from one state of a thread to a later one, from how far its registers have moved.
//
// Problem. Counting by interpreting (replay_count.h) follows every instruction of a stretch, and goes
// astray where data was overwritten since. Idea. A loop has registers that move on evenly: an index, a
// pointer. A short look-ahead from the later state gives how many accesses go with how much of each;
// their difference between the two states then gives the accesses between them. Nothing of the stretch
// itself is interpreted, and its data does not matter.
//
//     loop:         sum += a[at[i]];  x2 = &at[i], x3 = &at[n], x1 = a
//     first stop:   x2 = 0x1000
//     second stop:  x2 = 0x9000
//     look-ahead:   1024 accesses move x2 by 2048; x1 and x3 stay
//     between:      0x8000 / 2048 * 1024 = 16384 accesses
//
// Both states are taken at the same instruction, the next access after the first stop. A register that
// stays the same in the look-ahead must have been the same at the first stop: else another round of an
// outer loop has begun, and the inner index says nothing. All registers that move evenly must agree.
// What fails one of these gives no count. Cost. Up to 8000 instructions, where a replay has 100 000
// to a million. Compared with a naive count in tests/machine_progress_test.cpp.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>

#include "machine/replay_count.h"

namespace revisit::machine {

class Progress {
 public:
    static constexpr unsigned kRegisters = 32;
    static constexpr std::uint64_t kAccesses = 2048;  // to look ahead

    // The registers after an access of the look-ahead, and how many accesses came before it.
    template <class State>
    void add(const State& state, std::uint64_t accesses) {
        if (met_++ % stride_ != 0) return;
        if (size_ == kMost) {  // every second one will do
            for (unsigned i = 1; i < kMost / 2; i++) notes_[i] = notes_[2 * i];
            size_ = kMost / 2;
            stride_ *= 2;
            if ((met_ - 1) % stride_ != 0) return;
        }
        take(notes_[size_++], state, accesses);
    }

    // Accesses from `first`, in the same phase, to the first state that was added; 0 = unknown.
    template <class State>
    double since(const State& first) const {
        constexpr unsigned kLeast = 17;
        constexpr double kUneven = 0.12;
        if (size_ < kLeast) return 0;
        Note from;
        take(from, first, 0);
        const unsigned quarter = (size_ - 1) / 4;
        const Note &begin = notes_[0], &end = notes_[4 * quarter];
        std::uint64_t known = from.known;
        for (unsigned i = 0; i < size_; i++) known &= notes_[i].known;
        double best = 0, least = kUneven, low = 0, high = 0;
        for (unsigned r = 0; r < from.registers; r++) {
            if (!(known >> r & 1)) continue;
            if (stays(r)) {
                if (from.value[r] != begin.value[r]) return 0;
                continue;
            }
            const double off = unevenness(r, quarter);
            if (off > kUneven) continue;
            const double moved = difference(end, begin, r), before = difference(begin, from, r),
                         count = before / moved * static_cast<double>(end.accesses - begin.accesses);
            if (count <= 0) return 0;
            low = low == 0 ? count : std::min(low, count);
            high = std::max(high, count);
            if (best == 0 || off < least) {
                best = count;
                least = off;
            }
        }
        return high <= low * (1 + 2 * kUneven) ? best : 0;
    }

    std::uint64_t first_accesses() const { return size_ > 0 ? notes_[0].accesses : 0; }

 private:
    static constexpr unsigned kMost = 64;

    struct Note {
        std::array<std::uint64_t, kRegisters> value;
        std::uint64_t known = 0, accesses = 0;
        unsigned registers = 0;
    };

    template <class State>
    static void take(Note& note, const State& state, std::uint64_t accesses) {
        const auto values = general_registers(state);
        note.registers = static_cast<unsigned>(values.size());
        note.known = 0;
        note.accesses = accesses;
        for (unsigned r = 0; r < note.registers; r++) {
            note.value[r] = values[r];
            note.known |= std::uint64_t{state.is_known(r)} << r;
        }
    }

    static double difference(const Note& later, const Note& earlier, unsigned r) {
        return static_cast<double>(static_cast<std::int64_t>(later.value[r] - earlier.value[r]));
    }

    bool stays(unsigned r) const {
        for (unsigned i = 1; i < size_; i++)
            if (notes_[i].value[r] != notes_[0].value[r]) return false;
        return true;
    }

    // How far the quarters of the look-ahead are from moving the register alike, per access; 1 = not at
    // all.
    double unevenness(unsigned r, unsigned quarter) const {
        const Note &begin = notes_[0], &end = notes_[4 * quarter];
        const double all =
            difference(end, begin, r) / static_cast<double>(end.accesses - begin.accesses);
        if (all == 0) return 1;
        double worst = 0;
        for (unsigned i = 0; i < 4; i++) {
            const Note &a = notes_[i * quarter], &b = notes_[(i + 1) * quarter];
            const double part = difference(b, a, r) / static_cast<double>(b.accesses - a.accesses);
            worst = std::max(worst, std::abs(part / all - 1));
        }
        return worst;
    }

    std::array<Note, kMost> notes_;
    unsigned size_ = 0;
    std::uint64_t met_ = 0, stride_ = 1;
};

// The first access after the first state, where `ahead` starts; `memory` is lost. What is there now may
// have changed since: a counter that is loaded by this access would be where it is at the end.
template <class Ahead, class State, class Memory>
bool find_progress_begin(Ahead ahead, const State& state, Memory& memory, ReplayEnd<State>& first,
                         unsigned shift) {
    memory.lose(0, ~std::uint64_t{0});
    return find_replay_end(ahead, state, first, shift);
}

// `ahead` starts at the second state and works on `state`; `first` is the first access after the first
// one.
template <class Ahead, class State>
ReplayCount count_by_progress(Ahead ahead, const State& state, const ReplayEnd<State>& first,
                              unsigned shift) {
    constexpr std::uint64_t kMost = 8000;  // instructions
    Progress progress;
    std::uint64_t accesses = 0;
    const Step step = ahead.run(kMost, [&] {
        if (ahead.at() == first.pc && ahead.is_first()) progress.add(state, accesses);
        accesses += blocks_of(ahead.touched(), shift);
        return accesses < Progress::kAccesses;
    });
    ReplayCount out;
    out.lacked_vectors = step == Step::stop && ahead.left_out_vectors();
    out.interpreted = kMost - ahead.left();
    const double between = progress.since(first.state) - static_cast<double>(progress.first_accesses());
    if (between <= 0) return out;
    out.accesses = static_cast<std::uint64_t>(between + 0.5);
    out.executed = between * static_cast<double>(out.interpreted) /
                   static_cast<double>(std::max<std::uint64_t>(1, accesses));
    return out;
}

}  // namespace revisit::machine
