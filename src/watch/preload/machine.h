// All that the sampler must know of the processor it runs on, behind one interface.
//
// struct Machine has
//   State                        what a look-ahead starts from
//   Ahead<Memory>                the interpreter
//   Kept                         what it keeps from one look-ahead to the next: what was decoded, code;
//                                loops: how a replay leaves out iterations, or NoLoops
//   pc(context)                  where a signal interrupted the thread
//   read_state(state, context)   all the registers there
//   stack_pointer(state)         what the stack is in use from
//   kFollowsVectors              whether it can be told to follow vector registers
//   kSkipsLoops                  whether kept.loops leaves out iterations when looking ahead
//   ahead(state, memory, kept, follows_vectors)
//   trap_pc(ahead)               where a watchpoint on what it just touched traps: at the instruction
//                                on aarch64, which traps before; after it on x86_64, which traps after;
//                                0 = cannot be told (a string instruction may trap elements later)
//   sprung_by(memory, state, word)   at a trap: the instruction that touched the word
//   read_path(memory, state, kept, path)   the calls that lead here
//   step_back(ahead, path)       … to the access just made, where that was a call or a return
//   recover(kept, signal, context)   whether a fault is the look-ahead's own, and made good
// and, in assembler, revisit_watch_load: reads a word that need not be there.
// System calls are in system.h. A watchpoint reads and writes alike on both (x86_64 knows none on reads
// alone), covers an aligned word of 8 bytes and counts an instruction once, whatever it touches there.
#pragma once

#include <signal.h>
#include <ucontext.h>

#include <cstdint>

namespace revisit::watch {

struct SafeWord {
    std::uint64_t value, is_readable;
};
extern "C" SafeWord revisit_watch_load(std::uint64_t address);
extern "C" void revisit_watch_load_failed();

}  // namespace revisit::watch

#if defined(__aarch64__)
#include "watch/preload/machine_a64.h"
#elif defined(__x86_64__)
#include "watch/preload/machine_x64.h"
#else
#error "the sampler knows aarch64 and x86_64"
#endif
