// aarch64: see machine.h.
#if defined(__aarch64__)
#include "watch/outside/machine_a64.h"

#include <elf.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <ucontext.h>

#include <cstring>

namespace revisit::watch::outside {
namespace {

bool read_set(pid_t thread, int set, void* to, std::size_t bytes) {
    iovec part{to, bytes};
    return ptrace(PTRACE_GETREGSET, thread, set, &part) == 0 && part.iov_len == bytes;
}

// The program may have instructions that this processor has not: then it was not going to come here.
void skip_illegal(int number, siginfo_t*, void* raw) {
    auto& place = static_cast<ucontext_t*>(raw)->uc_mcontext.pc;
    if (Machine::in_use != nullptr && Machine::in_use->is_code(place))
        place = Machine::in_use->failed(place);
    else
        signal(number, SIG_DFL);
}

}  // namespace

Machine::Kept::Kept() {
    constexpr std::size_t kBytes = machine::VectorUnit::kCodeBytes;
    void* code =
        mmap(nullptr, kBytes, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (code == MAP_FAILED) return;
    code_ = code;
    vectors = machine::VectorUnit(code);
    struct sigaction action{};
    action.sa_sigaction = skip_illegal;
    action.sa_flags = SA_SIGINFO;
    sigaction(SIGILL, &action, nullptr);
}

Machine::Kept::~Kept() {
    if (in_use == &vectors) in_use = nullptr;
    if (code_ != nullptr) munmap(code_, machine::VectorUnit::kCodeBytes);
}

bool Machine::is_stepping(pid_t thread) {
    constexpr std::uint64_t kSoftwareStep = 1u << 21;  // of the processor state
    user_regs_struct registers;
    return read_set(thread, NT_PRSTATUS, &registers, sizeof registers) &&
           registers.pstate & kSoftwareStep;
}

bool Machine::read_state(pid_t thread, State& s) {
    user_regs_struct general;
    if (!read_set(thread, NT_PRSTATUS, &general, sizeof general)) return false;
    for (unsigned i = 0; i < 31; i++) s.x[i] = general.regs[i];
    s.x[31] = general.sp;
    s.known = ~0u;
    s.pc = general.pc;
    s.nzcv = general.pstate >> 28 & 15;
    s.flags_known = true;
    if (!read_set(thread, NT_ARM_TLS, &s.thread_pointer, sizeof s.thread_pointer)) s.thread_pointer = 0;
    user_fpsimd_struct vectors;
    static_assert(sizeof vectors.vregs == sizeof s.v);
    s.v_known = 0;
    if (read_set(thread, NT_PRFPREG, &vectors, sizeof vectors)) {
        std::memcpy(s.v, vectors.vregs, sizeof s.v);
        s.v_known = ~0u;
    }
    return true;
}

void Machine::read_state(const std::uint64_t* registers, State& s) {
    for (unsigned i = 0; i < 32; i++) s.x[i] = registers[i];
    s.pc = registers[32];
    s.known = ~0u;
    s.flags_known = false;
    s.v_known = 0;
}

}  // namespace revisit::watch::outside
#endif
