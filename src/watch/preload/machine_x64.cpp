// x86_64: see machine.h.
#include <string.h>

#include "watch/preload/machine.h"

__asm__(
    ".text\n"
    ".globl revisit_watch_load, revisit_watch_load_failed\n"
    ".hidden revisit_watch_load, revisit_watch_load_failed\n"
    ".type revisit_watch_load, @function\n"
    "revisit_watch_load:\n"
    "    mov (%rdi), %rax\n"
    "    mov $1, %edx\n"
    "    ret\n"
    "revisit_watch_load_failed:\n"
    "    xor %eax, %eax\n"
    "    xor %edx, %edx\n"
    "    ret\n");

// The one lookup of modules that is safe in a signal handler; glibc has it since 2.35. Its result is
// laid out here, and it has another name, because older headers do not tell it. Without it calls are
// followed by frame pointers.
extern "C" {
struct revisit_found_object {
    unsigned long long flags;
    void *map_start, *map_end;
    void* link_map;
    void* eh_frame;
    unsigned long long reserved[7];
};
__attribute__((weak)) int revisit_find_object(
    void* address, struct revisit_found_object* result) __asm__("_dl_find_object");
}

namespace revisit::watch {

std::uint64_t Machine::find_unwind_table(std::uint64_t pc) {
    if (revisit_find_object == nullptr) return 0;
    revisit_found_object found;
    if (revisit_find_object(reinterpret_cast<void*>(pc), &found) != 0) return 0;
    return reinterpret_cast<std::uint64_t>(found.eh_frame);
}

void Machine::read_state(State& s, const ucontext_t& context) {
    const greg_t* g = context.uc_mcontext.gregs;
    static constexpr int kOrder[16] = {REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP,
                                       REG_RSI, REG_RDI, REG_R8,  REG_R9,  REG_R10, REG_R11,
                                       REG_R12, REG_R13, REG_R14, REG_R15};
    for (unsigned i = 0; i < 16; i++) s.r[i] = static_cast<std::uint64_t>(g[kOrder[i]]);
    s.known = 0xffff;
    s.pc = static_cast<std::uint64_t>(g[REG_RIP]);
    auto flags = static_cast<std::uint64_t>(g[REG_EFL]);
    auto flag = [&](unsigned bit, unsigned ours) { return flags >> bit & 1 ? ours : 0u; };
    s.flags = static_cast<std::uint8_t>(flag(0, kCarry) | flag(2, kParity) | flag(6, kZero) |
                                        flag(7, kSign) | flag(11, kOverflow));
    s.flags_known = kAllFlags;
    s.backwards = flags >> 10 & 1;
    __asm__("mov %%fs:0, %0" : "=r"(s.fs_base));  // its own address, by the ABI
    s.v_known = 0;
    if (const fpregset_t vectors = context.uc_mcontext.fpregs; vectors != nullptr) {
        memcpy(s.v, vectors->_xmm, sizeof vectors->_xmm);
        s.v_known = 0xffff;
        constexpr unsigned kControl = 0xffc0, kUsual = 0x1f80;  // the low bits tell what has happened
        s.plain_floats = (vectors->mxcsr & kControl) == kUsual;
    }
}

bool Machine::recover(Kept*, int signal, ucontext_t& context) {
    greg_t& pc = context.uc_mcontext.gregs[REG_RIP];
    if (signal == SIGILL || pc != reinterpret_cast<greg_t>(&revisit_watch_load)) return false;
    pc = reinterpret_cast<greg_t>(&revisit_watch_load_failed);
    return true;
}

}  // namespace revisit::watch
