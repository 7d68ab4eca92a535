/* Signals: handlers that are recorded code themselves.
 *
 * An interrupted function has its cursor in a register and words behind it that thread-local memory
 * does not know of. So a handler must not append where memory says: every handler is called through
 * `on_signal`, which gives it a lane with a slot of its own and afterwards puts memory's cursor back. A
 * handler may leave by siglongjmp; then the interrupted frames are dead, which the stack pointer shows
 * the next time we look, and what they had written is found behind memory's cursor up to the first
 * zero.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include "record/clang/runtime.h"
#include "record/clang/sampler.h"

#define process __revisit_process

extern int __sigaction(int, const struct sigaction*, struct sigaction*); /* libc's own name for it */

static uintptr_t stack_of(const ucontext_t* context) {
#if defined(__aarch64__)
    return context->uc_mcontext.sp;
#else
    return (uintptr_t)context->uc_mcontext.gregs[REG_RSP];
#endif
}

/* Words that interrupted code had written beyond memory's cursor. A block cut short is given the count
   of the addresses it has. */
static uint64_t* end_of_written(const revisit_lane* lane, uint64_t* at) {
    uint64_t* end = lane->start + REVISIT_SLOT_WORDS;
    while (at < end && *at) {
        if (!(*at & REVISIT_BLOCK_BIT)) {
            if (at + 4 > end || !at[3]) break;
            at += 4;
            continue;
        }
        uint32_t count = REVISIT_BLOCK_COUNT(*at), n = 0;
        while (n < count && at + 1 + n < end && at[1 + n]) n++;
        if (n < count) {
            *at = REVISIT_BLOCK(REVISIT_BLOCK_ID(*at), n);
            return at + 1 + n;
        }
        at += 1 + count;
    }
    return at;
}

/* Lanes whose handler was jumped out of: `stack` is where the thread runs (or was interrupted) now. */
void revisit_settle(revisit_thread* self, uintptr_t stack) {
    while (self->depth > 0) {
        revisit_lane* top = &self->lane[self->depth];
        revisit_lane* below = top - 1;
        int alive = top->other_stack_high
                        ? stack >= top->other_stack_low && stack < top->other_stack_high
                        : stack < top->interrupted_stack;
        if (alive) return;
        if (below->slot >= 0) {
            /* Other ways than the default have their cursor in memory. */
            uint64_t* end = process.way ? top->saved_cursor : end_of_written(below, top->saved_cursor);
            int32_t slot = below->slot;
            below->slot = -1;
            revisit_leave(below);
            revisit_hand_over(slot, (uint64_t)(end - below->start));
        }
        below->slot = top->slot;
        below->start = top->start;
        below->counts = top->counts;
        below->end = top->end;
        below->own = top->own;
        memset(&top->own, 0, sizeof top->own);
        top->slot = -1;
        self->depth--;
    }
}

static int enter_lane(revisit_thread* self, const ucontext_t* context) {
    revisit_tls* tls = &__revisit_tls;
    uintptr_t stack = stack_of(context);
    revisit_settle(self, stack);
    if (self->depth + 1 >= LANES) return 0;
    revisit_lane* lane = &self->lane[self->depth + 1];
    lane->saved_cursor = tls->cursor;
    memcpy(lane->saved_own, tls->own, sizeof tls->own);
    lane->interrupted_stack = stack;
    char here;
    uintptr_t low = (uintptr_t)context->uc_stack.ss_sp, high = low + context->uc_stack.ss_size;
    int elsewhere = !(context->uc_stack.ss_flags & SS_DISABLE) && (uintptr_t)&here >= low &&
                    (uintptr_t)&here < high;
    lane->other_stack_low = elsewhere ? low : 0;
    lane->other_stack_high = elsewhere ? high : 0;
    self->depth++;
    revisit_open(lane);
    return 1;
}

static void leave_lane(revisit_thread* self) {
    revisit_tls* tls = &__revisit_tls;
    revisit_lane* lane = &self->lane[self->depth];
    revisit_leave(lane);
    int32_t slot = lane->slot;
    lane->slot = -1;
    if (slot >= 0) revisit_hand_over(slot, (uint64_t)(tls->cursor - lane->start));
    if (process.sampling) revisit_sampler_take(self, lane->start, tls->cursor);
    tls->cursor = lane->saved_cursor;
    memcpy(tls->own, lane->saved_own, sizeof tls->own);
    self->depth--;
}

static void call_program(int number, siginfo_t* info, void* context) {
    struct sigaction action = process.handler[number].action;
    if (action.sa_flags & SA_RESETHAND) process.handler[number].action.sa_handler = SIG_DFL;
    if (action.sa_handler == SIG_DFL || action.sa_handler == SIG_IGN) return;
    if (action.sa_flags & SA_SIGINFO)
        action.sa_sigaction(number, info, context);
    else
        action.sa_handler(number);
}

void revisit_on_signal(int number, siginfo_t* info, void* context) {
    int saved = errno;
    revisit_thread* self = __revisit_tls.self;
    int entered = self && process.stream && enter_lane(self, context);
    errno = saved;
    call_program(number, info, context);
    saved = errno;
    if (entered) leave_lane(self);
    errno = saved;
}

/* The program's view of its handlers is its own: what it set is what it reads back. */
EXPORTED int sigaction(int number, const struct sigaction* new_action, struct sigaction* old_action) {
    int own = revisit_own_signal(), ours = number == own;
    int recorded = process.stream || own;
    if (!recorded || number < 1 || number > 64) return __sigaction(number, new_action, old_action);
    struct sigaction known = process.handler[number].action, set, was;
    if (new_action) {
        set = *new_action;
        int caught = set.sa_handler != SIG_DFL && set.sa_handler != SIG_IGN;
        /* Known before it can be called; taken back if the kernel will not have it. */
        if (caught || ours) process.handler[number].action = *new_action;
        if (caught) {
            set.sa_sigaction = revisit_on_signal;
            set.sa_flags |= SA_SIGINFO;
            if (own) sigdelset(&set.sa_mask, own);
        }
    }
    int result = 0;
    if (ours)
        was = known;
    else
        result = __sigaction(number, new_action ? &set : NULL, &was);
    if (result) {
        process.handler[number].action = known;
        return result;
    }
    if (old_action) *old_action = was.sa_sigaction == revisit_on_signal || ours ? known : was;
    return 0;
}

static sighandler_t set_handler(int number, sighandler_t handler, int flags) {
    struct sigaction action, old;
    memset(&action, 0, sizeof action);
    action.sa_handler = handler;
    action.sa_flags = flags;
    if (!(flags & SA_NODEFER)) sigaddset(&action.sa_mask, number);
    return sigaction(number, &action, &old) ? SIG_ERR : old.sa_handler;
}
EXPORTED sighandler_t signal(int number, sighandler_t handler) {
    return set_handler(number, handler, SA_RESTART);
}
EXPORTED sighandler_t bsd_signal(int number, sighandler_t handler) {
    return set_handler(number, handler, SA_RESTART);
}
EXPORTED sighandler_t __sysv_signal(int number, sighandler_t handler) {
    return set_handler(number, handler, SA_RESETHAND | SA_NODEFER);
}

/* A thread must not block the signal that the way to append needs. */
static int change_mask(int how, const sigset_t* set, sigset_t* old) {
    sigset_t own;
    if (set) {
        own = *set;
        if (revisit_own_signal() && how != SIG_UNBLOCK) sigdelset(&own, revisit_own_signal());
        /* libc's own two: cancellation and set*id */
        ((uint64_t*)(void*)&own)[0] &= ~(3ull << 31);
    }
    return syscall(SYS_rt_sigprocmask, how, set ? &own : NULL, old, 8) ? errno : 0;
}
EXPORTED int pthread_sigmask(int how, const sigset_t* set, sigset_t* old) {
    int saved = errno;
    int error = change_mask(how, set, old);
    errno = saved;
    return error;
}
EXPORTED int sigprocmask(int how, const sigset_t* set, sigset_t* old) {
    return change_mask(how, set, old) ? -1 : 0;
}
