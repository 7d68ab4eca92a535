/* What a thread sends to the others: a ring that it alone writes and anybody reads.
 *
 * In private stacks an entry is a block the thread wrote, once a page, with the first and the last
 * time, how often, and the first write's site and parts of the block; in a shared one it is a block
 * that entered the thread's sets. Who took a block from a thread is the first write after that thread's
 * last use. That is the entry's first write, unless the use came amid the page's writes. Blocks for
 * which a reader has seen that are contended: they have an entry for each site and parts from then on.
 * Others do not, for a sweep would log each line as often as it has elements. Entries may be changed
 * until the log's head is published past them, at the end of a page. A reader that has fallen half a
 * ring behind goes on from there.
 *
 * Words of an entry of a private stack: block; clock of the first write; thread << 40 | clocks from
 * there to the last; site << 32 | parts << 20 | count; call path of the first write. Parts are the
 * first and the last << 6, of 64.
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
#define LOG_SPAN ((1ull << 40) - 1)
#define LOG_COUNT ((1ull << 20) - 1)

static inline uint64_t* contended_word(uint64_t block) {
    return &common->contended[hash(block) >> 58];
}
static inline uint64_t contended_bit(uint64_t block) {
    return 1ull << (hash(block) >> 52 & 63);
}

/* Parts of a block that an access touches: a 64th each, a byte of small ones. */
static inline uint32_t parts_of(uint64_t block, uint64_t address, uint64_t bytes, uint64_t shift) {
    uint64_t start = block << shift, size = 1ull << shift, part = shift > 6 ? shift - 6 : 0;
    uint64_t first = address > start ? address - start : 0;
    uint64_t last = address + bytes - (bytes != 0) - start;
    if (last >= size) last = size - 1;
    return (uint32_t)(first >> part | last >> part << 6);
}

static inline void log_write(sampler* s, uint64_t block, uint64_t site, uint32_t parts) {
    uint64_t clock = clock_of(s), i = hash(block) >> 54;
    uint64_t what = site << 32 | (uint64_t)parts << 20, path = revisit_on_path(s, site) >> 32;
    int is_contended =
        (__atomic_load_n(contended_word(block), __ATOMIC_RELAXED) & contended_bit(block)) != 0;
    if (is_contended) i = (i + (hash(what + path) >> 54)) % SEEN_BLOCKS;
    if (s->seen[i].page == s->page && s->seen[i].block == block) {
        uint64_t at = s->seen[i].index;
        const uint64_t* word = s->log->ring[at % LOG_ENTRIES].word;
        if (!is_contended || ((word[3] & ~LOG_COUNT) == what && word[4] == path)) {
            uint64_t span = clock - word[1];
            log_put(s, at, 2, (word[2] & ~LOG_SPAN) | (span > LOG_SPAN ? LOG_SPAN : span));
            if ((word[3] & LOG_COUNT) < LOG_COUNT) log_put(s, at, 3, word[3] + 1);
            return;
        }
    }
    uint64_t at = s->log_next++;
    s->seen[i].page = s->page;
    s->seen[i].block = block;
    s->seen[i].index = at;
    log_put(s, at, 0, block);
    log_put(s, at, 1, clock);
    log_put(s, at, 2, (uint64_t)s->thread << 40);
    log_put(s, at, 3, what | 1);
    log_put(s, at, 4, path);
}
static inline void log_publish(sampler* s) {
    if (!s->log) return;
    if (s->log->head != s->log_next) __atomic_store_n(&s->log->head, s->log_next, __ATOMIC_RELEASE);
    __atomic_store_n(&s->log->complete, s->last_clock, __ATOMIC_RELEASE);
}

#endif
