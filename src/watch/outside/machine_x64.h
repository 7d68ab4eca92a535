// x86_64: see machine.h.
#pragma once

#include <string.h>
#include <sys/types.h>

#include "machine/loops.h"
#include "machine/x64/ahead.h"
#include "machine/x64/before.h"
#include "machine/x64/unwind.h"
#include "watch/outside/path.h"
#include "watch/samples/samples.h"

namespace revisit::watch::outside {

struct Machine {
    using State = machine::X64State;
    static constexpr bool kFollowsVectors = true;  // or but moves and integers
    // Reading what a thread has written from another processor slows it down afterwards: processors.h.
    static constexpr bool kReadWhereItRan = true;
    // Two virtual machines: 15 to 30 us on a quiet host, 25 to 100 with neighbours in the caches.
    static constexpr UsualSlowStart kSlowStart{25000, 30000};
    // Where nothing stopped at the beginning: the timer's record, and the stop at the end. Eight loops:
    // 14 to 31 us in six, 54 and less than none in two that have other reasons.
    static constexpr UsualSlowStart kWithoutStop{25000, 10000};
    template <class Memory>
    using Ahead = machine::X64Ahead<Memory>;

    // Of one process.
    struct Kept {
        machine::X64Table lifted;
        machine::X64Unwinder unwinder;
        machine::Loops<machine::X64> loops;
        void modules_changed() { unwinder.forget(); }
    };

    static bool read_state(pid_t thread, State& state);
    static bool is_stepping(pid_t) { return false; }  // a watchpoint traps after the access
    // ax, bx, cx, dx, si, di, bp, sp, ip, flags, r8 to r15, as perf numbers them.
    static constexpr std::uint64_t kSampledRegisters = 0xff03ff;
    static void read_state(const std::uint64_t* registers, State& state);
    // What a record does not have, from another state of the thread.
    static void complete(State& state, const State& other) {
        state.fs_base = other.fs_base;
        state.mxcsr = other.mxcsr;
    }
    static constexpr unsigned kBelowStack = 128;  // bytes that code uses without moving the pointer
    static std::uint64_t stack_pointer(const State& state) { return state.r[4] - kBelowStack; }
    // Where a copy of the stack begins.
    static std::uint64_t stack_top(const State& state) { return state.r[4]; }

    template <class Memory>
    static Ahead<Memory> ahead(State& state, Memory& memory, Kept& kept, bool follows_vectors) {
        return Ahead<Memory>(state, memory, &kept.lifted, true, follows_vectors);
    }
    template <class AnyAhead>
    static std::uint64_t trap_pc(const AnyAhead& ahead) {
        return ahead.is_string() ? 0 : ahead.next();
    }
    template <class Memory>
    static std::uint64_t sprung_by(Memory& memory, const State& state, std::uint64_t word) {
        return machine::x64_instruction_before(memory, state, word);
    }

    static std::uint64_t link(const State&) { return 0; }  // return addresses are on the stack

    template <class Memory, class FindTable>
    static void read_path(Memory& memory, const State& s, Kept& kept, FindTable find_table,
                          Path& path) {
        path.pc = s.pc;
        path.link = 0;
        path.count = kept.unwinder.walk(memory, s, find_table, path.back, Path::kMost);
    }

    // A call has gone into the next function already, a return has left its own.
    template <class AnyAhead>
    static void step_back(const AnyAhead& ahead, Path& path) {
        if (ahead.is_call() && path.count > 0) {
            path.count--;
            memmove(path.back, path.back + 1, path.count * sizeof *path.back);
        } else if (ahead.is_return()) {
            if (path.count < Path::kMost) path.count++;
            memmove(path.back + 1, path.back, (path.count - 1) * sizeof *path.back);
            path.back[0] = ahead.next();
        }
    }
};

}  // namespace revisit::watch::outside
