/* Algorithm 1 of Shen and Shaw (2008), for comparison: a call stores, counts and compares. The place in
 * the slot, its end and the first word of the block under way are in thread-local memory.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <string.h>

#include "record/clang/runtime.h"

#define process __revisit_process
enum { LIMIT, BLOCK }; /* in tls->own */

static void opened(revisit_lane* lane) {
    __revisit_tls.own[LIMIT] = lane->start + (lane->slot < 0 ? process.scratch : process.usable) / 8;
    __revisit_tls.own[BLOCK] = lane->start;
}

EXPORTED const revisit_way __revisit_way_call = {.samples = 1, .opened = opened};

/* A block that meets the end of its slot moves to the next one whole. */
static __attribute__((noinline)) void full_in_block(revisit_tls* tls) {
    int saved = errno;
    uint64_t carried[REVISIT_BLOCK_MAX + 1];
    size_t words = tls->own[BLOCK] ? (size_t)(tls->cursor - tls->own[BLOCK]) : 0;
    /* In scratch memory a handler may have moved either; what is there does not matter. */
    if (words > REVISIT_BLOCK_MAX + 1) words = 0;
    uint64_t* block = tls->own[BLOCK];
    if (!tls->self) {
        if (block) memcpy(carried, block, words * 8);
        revisit_thread_begin(__atomic_fetch_add(&process.threads, 1, __ATOMIC_RELAXED));
    } else {
        memcpy(carried, block, words * 8);
        if (tls->self->depth) revisit_settle(tls->self, (uintptr_t)__builtin_frame_address(0));
        revisit_roll(&tls->self->lane[tls->self->depth], block);
    }
    if (tls->self) {
        memcpy(tls->cursor, carried, words * 8);
        tls->cursor += words;
    } else {
        tls->cursor = (uint64_t*)REVISIT_BOOT_ADDRESS;
    }
    errno = saved;
}

EXPORTED void __revisit_append(uint64_t address) {
    revisit_tls* tls = &__revisit_tls;
    *tls->cursor++ = address;
    if (__builtin_expect(tls->cursor >= tls->own[LIMIT], 0)) full_in_block(tls);
}

EXPORTED void __revisit_append_block(uint64_t header) {
    revisit_tls* tls = &__revisit_tls;
    tls->own[BLOCK] = tls->cursor;
    *tls->cursor++ = header;
    if (__builtin_expect(tls->cursor >= tls->own[LIMIT], 0)) full_in_block(tls);
}
