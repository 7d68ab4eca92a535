// Faults that the look-ahead makes: on memory that is not there, and in an instruction that this
// processor does not have. Neither happens as long as what is foreseen is what happens; both must not
// hurt the program when another thread has changed what was foreseen. All other faults are the
// program's.
#include <string.h>

#include "watch/preload/thread.h"

namespace revisit::watch {

bool is_fault(int signal) {
    return signal == SIGSEGV || signal == SIGBUS || signal == SIGILL;
}

namespace {

// With a fault pending, the kernel may deliver a trap that is blocked before it (it takes the first
// synchronous signal in the queue), and the fault then on top, as if at the trap handler's first
// instruction. The access happens again when that handler returns, and faults again.
bool comes_too_soon(const siginfo_t* info, const ucontext_t& context) {
    return info->si_code > 0 && Machine::pc(context) == reinterpret_cast<std::uint64_t>(&handle_trap);
}

void handle_fault(int signal, siginfo_t* info, void* context) {
    if (comes_too_soon(info, *static_cast<ucontext_t*>(context))) return;
    Machine::Kept* kept = self ? &self->kept : nullptr;
    if (!Machine::recover(kept, signal, *static_cast<ucontext_t*>(context)))
        pass_on(signal, info, context);
}

}  // namespace

// The program's wishes, with our handler before its own.
void install_fault_handler(int signal) {
    const struct sigaction& wanted = process.program_action[signal];
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_sigaction = handle_fault;
    bool has_handler = (wanted.sa_flags & SA_SIGINFO) ||
                       (wanted.sa_handler != SIG_DFL && wanted.sa_handler != SIG_IGN);
    action.sa_flags = SA_SIGINFO | (has_handler ? wanted.sa_flags & ~SA_RESETHAND : SA_ONSTACK);
    if (has_handler) action.sa_mask = wanted.sa_mask;
    sigdelset(&action.sa_mask, SIGTRAP);
    real_sigaction(signal, &action, nullptr);
}

// Gives a signal that is not ours to the program, as it asked for it.
void pass_on(int signal, siginfo_t* info, void* context) {
    const struct sigaction& wanted = process.program_action[signal];
    if (wanted.sa_flags & SA_SIGINFO)
        wanted.sa_sigaction(signal, info, context);
    else if (wanted.sa_handler == SIG_DFL || (wanted.sa_handler == SIG_IGN && is_fault(signal))) {
        struct sigaction plain;
        memset(&plain, 0, sizeof plain);
        plain.sa_handler = SIG_DFL;
        real_sigaction(signal, &plain, nullptr);
        // A fault happens again on return; a signal that was sent must be sent again.
        if (!is_fault(signal) || info->si_code <= 0)
            system_call(SYS_tgkill, system_call(SYS_getpid), system_call(SYS_gettid), signal);
    } else if (wanted.sa_handler != SIG_IGN)
        wanted.sa_handler(signal);
}

}  // namespace revisit::watch
