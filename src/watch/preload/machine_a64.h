// aarch64: see machine.h.
#pragma once

#include "machine/a64/loops.h"
#include "watch/preload/path.h"
#include "watch/preload/system.h"

namespace revisit::watch {

using namespace machine;

struct Machine {
    using State = A64State;
    static constexpr bool kFollowsVectors = true;
    static constexpr bool kSkipsLoops = true;
    template <class Memory>
    using Ahead = A64Ahead<Memory>;

    struct Kept {
        VectorUnit vectors;
        QuickTable quick;
        A64Loops loops;
        void start() { vectors = VectorUnit(map_memory(VectorUnit::kCodeBytes, 7 /* all */)); }
    };

    static std::uint64_t pc(const ucontext_t& context) { return context.uc_mcontext.pc; }
    static void read_state(State& state, const ucontext_t& context);
    static std::uint64_t stack_pointer(const State& state) { return state.x[31]; }

    template <class Memory>
    static Ahead<Memory> ahead(State& state, Memory& memory, Kept& kept, bool follows_vectors) {
        return Ahead<Memory>(state, memory, follows_vectors ? &kept.vectors : nullptr, &kept.quick);
    }
    template <class AnyAhead>
    static std::uint64_t trap_pc(const AnyAhead& ahead) {
        return ahead.at();
    }
    template <class Memory>
    static std::uint64_t sprung_by(Memory&, const State& state, std::uint64_t) {
        return state.pc;
    }

    // Return addresses by frame pointers, read as the look-ahead reads.
    template <class Memory>
    static void read_path(Memory& memory, const State& s, Kept&, Path& path) {
        path.pc = s.pc;
        path.count = 0;
        std::uint64_t low = s.x[31], frame = s.is_known(29) && s.is_known(31) ? s.x[29] : 0;
        path.link = s.is_known(30) ? s.x[30] : 0;
        while (path.count < Path::kMost && frame >= low && frame - low < 8u << 20 && (frame & 7) == 0 &&
               frame != 0) {
            std::uint64_t next, back;
            if (memory.load(frame, 8, next) != Loaded::value ||
                memory.load(frame + 8, 8, back) != Loaded::value || back == 0)
                break;
            back &= 0xffffffffffff;  // without what signs it
            if (path.count == 0 && back == (path.link & 0xffffffffffff)) path.link = 0;
            path.back[path.count++] = back;
            low = frame + 16;
            frame = next;
        }
    }

    // The state is still in the function of the access.
    template <class AnyAhead>
    static void step_back(const AnyAhead&, Path&) {}

    static bool recover(Kept* kept, int signal, ucontext_t& context);
};

}  // namespace revisit::watch
