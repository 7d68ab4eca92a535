// Accesses from a sample's stop to the trap of its watchpoint, counted.
//
// Problem. A trap gives a time, and for some 10 to 150 us after a stop the program is slow, how much
// differs from sample to sample: of a sparse matrix whose vector fills half of the cache, reuses that
// take 10 us were taken for 100. Idea. The trap's record has registers and the top of the stack, and
// those of the stop are kept. Where the registers move evenly, how far they have moved says how many
// accesses that were (machine/progress.h), however long it took. That fails where an outer loop's
// counter is in memory and has changed: the nearest words of the stack must be what they were, those
// below the stack pointer too, which are read when we hear of the trap.
// Cost. 0.1 to 0.2 ms per trap on another processor, and 64 words kept per sample.
#pragma once

#include <cstring>

#include "watch/outside/replay.h"

namespace revisit::watch::outside {

class TrapCount {
 public:
    TrapCount(Bench& bench, Task& task) : b_(bench), t_(task) {}

    // At the stop of a sample that watches a block.
    void keep() {
        Standing& stood = t_.stood;
        b_.memory.forget_stores();
        b_.memory.allow_pages(RemoteMemory::kNoLimit);
        stood.sample = t_.samples().samples.size();
        stood.state = b_.stopped;
        for (unsigned i = 0; i < Standing::kWords; i++)
            if (!read(b_.stopped, i, stood.word[i])) stood.sample = 0;
    }

    // When it has trapped, `at` in that state; memory is the thread's, as it is now. 0 = not known.
    std::uint64_t count(std::uint64_t sample, const Machine::State& at, const Trap& trap) {
        const Standing& stood = t_.stood;
        if (stood.sample != sample || !has_same_stack(at, trap)) return 0;
        const machine::ReplayCount counted = Replayer(b_, t_).progress(stood.state, at, false);
        return counted.accesses;
    }

 private:
    static std::uint64_t address_of(const Machine::State& state, unsigned word) {
        return (Machine::stack_pointer(state) & ~std::uint64_t{7}) + 8 * std::uint64_t{word};
    }
    bool read(const Machine::State& state, unsigned word, std::uint64_t& value) {
        return b_.memory.load(address_of(state, word), 8, value) == machine::Loaded::value;
    }

    bool has_same_stack(const Machine::State& at, const Trap& trap) {
        const Standing& stood = t_.stood;
        if (Machine::stack_pointer(at) != Machine::stack_pointer(stood.state)) return false;
        const std::uint64_t top = Machine::stack_top(at);
        b_.memory.forget_stores();
        for (unsigned i = 0; i < Standing::kWords; i++) {
            std::uint64_t now = 0;
            const std::uint64_t offset = address_of(at, i) - top;
            if (address_of(at, i) >= top && offset + 8 <= trap.stack.size())
                std::memcpy(&now, trap.stack.data() + offset, 8);
            else if (!read(at, i, now))
                return false;
            if (now != stood.word[i]) return false;
        }
        return true;
    }

    Bench& b_;
    Task& t_;
};

}  // namespace revisit::watch::outside
