/* What a thread sends to the others: a ring that it alone writes and anybody reads.
 *
 * In private stacks an entry is a block the thread wrote, once a page, with the first and the last time
 * and how often; in a shared one it is a block that entered the thread's sets. Entries may be changed
 * until the log's head is published past them, at the end of a page. A reader that has fallen half a
 * ring behind goes on from there.
 */
#ifndef REVISIT_RECORD_CLANG_SAMPLER_LOG_H
#define REVISIT_RECORD_CLANG_SAMPLER_LOG_H

#include "record/clang/sampler_stack.h"

static inline void log_put(sampler* s, uint64_t at, int word, uint64_t value) {
    __atomic_store_n(&s->log->ring[at % LOG_ENTRIES].word[word], value, __ATOMIC_RELAXED);
}
static inline int log_ready(sampler* s) {
    if (!s->log) return 0;
    if (!s->log->ring) {
        log_entry* ring = own_memory(LOG_ENTRIES * sizeof *ring);
        if (!ring) return 0;
        __atomic_store_n(&s->log->ring, ring, __ATOMIC_RELEASE);
    }
    return 1;
}
static inline void log_write(sampler* s, uint64_t block) {
    uint64_t clock = clock_of(s), i = hash(block) >> 54;
    if (s->seen[i].page == s->page && s->seen[i].block == block) {
        uint64_t at = s->seen[i].index;
        log_put(s, at, 2, clock);
        log_put(s, at, 3, s->log->ring[at % LOG_ENTRIES].word[3] + 1);
        return;
    }
    uint64_t at = s->log_next++;
    s->seen[i].page = s->page;
    s->seen[i].block = block;
    s->seen[i].index = at;
    log_put(s, at, 0, block);
    log_put(s, at, 1, clock);
    log_put(s, at, 2, clock);
    log_put(s, at, 3, 1);
}
static inline void log_publish(sampler* s) {
    if (s->log && s->log->head != s->log_next)
        __atomic_store_n(&s->log->head, s->log_next, __ATOMIC_RELEASE);
}

#endif
