// A look-ahead from one stop: which accesses the thread will make, and what becomes of them.
//
// From the stop a few accesses are skipped, a random number, so that an instruction on which the
// processor waits is not preferred. Where loops are affine (machine/loops.h) so many more are passed
// that an iteration of an outer loop is not preferred either because it misses the cache and takes
// longer: in a matrix that is walked by columns every eighth column does, and it is not the one whose
// lines come back last. Without that, matrix multiply of 1000 x 1000 had 2 to 4 % misses in L2 instead
// of 6.3 %. What follows goes through the Window. One use is drawn to be noted with its call stack; an
// open one that gets a watchpoint is found again by looking ahead once more, up to it.
#pragma once

#include <algorithm>
#include <cstring>

#include "machine/touch_count.h"
#include "watch/outside/remote_memory.h"
#include "watch/outside/task.h"
#include "watch/samples/access_log.h"
#include "watch/samples/settings.h"
#include "watch/samples/window.h"

namespace revisit::watch::outside {

// Two points of a look-ahead; the time from the one to the other gives how fast accesses go.
struct Milepost {
    std::uint64_t word = 0, trap_pc = 0, accesses = 0;
};

// What one stop works with; there is one for all threads.
struct Bench {
    explicit Bench(const Settings& all) : settings(all) {}
    const Settings& settings;
    RemoteMemory memory;
    Machine::State stopped{};  // the thread's registers
    Machine::State state{};    // those of the look-ahead
    Window window;
    std::uint64_t address[Window::kMost + 1] = {};  // of the window's accesses
    unsigned drawn = 0, open = 0;                   // two of its uses, by number; 0 = none
    AccessLog log;                                  // all accesses up to its end
    Noted use, reuse;                               // the one drawn of the window
    Noted far_use, far_reuse;                       // an open one
    std::uint64_t seen[1024] = {};                  // hashes of words met on the way to a milepost

    // Reads where the thread, which is stopped, stands, and reads its memory from now on. False: it is
    // gone.
    bool begin(Task& task) {
        if (!Machine::read_state(task.id, stopped)) return false;
        Process& process = *task.process;
        process.stands(task.id, stopped.pc);
        if (process.know_code(stopped.pc)) memory.forget_code();
        memory.start(process.pid, process.shown_by());
        memory.ask_about_code([&maps = process.maps()](std::uint64_t address) {
            const Mapping* here = maps.at(address);
            return here != nullptr && here->is_file() && !here->writable;
        });
        return true;
    }
};

template <class Memory>
void read_path(Memory& memory, const Machine::State& state, Process& process, Path& path) {
    Machine::read_path(
        memory, state, *process.kept, [&](std::uint64_t pc) { return process.find_unwind_table(pc); },
        path);
}

class Look {
 public:
    Look(Bench& bench, Task& task, bool follows_vectors, bool reads_pages)
        : b_(bench),
          t_(task),
          follows_vectors_(follows_vectors),
          pages_(reads_pages ? kMostPages : kFewPages),
          shift_(static_cast<unsigned>(bench.settings.shift)) {}

    // Lets run() begin further on, by a random number of accesses, where that takes no longer than so
    // many instructions.
    void begin_further(unsigned accesses, unsigned instructions) {
        way_ = t_.random.below(accesses);
        most_on_way_ = t_.random.below(instructions);
    }

    // Looks at `length` accesses after the first `skip`; the first `uses` are uses. Draws one of them.
    void run(unsigned skip, unsigned uses, unsigned length, std::uint64_t instructions) {
        b_.memory.allow_pages(pages_);
        unsigned drawn = 1 + t_.random.below(uses);
        go(skip, uses, length, instructions, drawn);
        if (b_.window.length() == 0 && accesses_ > 0 &&
            skip + way_ > 0) {  // it ended among those to skip
            way_ = 0;
            go(0, uses, length, instructions, drawn);
        }
        unsigned met = b_.window.length();
        if (met > 1 && met < length && pages_ == kMostPages &&
            lacked_pages()) {  // too dear: a shorter window
            length = met;
            uses = std::min(uses, met / 2);
            b_.memory.allow_pages(kPagesFurther);
            go(skip_, uses, length, instructions, 1 + t_.random.below(uses));
        } else if (met > 0 && met < drawn)
            go(skip_, uses, length, instructions, 1 + t_.random.below(met));
    }

    // Looks again, up to use `index` of the window, and counts the touches of its word on the way.
    bool find_again(unsigned index, Noted& use, std::uint64_t& touches) {
        std::uint64_t word = b_.address[index] & ~std::uint64_t{7}, block = word >> shift_;
        b_.memory.allow_pages(pages_further());
        Ahead ahead = start();
        bool found = false, counted = false;
        touches = 0;
        std::uint64_t accesses = way_, last = way_ + skip_ + index;
        auto count_touch = [&] {
            const machine::Touched& op = ahead.touched();
            counted &= !ahead.is_first();
            if (!counted && op.address < word + 8 && word < op.address + op.all_bytes()) {
                touches++;
                counted = true;  // an instruction traps once, whatever it touches there
            }
        };
        b_.log.start_way();
        auto on_the_way = [&] {
            const machine::Touched& op = ahead.touched();
            count_touch();
            if (op.address >> shift_ <= block && block <= (op.address + op.all_bytes() - 1) >> shift_)
                b_.log.add_to_way(
                    {op.address, ahead.at(), 0, op.all_bytes(), ahead.is_first(), op.writes});
        };
        if (way_ > 0 && pass(ahead, block, way_, kMostOnWayAgain, on_the_way).accesses != way_)
            return false;
        ahead.run(kMostAgain, [&] {
            const machine::Touched& op = ahead.touched();
            count_touch();
            if (is_ours(ahead.at())) return true;
            for_blocks(op, shift_, [&](std::uint64_t, std::uint64_t address) {
                if (++accesses != last) return;
                found = address == b_.address[index];
                note(use, ahead, address, accesses);
            });
            return accesses < last;
        });
        rest_ = accesses > last ? accesses - last : 0;
        return found;
    }

    struct Reach {          // at most
        unsigned accesses;  // more where iterations of loops are left out
        std::uint64_t instructions = 24000;
        unsigned more_pages = 0;  // than usual
    };
    // Where the last look ended (at a use, after find_again), looks on for the reuse of its block. The
    // distance, or 0.
    std::uint64_t find_further(std::uint64_t address, const Reach& reach, Noted& reuse) {
        b_.memory.allow_pages(pages_further() + reach.more_pages);
        Ahead ahead = go_on();
        std::uint64_t distance =
            machine::count_to_touch(ahead, b_.state, b_.memory, t_.process->kept->loops,
                                    {address >> shift_}, shift_, reach.accesses, reach.instructions,
                                    [&](std::uint64_t found, std::uint64_t distance) {
                                        note(reuse, ahead, found, distance);
                                    })
                .distance;
        return distance != 0 ? rest_ + distance : 0;
    }

    // Looks again to find two words not met before, some thousand accesses on and as far as is
    // reasonable, or as far as there is one (an interpreter touches few words that it has not touched a
    // little before).
    bool find_mileposts(std::uint64_t instructions, Milepost (&post)[2]) {
        std::memset(b_.seen, 0, sizeof b_.seen);
        b_.memory.allow_pages(kPagesToMilepost);
        Ahead ahead = start();
        std::uint64_t accesses = 0;
        post[0] = post[1] = {};
        ahead.run(instructions, [&] {
            std::uint64_t trap_pc = Machine::trap_pc(ahead);
            bool is_first = post[0].word == 0;
            std::uint64_t from = is_first ? kMileposts[0] : kMileposts[0] + post[0].accesses;
            bool wants = trap_pc != 0 && accesses >= from;
            for_blocks(ahead.touched(), shift_, [&](std::uint64_t, std::uint64_t address) {
                accesses++;
                std::uint64_t word = address & ~std::uint64_t{7};
                auto hash = static_cast<unsigned>(word * 0x9e3779b97f4a7c15 >> 48);
                std::uint64_t bit = std::uint64_t{1} << (hash & 63);
                std::uint64_t& bits = b_.seen[hash >> 6];
                if (wants && !(bits & bit)) {
                    post[is_first ? 0 : 1] = {word, trap_pc, accesses};
                    wants = false;
                }
                bits |= bit;
            });
            return post[1].accesses < kMileposts[1];
        });
        return post[1].accesses != 0;
    }

    // The use that was drawn; no pc = there was none.
    const Noted& use() const { return b_.use; }
    // Its reuse, if that was met, and its distances.
    const Noted& reuse() const { return b_.reuse; }
    Window::Reuse distance() const { return distance_; }
    std::uint64_t skipped() const { return way_ + skip_; }
    bool went_further() const { return left_out_ > 0; }
    std::uint64_t looked_at() const { return accesses_; }
    bool ended_early() const { return stopped_; }
    // Whether it ended for want of a vector register's value.
    bool lacked_vectors() const { return lacked_vectors_; }
    // … of a page that was not read.
    bool lacked_pages() const { return stopped_ && b_.memory.left_out(); }

 private:
    using Ahead = Machine::Ahead<RemoteMemory>;
    static constexpr std::uint64_t kMileposts[2] = {4000, 24000};
    // Pages read for one look: a few where values at random places are not needed.
    static constexpr unsigned kFewPages = 12, kMostPages = 64;
    static constexpr unsigned kFewFurther = 4, kPagesFurther = 40,
                              kPagesToMilepost = 600;  // … and beyond it
    static constexpr std::uint64_t kMostAgain = 1u << 20, kMostOnWayAgain = 20000;

    unsigned pages_further() const { return pages_ == kMostPages ? kPagesFurther : kFewFurther; }
    // What the library does that we have loaded into the program is not the program's.
    bool is_ours(std::uint64_t pc) const { return t_.process->is_in_heap_library(pc); }
    Ahead start() {
        b_.memory.forget_stores();
        b_.state = b_.stopped;
        return go_on();
    }
    Ahead go_on() { return Machine::ahead(b_.state, b_.memory, *t_.process->kept, follows_vectors_); }

    template <class Met>
    machine::Passed pass(Ahead& ahead, std::uint64_t block, std::uint64_t accesses,
                         std::uint64_t instructions, Met met) {
        return machine::pass(ahead, b_.state, b_.memory, t_.process->kept->loops, block, shift_,
                             accesses, instructions, met);
    }

    // How far it comes is how far it goes from then on.
    Ahead start_window() {
        Ahead ahead = start();
        if (way_ == 0) return ahead;
        constexpr std::uint64_t kNoBlock = ~std::uint64_t{0} >> 8;
        machine::Passed passed =
            pass(ahead, kNoBlock, way_, is_measured_ ? kMostOnWayAgain : most_on_way_, [] {});
        left_out_ = passed.left_out;
        bool is_same = !is_measured_ || passed.accesses == way_;
        way_ = passed.ended || passed.left_out == 0 || !is_same ? 0 : passed.accesses;
        is_measured_ = true;
        return way_ == 0 ? start() : go_on();
    }

    void go(unsigned skip, unsigned uses, unsigned length, std::uint64_t instructions, unsigned drawn) {
        Ahead ahead = start_window();
        Window& window = b_.window;
        window.start(uses, length);
        b_.log.start();
        skip_ = skip;
        accesses_ = way_;
        distance_ = {};
        b_.use.pc = b_.reuse.pc = 0;
        b_.drawn = drawn;
        lacked_vectors_ = false;
        machine::Step step = ahead.run(instructions, [&] {
            const machine::Touched& op = ahead.touched();
            b_.log.add(op.address, op.all_bytes(), ahead.at(), ahead.is_first(), op.writes,
                       Machine::link(b_.state));
            if (is_ours(ahead.at())) return true;
            for_blocks(op, shift_, [&](std::uint64_t block, std::uint64_t address) {
                if (++accesses_ <= way_ + skip || window.length() == length) return;
                Window::Reuse reuse = window.meet(block);
                unsigned now = window.length();
                b_.address[now] = address;
                if (now == drawn) note(b_.use, ahead, address, accesses_);
                if (reuse.time == 0 || now - reuse.time != drawn) return;
                distance_ = reuse;
                note(b_.reuse, ahead, address, accesses_);
            });
            return window.length() < length && (uses > 1 || distance_.time == 0);
        });
        stopped_ = step == machine::Step::stop;
        lacked_vectors_ = stopped_ && ahead.left_out_vectors();
    }

    [[gnu::noinline]] void note(Noted& to, const Ahead& ahead, std::uint64_t address,
                                std::uint64_t accesses) {
        const machine::Touched& op = ahead.touched();
        to.pc = ahead.at();
        to.trap_pc = Machine::trap_pc(ahead);
        to.address = address;
        to.accesses = accesses;
        to.bytes = op.bytes;
        to.writes = op.writes;
        read_path(b_.memory, b_.state, *t_.process, to.path);
        Machine::step_back(ahead, to.path);
        to.path.pc = to.pc;
    }

    Bench& b_;
    Task& t_;
    bool follows_vectors_;
    unsigned pages_, shift_, skip_ = 0;
    std::uint64_t accesses_ = 0;
    Window::Reuse distance_;
    // Accesses that are passed before the window, instructions interpreted for that; of the accesses,
    // those left out.
    std::uint64_t way_ = 0, most_on_way_ = 0, left_out_ = 0;
    bool is_measured_ = false;  // how far it comes
    std::uint64_t rest_ = 0;    // accesses that the instruction of a use made after it
    bool lacked_vectors_ = false, stopped_ = false;
};

}  // namespace revisit::watch::outside
