// Registers of a thread in its own signal handler, and reads of memory that need not be there.
#pragma once

#include <signal.h>
#include <ucontext.h>

#include <cstdint>

#include "machine/x64/ahead.h"
#include "machine/x64/before.h"
#include "machine/x64/unwind.h"

namespace revisit::machine {

struct SafeWord {
    std::uint64_t value, is_readable;
};
extern "C" SafeWord revisit_watch_load(std::uint64_t address);
extern "C" void revisit_watch_load_failed();

struct Machine {
    static std::uint64_t pc(const ucontext_t& context) {
        return static_cast<std::uint64_t>(context.uc_mcontext.gregs[REG_RIP]);
    }
    static void read_state(X64State& state, const ucontext_t& context);
    // Lets a read of ours that faulted return nothing; false = the fault was another's.
    static bool recover(int signal, ucontext_t& context);
    // .eh_frame_hdr of the module that holds `pc`; 0 = none.
    static std::uint64_t find_unwind_table(std::uint64_t pc);
};

}  // namespace revisit::machine
