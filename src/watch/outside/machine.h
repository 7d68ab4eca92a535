// What differs between processors when a thread is sampled from outside, behind one small interface.
//
// Machine has
//     State, Ahead<Memory>, Kept          what the interpreter of src/machine works on, and keeps
//     read_state(thread, state)           registers of a stopped thread, vector registers included
//     read_state(registers, state)        … of a record, in the order of kSampledRegisters
//     complete(state, other)              … and what a record does not have, from another state
//     is_stepping(thread)                 whether it was stopped amid the step over a watched access
//     read_path(memory, state, …)         the call stack
//     trap_pc(ahead)                      where a watchpoint on the access just interpreted traps
//     sprung_by(memory, state, word)      the instruction that sprang a trap, from the state there
// A watchpoint traps before the access on aarch64 and after it on x86_64.
#pragma once

#if defined(__aarch64__)
#include "watch/outside/machine_a64.h"
#elif defined(__x86_64__)
#include "watch/outside/machine_x64.h"
#else
#error "the sampler knows aarch64 and x86_64"
#endif
