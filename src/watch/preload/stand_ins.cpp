// The calls of the C library that this one stands in for, so that the program does not notice it.
//
// SIGTRAP is ours while the program runs: one that masks all signals keeps that one open, one that sets
// a handler for it gets it for its own traps only. Faults come here first and are passed on. A program
// that is about to restrict its own system calls (seccomp) is left alone from then on: what sampling
// needs might be punished by death.
#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <string.h>
#include <sys/prctl.h>

#include "watch/preload/stand_in.h"
#include "watch/preload/thread.h"

namespace revisit::watch {
namespace {

// Blocking everything must not block our signal.
const sigset_t* without_trap(int how, const sigset_t* set, sigset_t& copy) {
    if (!process.active || set == nullptr || how == SIG_UNBLOCK) return set;
    copy = *set;
    sigdelset(&copy, SIGTRAP);
    return &copy;
}

bool is_ours(int signal) {
    for (int one : kOurSignals)
        if (signal == one) return true;
    return false;
}

}  // namespace

int real_sigaction(int signal, const struct sigaction* action, struct sigaction* old) {
    static auto real =
        REVISIT_NEXT(sigaction, int (*)(int, const struct sigaction*, struct sigaction*));
    return real(signal, action, old);
}

}  // namespace revisit::watch

using namespace revisit::watch;

REVISIT_STANDS_IN int REVISIT_NAME(pthread_create)(pthread_t* thread, const pthread_attr_t* attributes,
                                                   void* (*function)(void*), void* argument) {
    static auto real = REVISIT_NEXT(pthread_create, CreateThread);
    return create_thread(real, thread, attributes, function, argument);
}

REVISIT_STANDS_IN int REVISIT_NAME(pthread_sigmask)(int how, const sigset_t* set,
                                                    sigset_t* old) noexcept {
    static auto real = REVISIT_NEXT(pthread_sigmask, int (*)(int, const sigset_t*, sigset_t*));
    sigset_t copy;
    return real(how, without_trap(how, set, copy), old);
}

REVISIT_STANDS_IN int REVISIT_NAME(sigprocmask)(int how, const sigset_t* set, sigset_t* old) noexcept {
    static auto real = REVISIT_NEXT(sigprocmask, int (*)(int, const sigset_t*, sigset_t*));
    sigset_t copy;
    return real(how, without_trap(how, set, copy), old);
}

REVISIT_STANDS_IN int REVISIT_NAME(sigaction)(int signal, const struct sigaction* action,
                                              struct sigaction* old) noexcept {
    if (!process.active) return real_sigaction(signal, action, old);
    if (is_ours(signal)) {
        struct sigaction before = process.program_action[signal];
        if (action != nullptr) {
            process.program_action[signal] = *action;
            if (is_fault(signal)) install_fault_handler(signal);
        }
        if (old != nullptr) *old = before;
        return 0;
    }
    if (action == nullptr) return real_sigaction(signal, action, old);
    struct sigaction copy = *action;
    sigdelset(&copy.sa_mask, SIGTRAP);
    return real_sigaction(signal, &copy, old);
}

REVISIT_STANDS_IN void (*REVISIT_NAME(signal)(int signal, void (*handler)(int)) noexcept)(int) {
    static auto real = REVISIT_NEXT(signal, void (*(*)(int, void (*)(int)))(int));
    if (!is_ours(signal) || !process.active) return real(signal, handler);
    struct sigaction action, before;
    memset(&action, 0, sizeof action);
    action.sa_handler = handler;
    action.sa_flags = SA_RESTART;
    sigaction(signal, &action, &before);
    return before.sa_handler;
}

REVISIT_STANDS_IN int REVISIT_NAME(sigaltstack)(const stack_t* __restrict wanted,
                                                stack_t* __restrict old) noexcept {
    static auto real = REVISIT_NEXT(sigaltstack, int (*)(const stack_t*, stack_t*));
    Thread* t = self;
    if (!process.active || t == nullptr) return real(wanted, old);
    int failed = change_signal_stack(*t, wanted, old);
    if (failed == 0) return 0;
    errno = failed;
    return -1;
}

REVISIT_STANDS_IN int REVISIT_NAME(prctl)(int option, ...) noexcept {
    static auto real = REVISIT_NEXT(prctl, int (*)(int, ...));
    va_list list;
    va_start(list, option);
    unsigned long a = va_arg(list, unsigned long), b = va_arg(list, unsigned long);
    unsigned long c = va_arg(list, unsigned long), d = va_arg(list, unsigned long);
    va_end(list);
    if (option == PR_SET_SECCOMP) stop_everywhere();
    return real(option, a, b, c, d);
}

REVISIT_STANDS_IN long REVISIT_NAME(syscall)(long number, ...) noexcept {
    static auto real = REVISIT_NEXT(syscall, long (*)(long, ...));
    va_list list;
    va_start(list, number);
    long a = va_arg(list, long), b = va_arg(list, long), c = va_arg(list, long);
    long d = va_arg(list, long), e = va_arg(list, long), f = va_arg(list, long);
    va_end(list);
    constexpr long kAskOnly = 2;  // the first two operations restrict
    if (number == SYS_seccomp && a < kAskOnly) stop_everywhere();
    return real(number, a, b, c, d, e, f);
}

#ifndef REVISIT_STATIC
// Another file may come to lie where this one lay.
REVISIT_STANDS_IN int dlclose(void* handle) noexcept {
    static auto real = REVISIT_NEXT(dlclose, int (*)(void*));
    int result = real(handle);
    __atomic_add_fetch(&process.unloads, 1, __ATOMIC_RELEASE);
    return result;
}
#endif

REVISIT_STANDS_IN [[noreturn]] void REVISIT_NAME(_exit)(int status) {
    end_all();
    system_call(SYS_exit_group, status);
    __builtin_unreachable();
}

REVISIT_STANDS_IN [[noreturn]] void REVISIT_NAME(_Exit)(int status) noexcept {
    _exit(status);
}
