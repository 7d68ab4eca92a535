/* Algorithm 2 of Shen and Shaw (2008, section 3), for comparison: no check at all. One page of a slot
 * is closed, the last or the one before it in turn. A store to it faults; we open it so that the block
 * under way can end there, close the other page for the slot's next use, and point memory's cursor at
 * the next slot. The interrupted code then adds the block's words to that cursor, so the next slot
 * begins with as many words of nothing (records that name the thread). Faults that are not ours go to
 * the program's own handler, or end it as they would have.
 *
 * A lane notes the slot before, whose last block was under way when its page was hit. A slot's mapping
 * notes which page is closed.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include "record/clang/runtime.h"

#define process __revisit_process
#define BOOT_BYTES (16u << 20) /* one closed page for every thread that the runtime has not met */
/* What remains of a block when it hits the closed page must fit into one. */
#define NOTHING_WORDS 500u
_Static_assert(REVISIT_BLOCK_ACCESSES + 1 <= NOTHING_WORDS && NOTHING_WORDS <= 4096 / 8, "a page");

enum { PENDING, PENDING_START, PENDING_BLOCK }; /* in lane->own: slot + 1 and two addresses */
enum { NONE_CLOSED = 1, LAST_CLOSED = 2 };      /* in process.mapped; then the one before the last */

extern int __sigaction(int, const struct sigaction*, struct sigaction*); /* libc's own name for it */

static char* page_at(const revisit_lane* lane, unsigned from_end) {
    return (char*)lane->start + (size_t)REVISIT_SLOT_WORDS * 8 - (from_end + 1) * process.page;
}

static void opened(revisit_lane* lane) {
    static const uint64_t none = REVISIT_RECORD(REVISIT_THREAD, 0);
    uint8_t* closed = lane->slot >= 0 ? &process.mapped[lane->slot] : NULL;
    unsigned which = closed && *closed != NONE_CLOSED ? *closed - LAST_CLOSED : 0;
    char* page = page_at(lane, which);
    if (!closed || *closed == NONE_CLOSED) mprotect(page, process.page, PROT_READ);
    if (closed) *closed = (uint8_t)(LAST_CLOSED + which);
    lane->end = (uint64_t*)page;
    for (unsigned i = 0; i < NOTHING_WORDS && lane->slot >= 0; i++)
        lane->start[i] = none + __revisit_tls.self->number;
}

/* The slot before this one was left with a block under way, which has ended since. */
static void finish_pending(revisit_lane* lane) {
    uint64_t* own = lane->own.word;
    if (own[PENDING] == 0) return;
    const uint64_t *start = (uint64_t*)own[PENDING_START], *block = (uint64_t*)own[PENDING_BLOCK];
    uint32_t words = *block & REVISIT_BLOCK_BIT ? 1 + REVISIT_BLOCK_COUNT(*block) : *block ? 4 : 0;
    int32_t slot = (int32_t)own[PENDING] - 1;
    own[PENDING] = 0;
    revisit_hand_over(slot, (uint64_t)(block + words - start));
}

static int page_was_hit(const siginfo_t* info) {
    revisit_thread* self = __revisit_tls.self;
    char* at = info->si_addr;
    if (info->si_code <= 0) return 0;
    if (!self) {
        /* A thread we have not met: its first block ends in the boot pages, then it has a slot. */
        uintptr_t page = (uintptr_t)at & ~(process.page - 1);
        if (page < REVISIT_BOOT_ADDRESS || page >= REVISIT_BOOT_ADDRESS + BOOT_BYTES) return 0;
        mprotect((void*)page, process.page, PROT_READ | PROT_WRITE);
        revisit_thread_begin(__atomic_fetch_add(&process.threads, 1, __ATOMIC_RELAXED));
        return 1;
    }
    revisit_lane* lane = &self->lane[self->depth];
    char* page = (char*)lane->end;
    if (at < page || at >= page + process.page) return 0;

    unsigned other = page == page_at(lane, 0) ? 1 : 0;
    mprotect(page, process.page, PROT_READ | PROT_WRITE);
    mprotect(page_at(lane, other), process.page, PROT_READ);
    if (lane->slot < 0) { /* scratch: round and round */
        lane->end = (uint64_t*)page_at(lane, other);
        __revisit_tls.cursor = lane->start;
        return 1;
    }
    process.mapped[lane->slot] = (uint8_t)(LAST_CLOSED + other);
    finish_pending(lane);
    lane->own.word[PENDING] = (uint64_t)lane->slot + 1;
    lane->own.word[PENDING_START] = (uint64_t)lane->start;
    lane->own.word[PENDING_BLOCK] = (uint64_t)__revisit_tls.cursor;
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
    revisit_on_signal(number, info, context);
}

static void start(void) {
    char* boot = (char*)REVISIT_BOOT_ADDRESS;
    mmap(boot + REVISIT_BOOT_BYTES, BOOT_BYTES - REVISIT_BOOT_BYTES, PROT_READ,
         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
    mprotect(boot, REVISIT_BOOT_BYTES, PROT_READ);
    process.usable = process.scratch = (size_t)REVISIT_SLOT_WORDS * 8; /* the closed page ends it */
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_sigaction = on_fault;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
    sigfillset(&action.sa_mask);
    __sigaction(SIGSEGV, &action, &process.handler[SIGSEGV].action);
}

EXPORTED const revisit_way __revisit_way_mmu = {
    .signal = SIGSEGV, .start = start, .opened = opened, .leaving = finish_pending};
