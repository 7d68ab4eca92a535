/* Signals: handlers that are recorded code themselves, and the fault that signals a full slot (mmu).
 *
 * An interrupted function has its cursor in a register and words behind it that thread-local memory
 * does not know of. So a handler must not append where memory says: every handler is called through
 * `on_signal`, which gives it a lane with a slot of its own and afterwards puts memory's cursor back. A
 * handler may leave by siglongjmp; then the interrupted frames are dead, which the stack pointer shows
 * the next time we look, and what they had written is found behind memory's cursor up to the first
 * zero.
 *
 * The mmu scheme keeps one page of a slot closed, the last or the one before it in turn. A store to it
 * faults; we open it so that the block under way can end there, close the other page for the slot's
 * next use, and point memory's cursor at the next slot. The interrupted code then adds the block's
 * words to that cursor, so the next slot begins with as many words of nothing (records that name the
 * thread). Faults that are not ours go to the program's own handler, or end it as they would have.
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
            uint64_t* end = process.scheme == REVISIT_SCHEME_MMU
                                ? top->saved_cursor
                                : end_of_written(below, top->saved_cursor);
            int32_t slot = below->slot;
            below->slot = -1;
            revisit_finish_pending(below);
            revisit_hand_over(slot, (uint64_t)(end - below->start));
        }
        below->slot = top->slot;
        below->start = top->start;
        below->counts = top->counts;
        below->guard = top->guard;
        below->pending = top->pending;
        below->pending_start = top->pending_start;
        below->pending_block = top->pending_block;
        top->slot = top->pending = -1;
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
    lane->saved_limit = tls->limit;
    lane->saved_block = tls->block;
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
    revisit_finish_pending(lane);
    int32_t slot = lane->slot;
    lane->slot = -1;
    if (slot >= 0) revisit_hand_over(slot, (uint64_t)(tls->cursor - lane->start));
    if (process.sampling) revisit_sampler_take(self, lane->start, tls->cursor);
    tls->cursor = lane->saved_cursor;
    tls->limit = lane->saved_limit;
    tls->block = lane->saved_block;
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

static void on_signal(int number, siginfo_t* info, void* context) {
    int saved = errno;
    revisit_thread* self = __revisit_tls.self;
    int entered = self && process.stream && enter_lane(self, context);
    errno = saved;
    call_program(number, info, context);
    saved = errno;
    if (entered) leave_lane(self);
    errno = saved;
}

/* mmu: which page of the lane's window is closed. */
static char* page_at(const revisit_lane* lane, unsigned from_end) {
    return (char*)lane->start + (size_t)REVISIT_SLOT_WORDS * 8 - (from_end + 1) * process.page;
}

void revisit_close_page(revisit_lane* lane) {
    static const uint64_t none = REVISIT_RECORD(REVISIT_THREAD, 0);
    uint8_t* closed = lane->slot >= 0 ? &process.closed_page[lane->slot] : NULL;
    unsigned which = closed && *closed < 2 ? *closed : 0;
    char* page = page_at(lane, which);
    if (!closed || *closed == 2) mprotect(page, process.page, PROT_READ);
    if (closed) *closed = (uint8_t)which;
    lane->guard = (uint64_t*)page;
    for (unsigned i = 0; i < REVISIT_MMU_BLOCK_MAX && lane->slot >= 0; i++)
        lane->start[i] = none + __revisit_tls.self->number;
}

/* The slot before this one was left with a block under way, which has ended since. */
void revisit_finish_pending(revisit_lane* lane) {
    if (lane->pending < 0) return;
    uint64_t* block = lane->pending_block;
    uint32_t words = *block & REVISIT_BLOCK_BIT ? 1 + REVISIT_BLOCK_COUNT(*block) : *block ? 4 : 0;
    int32_t slot = lane->pending;
    lane->pending = -1;
    revisit_hand_over(slot, (uint64_t)(block + words - lane->pending_start));
}

static int page_was_hit(const siginfo_t* info) {
    revisit_thread* self = __revisit_tls.self;
    char* at = info->si_addr;
    if (info->si_code <= 0) return 0;
    if (!self) {
        /* A thread we have not met: its first block ends in the boot pages, then it has a slot. */
        uintptr_t page = (uintptr_t)at & ~(process.page - 1);
        if (page < REVISIT_BOOT_ADDRESS || page >= REVISIT_BOOT_ADDRESS + REVISIT_MMU_BOOT_BYTES)
            return 0;
        mprotect((void*)page, process.page, PROT_READ | PROT_WRITE);
        revisit_thread_begin(__atomic_fetch_add(&process.threads, 1, __ATOMIC_RELAXED));
        return 1;
    }
    revisit_lane* lane = &self->lane[self->depth];
    char* page = (char*)lane->guard;
    if (at < page || at >= page + process.page) return 0;

    unsigned other = page == page_at(lane, 0) ? 1 : 0;
    mprotect(page, process.page, PROT_READ | PROT_WRITE);
    mprotect(page_at(lane, other), process.page, PROT_READ);
    if (lane->slot < 0) { /* scratch: round and round */
        lane->guard = (uint64_t*)page_at(lane, other);
        __revisit_tls.cursor = lane->start;
        return 1;
    }
    process.closed_page[lane->slot] = (uint8_t)other;
    revisit_finish_pending(lane);
    lane->pending = lane->slot;
    lane->pending_start = lane->start;
    lane->pending_block = __revisit_tls.cursor;
    revisit_open(lane);
    return 1;
}

static void on_fault(int number, siginfo_t* info, void* context) {
    int saved = errno;
    if (page_was_hit(info)) {
        errno = saved;
        return;
    }
    struct sigaction action = process.handler[number].action;
    if (action.sa_handler == SIG_DFL || action.sa_handler == SIG_IGN) {
        /* Not ours and nobody's: let it end the program as it would have. */
        struct sigaction plain;
        memset(&plain, 0, sizeof plain);
        plain.sa_handler = SIG_DFL;
        __sigaction(number, &plain, NULL);
        if (info->si_code <= 0) syscall(SYS_tgkill, getpid(), syscall(SYS_gettid), number);
        return;
    }
    /* As if the kernel had called it: the mask it interrupted and its own. But never SIGSEGV itself,
       its code must be able to fill a slot. */
    uint64_t mask = *(const uint64_t*)(const void*)&((const ucontext_t*)context)->uc_sigmask |
                    *(const uint64_t*)(const void*)&action.sa_mask;
    mask &= ~(1ull << (SIGSEGV - 1));
    syscall(SYS_rt_sigprocmask, SIG_SETMASK, &mask, NULL, 8);
    on_signal(number, info, context);
}

void revisit_signals_start(void) {
    if (process.scheme != REVISIT_SCHEME_MMU) return;
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_sigaction = on_fault;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
    sigfillset(&action.sa_mask);
    __sigaction(SIGSEGV, &action, &process.handler[SIGSEGV].action);
}

/* The program's view of its handlers is its own: what it set is what it reads back. */
EXPORTED int sigaction(int number, const struct sigaction* new_action, struct sigaction* old_action) {
    int ours = process.scheme == REVISIT_SCHEME_MMU && number == SIGSEGV;
    int recorded = process.stream || process.scheme == REVISIT_SCHEME_MMU;
    if (!recorded || number < 1 || number > 64) return __sigaction(number, new_action, old_action);
    struct sigaction known = process.handler[number].action, set, was;
    if (new_action) {
        set = *new_action;
        int caught = set.sa_handler != SIG_DFL && set.sa_handler != SIG_IGN;
        /* Known before it can be called; taken back if the kernel will not have it. */
        if (caught || ours) process.handler[number].action = *new_action;
        if (caught) {
            set.sa_sigaction = on_signal;
            set.sa_flags |= SA_SIGINFO;
            if (process.scheme == REVISIT_SCHEME_MMU) sigdelset(&set.sa_mask, SIGSEGV);
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
    if (old_action) *old_action = was.sa_sigaction == on_signal || ours ? known : was;
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

/* mmu: a thread that blocks SIGSEGV would be killed by its first full slot. */
static int change_mask(int how, const sigset_t* set, sigset_t* old) {
    sigset_t own;
    if (set) {
        own = *set;
        if (process.scheme == REVISIT_SCHEME_MMU && how != SIG_UNBLOCK) sigdelset(&own, SIGSEGV);
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
