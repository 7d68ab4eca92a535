// aarch64: see machine.h.
#pragma once

#include <sys/types.h>

#include "machine/a64/a64.h"
#include "machine/loops.h"
#include "watch/outside/path.h"
#include "watch/samples/samples.h"

namespace revisit::watch::outside {

struct Machine {
    using State = machine::A64State;
    static constexpr bool kFollowsVectors = true;
    static constexpr bool kReadWhereItRan = false;  // processors.h; not measured
    // A virtual machine: 20 us, from stretches of 13 to 230 us of one loop.
    static constexpr UsualSlowStart kSlowStart{20000, 8000};
    static constexpr UsualSlowStart kWithoutStop{12000, 8000};  // not measured
    template <class Memory>
    using Ahead = machine::A64Ahead<Memory>;
    static inline machine::VectorUnit* in_use = nullptr;  // whose code this process may be executing

    // Of one process.
    struct Kept {
        Kept();
        ~Kept();
        Kept(const Kept&) = delete;
        void modules_changed() {}

        machine::VectorUnit vectors;
        machine::QuickTable quick;
        machine::Loops<machine::A64> loops;

     private:
        void* code_ = nullptr;
    };

    static bool read_state(pid_t thread, State& state);
    // Whether the kernel has a stopped thread step over a watched access.
    static bool is_stepping(pid_t thread);
    // x0 to x30, the stack pointer, the place.
    static constexpr std::uint64_t kSampledRegisters = (std::uint64_t{1} << 33) - 1;
    static void read_state(const std::uint64_t* registers, State& state);
    // What a record does not have, from another state of the thread.
    static void complete(State& state, const State& other) {
        state.thread_pointer = other.thread_pointer;
    }
    static constexpr unsigned kBelowStack = 0;
    static std::uint64_t stack_pointer(const State& state) { return state.x[31]; }
    // Where a copy of the stack begins.
    static std::uint64_t stack_top(const State& state) { return state.x[31]; }

    template <class Memory>
    static Ahead<Memory> ahead(State& state, Memory& memory, Kept& kept, bool follows_vectors) {
        in_use = &kept.vectors;
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

    // The register for return addresses; 0 = not known.
    static std::uint64_t link(const State& s) { return s.is_known(30) ? s.x[30] : 0; }

    // Return addresses by frame pointers.
    template <class Memory, class FindTable>
    static void read_path(Memory& memory, const State& s, Kept&, FindTable, Path& path) {
        using machine::Loaded;
        constexpr std::uint64_t kAddress = 0xffffffffffff;  // without what signs it
        path.pc = s.pc;
        path.count = 0;
        std::uint64_t low = s.x[31], frame = s.is_known(29) && s.is_known(31) ? s.x[29] : 0;
        path.link = link(s);
        while (path.count < Path::kMost && frame >= low && frame - low < 8u << 20 && (frame & 7) == 0 &&
               frame != 0) {
            std::uint64_t next, back;
            if (memory.load(frame, 8, next) != Loaded::value ||
                memory.load(frame + 8, 8, back) != Loaded::value || back == 0)
                break;
            back &= kAddress;
            if (path.count == 0 && back == (path.link & kAddress)) path.link = 0;
            path.back[path.count++] = back;
            low = frame + 16;
            frame = next;
        }
    }

    // The state is still in the function of the access.
    template <class AnyAhead>
    static void step_back(const AnyAhead&, Path&) {}
};

}  // namespace revisit::watch::outside
