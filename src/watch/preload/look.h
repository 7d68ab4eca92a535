// A look-ahead from one sample: which accesses the thread will make, and what becomes of them.
//
// From the interruption a few accesses are skipped, a random number, so that an instruction on which
// the processor waits is not preferred; what follows goes through the Window. One use is drawn to be
// told with its call path; an open one that gets a watchpoint is found again by looking ahead once
// more, up to it.
#pragma once

#include <string.h>
#include <ucontext.h>

#include "machine/touch_count.h"
#include "watch/preload/thread.h"

namespace revisit::watch {

class Look {
 public:
    Look(Thread& thread, const ucontext_t& context, bool follows_vectors)
        : t_(thread),
          context_(context),
          follows_vectors_(follows_vectors),
          shift_(process.settings.shift) {}

    // Looks at `length` accesses after the first `skip`; the first `uses` are uses. Draws one of them.
    void run(unsigned skip, unsigned uses, unsigned length, std::uint64_t instructions) {
        unsigned drawn = 1 + t_.random.below(uses);
        go(skip, uses, length, instructions, drawn);
        if (t_.window.length() == 0 && accesses_ > 0 && skip > 0)  // it ended among those to skip
            go(0, uses, length, instructions, drawn);
        if (unsigned met = t_.window.length(); met > 0 && met < drawn)
            go(skip_, uses, length, instructions, 1 + t_.random.below(met));
    }

    // Tells the analyzer what the last look ended at, if that was not its length.
    void write_end() {
        if (!stopped_ || !t_.writer.room(3)) return;
        std::uint64_t code = 0;
        t_.memory.load(t_.state.pc, 8, code);
        t_.writer.put(REVISIT_RECORD(REVISIT_WATCH_END, t_.state.pc));
        t_.writer.put(code);
        t_.writer.put(accesses_);
    }

    // Looks again, up to use `index` of the window, and counts the touches of its word on the way.
    bool find_again(unsigned index, Noted& use, std::uint64_t& touches) {
        std::uint64_t word = t_.address[index] & ~std::uint64_t{7};
        Ahead ahead = start();
        bool found = false, counted = false;
        touches = 0;
        std::uint64_t accesses = 0, last = skip_ + index;
        ahead.run(kMostAgain, [&] {
            const Touched& op = ahead.touched();
            counted &= !ahead.is_first();
            if (!counted && op.address < word + 8 &&
                word < op.address + std::uint64_t{op.pieces} * op.bytes) {
                touches++;
                counted = true;  // an instruction traps once, whatever it touches there
            }
            for_blocks(op, [&](std::uint64_t, std::uint64_t address) {
                if (++accesses != last) return;
                found = address == t_.address[index];
                note(use, ahead, address, accesses);
            });
            return accesses < last;
        });
        rest_ = accesses > last ? accesses - last : 0;
        return found;
    }

    // The use is one that was, `use`: looks for its reuse from here.
    void run_from(const Noted& use, unsigned length, std::uint64_t instructions) {
        go(0, 1, length, instructions, 1, &use);
    }

    // Where the last look ended (at a use, after find_again), looks on for the reuse of its block. The
    // distance, or 0. So many accesses are interpreted, more where iterations of loops are left out.
    std::uint64_t find_further(std::uint64_t address, unsigned most, Noted& reuse) {
        constexpr std::uint64_t kMostInstructions = 24000;
        Ahead ahead = go_on();
        std::uint64_t distance = count_to_touch(
            ahead, t_.state, t_.memory, t_.kept.loops, {address >> shift_}, shift_, most,
            Machine::kSkipsLoops ? kMostInstructions : std::uint64_t{8} * most,
            [&](std::uint64_t found, std::uint64_t distance) { note(reuse, ahead, found, distance); });
        return distance != 0 ? rest_ + distance : 0;
    }

    // Looks again to find three words not met before: soon, as soon again, and as far as is reasonable,
    // or as far as there is one (an interpreter touches few words that it has not touched a little
    // before).
    bool find_mileposts(std::uint64_t instructions, Milepost (&post)[3]) {
        memset(t_.seen, 0, sizeof t_.seen);
        Ahead ahead = start();
        std::uint64_t accesses = 0;
        unsigned at = 0;
        post[2] = {};
        ahead.run(instructions, [&] {
            std::uint64_t trap_pc = Machine::trap_pc(ahead);
            std::uint64_t from = at == 0 ? kMileposts[0] : kMileposts[1] + post[at - 1].accesses;
            bool wants = trap_pc != 0 && accesses >= from;
            for_blocks(ahead.touched(), [&](std::uint64_t, std::uint64_t address) {
                accesses++;
                std::uint64_t word = address & ~std::uint64_t{7};
                auto hash = static_cast<unsigned>(word * 0x9e3779b97f4a7c15 >> 48);
                std::uint64_t bit = std::uint64_t{1} << (hash & 63);
                std::uint64_t& bits = t_.seen[hash >> 6];
                if (wants && !(bits & bit)) {
                    post[at] = {word, trap_pc, accesses};
                    if (at < 2) at++;
                    wants = false;
                }
                bits |= bit;
            });
            return post[2].accesses < kMileposts[2];
        });
        return post[2].accesses != 0;
    }

    // The use that was drawn; no pc = there was none.
    const Noted& use() const { return t_.use; }
    // Its reuse, if that was met, and its distances.
    const Noted& reuse() const { return t_.reuse; }
    Window::Reuse distance() const { return distance_; }
    std::uint64_t looked_at() const { return accesses_; }
    unsigned skipped() const { return skip_; }
    // Whether it ended for want of a vector register's value.
    bool lacked_vectors() const { return lacked_vectors_; }

 private:
    using Ahead = Machine::Ahead<LookMemory>;
    static constexpr std::uint64_t kMileposts[3] = {1000, 4000, 30000};
    static constexpr std::uint64_t kMostAgain = 1u << 20;

    Ahead start() {
        t_.memory.start(process.pid);
        for (unsigned i = 0; i < t_.reservoir.watchpoints(); i++)
            if (t_.reservoir.held(i)) t_.memory.avoid(t_.watch[i].word);
        if (t_.stretch.waits) t_.memory.avoid(t_.stretch.post[t_.stretch.at].word);
        Machine::read_state(t_.state, context_);
        return go_on();
    }
    Ahead go_on() { return Machine::ahead(t_.state, t_.memory, t_.kept, follows_vectors_); }

    void go(unsigned skip, unsigned uses, unsigned length, std::uint64_t instructions, unsigned drawn,
            const Noted* told = nullptr) {
        Ahead ahead = start();
        Window& window = t_.window;
        window.start(uses, length);
        skip_ = skip;
        accesses_ = 0;
        distance_ = {};
        t_.use.pc = t_.reuse.pc = 0;
        lacked_vectors_ = false;
        if (told != nullptr) {
            window.meet(told->address >> shift_);
            t_.address[1] = told->address;
            t_.use = *told;
        }
        Step step = ahead.run(instructions, [&] {
            const Touched& op = ahead.touched();
            for_blocks(op, [&](std::uint64_t block, std::uint64_t address) {
                if (++accesses_ <= skip || window.length() == length) return;
                Window::Reuse reuse = window.meet(block);
                unsigned now = window.length();
                if (now <= uses) t_.address[now] = address;
                if (now == drawn && told == nullptr) note(t_.use, ahead, address, accesses_);
                if (reuse.time == 0 || now - reuse.time != drawn) return;
                distance_ = reuse;
                note(t_.reuse, ahead, address, accesses_);
            });
            return window.length() < length && (uses > 1 || distance_.time == 0);
        });
        lacked_vectors_ = step == Step::stop && ahead.left_out_vectors();
        stopped_ = step == Step::stop;
    }

    [[gnu::noinline]] void note(Noted& to, const Ahead& ahead, std::uint64_t address,
                                std::uint64_t accesses) {
        const Touched& op = ahead.touched();
        to.pc = ahead.at();
        to.trap_pc = Machine::trap_pc(ahead);
        to.address = address;
        to.accesses = accesses;
        to.bytes = op.bytes;
        to.writes = op.writes;
        Machine::read_path(t_.memory, t_.state, t_.kept, to.path);
        Machine::step_back(ahead, to.path);
        to.path.pc = to.pc;
    }

    template <class Take>
    void for_blocks(const Touched& op, Take take) const {
        for (unsigned k = 0; k < op.pieces; k++) {
            std::uint64_t low = op.address + std::uint64_t{k} * op.bytes, high = low + op.bytes - 1;
            for (std::uint64_t block = low >> shift_; block <= high >> shift_; block++)
                take(block, block << shift_ < low ? low : block << shift_);
        }
    }

    Thread& t_;
    const ucontext_t& context_;
    bool follows_vectors_;
    unsigned shift_, skip_ = 0;
    std::uint64_t accesses_ = 0;
    Window::Reuse distance_;
    std::uint64_t rest_ = 0;  // accesses that the instruction of a use made after it
    bool lacked_vectors_ = false, stopped_ = false;
};

}  // namespace revisit::watch
