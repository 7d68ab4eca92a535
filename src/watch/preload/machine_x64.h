// x86_64: see machine.h.
#pragma once

#include <string.h>

#include "machine/x64/ahead.h"
#include "machine/x64/before.h"
#include "machine/x64/loops.h"
#include "machine/x64/unwind.h"
#include "watch/preload/path.h"
#include "watch/preload/system.h"

namespace revisit::watch {

using namespace machine;

struct Machine {
    using State = X64State;
    static constexpr bool kFollowsVectors = false;  // through moves only, and these always
    static constexpr bool kSkipsLoops = true;
    template <class Memory>
    using Ahead = X64Ahead<Memory>;

    struct Kept {
        X64Table decoded;
        X64Unwinder unwinder;
        X64Loops loops;
        void start() {}
    };

    static std::uint64_t pc(const ucontext_t& context) {
        return static_cast<std::uint64_t>(context.uc_mcontext.gregs[REG_RIP]);
    }
    static void read_state(State& state, const ucontext_t& context);
    static std::uint64_t stack_pointer(const State& state) { return state.r[4] - 128; }  // and below

    template <class Memory>
    static Ahead<Memory> ahead(State& state, Memory& memory, Kept& kept, bool) {
        return Ahead<Memory>(state, memory, &kept.decoded, true);
    }
    template <class AnyAhead>
    static std::uint64_t trap_pc(const AnyAhead& ahead) {
        return ahead.is_string() ? 0 : ahead.next();
    }
    template <class Memory>
    static std::uint64_t sprung_by(Memory& memory, const State& state, std::uint64_t word) {
        return x64_instruction_before(memory, state, word);
    }

    template <class Memory>
    static void read_path(Memory& memory, const State& s, Kept& kept, Path& path) {
        path.pc = s.pc;
        path.link = 0;
        path.count = kept.unwinder.walk(memory, s, find_unwind_table, path.back, Path::kMost);
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

    static bool recover(Kept* kept, int signal, ucontext_t& context);
    // .eh_frame_hdr of the module that holds `pc`; 0 = none.
    static std::uint64_t find_unwind_table(std::uint64_t pc);
};

}  // namespace revisit::watch
