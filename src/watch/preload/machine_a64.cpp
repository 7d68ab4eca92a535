// aarch64: see machine.h.
#include <string.h>

#include "watch/preload/machine.h"

__asm__(
    ".text\n"
    ".globl revisit_watch_load, revisit_watch_load_failed\n"
    ".hidden revisit_watch_load, revisit_watch_load_failed\n"
    ".type revisit_watch_load, %function\n"
    "revisit_watch_load:\n"
    "    ldr x0, [x0]\n"
    "    mov x1, #1\n"
    "    ret\n"
    "revisit_watch_load_failed:\n"
    "    mov x0, #0\n"
    "    mov x1, #0\n"
    "    ret\n");

namespace revisit::watch {

void Machine::read_state(State& s, const ucontext_t& context) {
    const mcontext_t& machine = context.uc_mcontext;
    for (unsigned i = 0; i < 31; i++) s.x[i] = machine.regs[i];
    s.x[31] = machine.sp;
    s.known = ~0u;
    s.pc = machine.pc;
    s.nzcv = machine.pstate >> 28 & 15;
    s.flags_known = true;
    __asm__("mrs %0, tpidr_el0" : "=r"(s.thread_pointer));
    s.v_known = 0;
    const auto* part = reinterpret_cast<const unsigned char*>(machine.__reserved);
    for (unsigned left = sizeof machine.__reserved; left >= 8;) {
        std::uint32_t magic, size;
        memcpy(&magic, part, 4);
        memcpy(&size, part + 4, 4);
        if (size == 0 || size > left) break;
        if (magic == 0x46508001) {  // the vector registers
            memcpy(s.v, part + 16, sizeof s.v);
            s.v_known = ~0u;
            break;
        }
        part += size;
        left -= size;
    }
}

bool Machine::recover(Kept* kept, int signal, ucontext_t& context) {
    mcontext_t& machine = context.uc_mcontext;
    if (signal != SIGILL) {
        if (machine.pc != reinterpret_cast<std::uint64_t>(&revisit_watch_load)) return false;
        machine.pc = reinterpret_cast<std::uint64_t>(&revisit_watch_load_failed);
        return true;
    }
    if (kept == nullptr || !kept->vectors.is_code(machine.pc)) return false;
    machine.pc = kept->vectors.failed(machine.pc);
    return true;
}

}  // namespace revisit::watch
