// See x64_context.h.
#include "x64_context.h"

#include <cpuid.h>
#include <string.h>

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

namespace revisit::machine {

std::uint64_t Machine::find_unwind_table(std::uint64_t pc) {
    if (revisit_find_object == nullptr) return 0;
    revisit_found_object found;
    if (revisit_find_object(reinterpret_cast<void*>(pc), &found) != 0) return 0;
    return reinterpret_cast<std::uint64_t>(found.eh_frame);
}

namespace {

// What of the processor must be known: asked for once, as the answer takes long in a virtual machine.
struct Features {
    bool asked = false, has_bmi = false;
    unsigned high_128 = 0, masks = 0, high_256 = 0, upper_16 = 0;  // where they are in a saved state
};

const Features& features() {
    static Features found;
    if (__atomic_load_n(&found.asked, __ATOMIC_ACQUIRE)) return found;
    Features now;
    unsigned a, b, c, d;
    if (__get_cpuid_count(7, 0, &a, &b, &c, &d)) now.has_bmi = b >> 3 & 1;
    if (__get_cpuid_count(13, 2, &a, &b, &c, &d) && a >= 256) now.high_128 = b;
    if (__get_cpuid_count(13, 5, &a, &b, &c, &d) && a >= 64) now.masks = b;
    if (__get_cpuid_count(13, 6, &a, &b, &c, &d) && a >= 512) now.high_256 = b;
    if (__get_cpuid_count(13, 7, &a, &b, &c, &d) && a >= 1024) now.upper_16 = b;
    found.has_bmi = now.has_bmi;  // any thread finds the same
    found.high_128 = now.high_128;
    found.masks = now.masks;
    found.high_256 = now.high_256;
    found.upper_16 = now.upper_16;
    __atomic_store_n(&found.asked, true, __ATOMIC_RELEASE);
    return found;
}

// The parts of vector registers above 16 bytes, and masks, which the kernel saves beside the old state,
// as it says itself there. A part that is not in use is zero.
void read_wide(X64State& s, const unsigned char* saved) {
    constexpr unsigned kMagic = 0x46505853;
    struct {
        std::uint32_t magic, bytes;
        std::uint64_t parts;
        std::uint32_t state_bytes;
    } told;
    memcpy(&told, saved + 464, sizeof told);
    std::uint64_t in_use;
    memcpy(&in_use, saved + 512, sizeof in_use);
    if (told.magic != kMagic) return;
    const Features& at = features();
    // The kernel keeps a part or the processor has none, and then the registers are not there.
    auto part = [&](unsigned number, unsigned offset, unsigned bytes) -> const unsigned char* {
        bool is_kept = told.parts >> number & 1 && offset >= 576 && offset + bytes <= told.state_bytes;
        return is_kept && in_use >> number & 1 ? saved + offset : nullptr;
    };
    auto is_readable = [&](unsigned number, unsigned offset, unsigned bytes) {
        return !(told.parts >> number & 1) || (offset >= 576 && offset + bytes <= told.state_bytes);
    };
    if (!is_readable(2, at.high_128, 256) || !is_readable(5, at.masks, 64) ||
        !is_readable(6, at.high_256, 512) || !is_readable(7, at.upper_16, 1024))
        return;
    const unsigned char *high_128 = part(2, at.high_128, 256), *masks = part(5, at.masks, 64),
                        *high_256 = part(6, at.high_256, 512), *upper = part(7, at.upper_16, 1024);
    for (unsigned i = 0; i < 16; i++) {
        if (high_128)
            memcpy(s.v[i].word + 2, high_128 + 16 * i, 16);
        else
            memset(s.v[i].word + 2, 0, 16);
        if (high_256)
            memcpy(s.v[i].word + 4, high_256 + 32 * i, 32);
        else
            memset(s.v[i].word + 4, 0, 32);
        if (upper)
            memcpy(s.v[16 + i].word, upper + 64 * i, 64);
        else
            memset(s.v[16 + i].word, 0, 64);
    }
    for (unsigned i = 0; i < 8; i++) {
        if (masks)
            memcpy(&s.k[i], masks + 8 * i, 8);
        else
            s.k[i] = 0;
    }
    memset(s.v_known, 15, sizeof s.v_known);
    s.k_known = 255;
}

}  // namespace

void Machine::read_state(X64State& s, const ucontext_t& context) {
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
    memset(s.v_known, 0, sizeof s.v_known);
    s.k_known = 0;
    s.has_bmi = features().has_bmi;
    if (const fpregset_t vectors = context.uc_mcontext.fpregs; vectors != nullptr) {
        for (unsigned i = 0; i < 16; i++) {
            memcpy(s.v[i].word, vectors->_xmm + i, 16);
            s.v_known[i] = 1;
        }
        read_wide(s, reinterpret_cast<const unsigned char*>(vectors));
        s.mxcsr = vectors->mxcsr;
    }
}

bool Machine::recover(int signal, ucontext_t& context) {
    greg_t& pc = context.uc_mcontext.gregs[REG_RIP];
    if (signal == SIGILL || pc != reinterpret_cast<greg_t>(&revisit_watch_load)) return false;
    pc = reinterpret_cast<greg_t>(&revisit_watch_load_failed);
    return true;
}

}  // namespace revisit::machine
