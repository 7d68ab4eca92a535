// x86_64: see machine.h.
#if defined(__x86_64__)
#include "watch/outside/machine_x64.h"

#include <cpuid.h>
#include <elf.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>

#include <cstring>

namespace revisit::watch::outside {
namespace {

// What of the processor must be known: asked for once, as the answer takes long in a virtual machine.
struct Features {
    bool has_bmi = false;
    unsigned high_128 = 0, masks = 0, high_256 = 0, upper_16 = 0;  // where they are in a saved state
};

const Features& features() {
    static const Features found = [] {
        Features now;
        unsigned a, b, c, d;
        if (__get_cpuid_count(7, 0, &a, &b, &c, &d)) now.has_bmi = b >> 3 & 1;
        if (__get_cpuid_count(13, 2, &a, &b, &c, &d) && a >= 256) now.high_128 = b;
        if (__get_cpuid_count(13, 5, &a, &b, &c, &d) && a >= 64) now.masks = b;
        if (__get_cpuid_count(13, 6, &a, &b, &c, &d) && a >= 512) now.high_256 = b;
        if (__get_cpuid_count(13, 7, &a, &b, &c, &d) && a >= 1024) now.upper_16 = b;
        return now;
    }();
    return found;
}

// The parts of vector registers above 16 bytes, and masks. A part that is not in use is zero; the
// kernel keeps a part or the processor has none, and then the registers are not there.
void read_wide(machine::X64State& s, const unsigned char* saved, std::size_t bytes) {
    std::uint64_t parts, in_use;
    std::memcpy(&parts, saved + 464, sizeof parts);  // the features that the kernel saves
    std::memcpy(&in_use, saved + 512, sizeof in_use);
    const Features& at = features();
    auto is_kept = [&](unsigned offset, unsigned size) {
        return offset >= 576 && offset + size <= bytes;
    };
    auto part = [&](unsigned number, unsigned offset, unsigned size) -> const unsigned char* {
        return parts >> number & 1 && is_kept(offset, size) && in_use >> number & 1 ? saved + offset
                                                                                    : nullptr;
    };
    auto is_readable = [&](unsigned number, unsigned offset, unsigned size) {
        return !(parts >> number & 1) || is_kept(offset, size);
    };
    if (!is_readable(2, at.high_128, 256) || !is_readable(5, at.masks, 64) ||
        !is_readable(6, at.high_256, 512) || !is_readable(7, at.upper_16, 1024))
        return;
    const unsigned char *high_128 = part(2, at.high_128, 256), *masks = part(5, at.masks, 64),
                        *high_256 = part(6, at.high_256, 512), *upper = part(7, at.upper_16, 1024);
    auto copy = [](void* to, const unsigned char* from, std::size_t size) {
        if (from != nullptr)
            std::memcpy(to, from, size);
        else
            std::memset(to, 0, size);
    };
    for (unsigned i = 0; i < 16; i++) {
        copy(s.v[i].word + 2, high_128 ? high_128 + 16 * i : nullptr, 16);
        copy(s.v[i].word + 4, high_256 ? high_256 + 32 * i : nullptr, 32);
        copy(s.v[16 + i].word, upper ? upper + 64 * i : nullptr, 64);
    }
    for (unsigned i = 0; i < 8; i++) copy(&s.k[i], masks ? masks + 8 * i : nullptr, 8);
    std::memset(s.v_known, 15, sizeof s.v_known);
    s.k_known = 255;
}

void forget_vectors(machine::X64State& s) {
    std::memset(s.v_known, 0, sizeof s.v_known);
    s.k_known = 0;
    s.has_bmi = features().has_bmi;
}

void read_flags(std::uint64_t flags, machine::X64State& s) {
    auto flag = [&](unsigned bit, unsigned ours) { return flags >> bit & 1 ? ours : 0u; };
    using namespace machine;
    s.flags = static_cast<std::uint8_t>(flag(0, kCarry) | flag(2, kParity) | flag(6, kZero) |
                                        flag(7, kSign) | flag(11, kOverflow));
    s.flags_known = kAllFlags;
    s.backwards = flags >> 10 & 1;
}

}  // namespace

bool Machine::read_state(pid_t thread, State& s) {
    user_regs_struct g;
    iovec part{&g, sizeof g};
    if (ptrace(PTRACE_GETREGSET, thread, NT_PRSTATUS, &part) != 0 || part.iov_len != sizeof g)
        return false;
    const unsigned long long order[16] = {g.rax, g.rcx, g.rdx, g.rbx, g.rsp, g.rbp, g.rsi, g.rdi,
                                          g.r8,  g.r9,  g.r10, g.r11, g.r12, g.r13, g.r14, g.r15};
    for (unsigned i = 0; i < 16; i++) s.r[i] = order[i];
    s.known = 0xffff;
    s.pc = g.rip;
    read_flags(g.eflags, s);
    s.fs_base = g.fs_base;
    forget_vectors(s);
    alignas(64) static unsigned char saved[16384];
    part = {saved, sizeof saved};
    if (ptrace(PTRACE_GETREGSET, thread, NT_X86_XSTATE, &part) != 0 || part.iov_len < 576) return true;
    for (unsigned i = 0; i < 16; i++) {
        std::memcpy(s.v[i].word, saved + 160 + 16 * i, 16);
        s.v_known[i] = 1;
    }
    read_wide(s, saved, part.iov_len);
    std::memcpy(&s.mxcsr, saved + 24, sizeof s.mxcsr);
    return true;
}

void Machine::read_state(const std::uint64_t* registers, State& s) {
    // perf's order of the first eight to the processor's
    static constexpr unsigned kFrom[8] = {0, 2, 3, 1, 7, 6, 4, 5};
    for (unsigned i = 0; i < 8; i++) s.r[i] = registers[kFrom[i]];
    for (unsigned i = 0; i < 8; i++) s.r[8 + i] = registers[10 + i];
    s.pc = registers[8];
    s.known = 0xffff;
    read_flags(registers[9], s);
    forget_vectors(s);
}

}  // namespace revisit::watch::outside
#endif
