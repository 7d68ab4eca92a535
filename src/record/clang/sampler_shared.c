/* One stack that all threads share, in parallel or in turn.
 *
 * Parallel. A sample is known to all threads: each marks, when it notices, where in its log the
 * sample's set begins, and logs what enters its own sets from then on. Who finds the reuse (any thread)
 * counts the union of all logs since the marks. A sample's state is odd while it is open; who makes it
 * even has closed it, so that one thread reports its end. In turn: one table for all under a fair lock,
 * page by page, while a sample is open; there a sample is as in a private stack.
 *
 * Source. Schuff, Kulkarni, Pai 2010, sections 3.3 and 5.2 (sequential sampling).
 */
#define _GNU_SOURCE
#include <sys/syscall.h>
#include <unistd.h>

#include "record/clang/sampler_log.h"

void revisit_notice(sampler* s) {
    uint64_t version = __atomic_load_n(&common->version, __ATOMIC_ACQUIRE);
    if (version == s->version) return;
    s->version = version;
    s->own.top = NO_BLOCK;
    uint32_t kept = 0;
    uint64_t filter = 0;
    uint8_t known[MOST_SHARED] = {0};
    for (uint32_t i = 0; i < s->mark_count; i++) {
        shared_mark* mark = &s->marks[i];
        if (__atomic_load_n(&common->shared[mark->slot].state, __ATOMIC_ACQUIRE) != mark->state)
            continue;
        known[mark->slot] = 1;
        filter |= filter_bit(mark->block);
        s->marks[kept++] = *mark;
    }
    s->mark_count = kept;
    for (uint32_t i = 0; i < MOST_SHARED; i++) {
        shared_sample* shared = &common->shared[i];
        uint64_t now = __atomic_load_n(&shared->state, __ATOMIC_ACQUIRE);
        if (!(now & 1) || known[i]) continue;
        uint64_t block = __atomic_load_n(&shared->block, __ATOMIC_RELAXED);
        s->marks[s->mark_count++] = (shared_mark){i, now, block, s->own.now, 0, 0};
        filter |= filter_bit(block);
        if (s->log && __atomic_load_n(&shared->mark[s->log_index].state, __ATOMIC_RELAXED) != now) {
            __atomic_store_n(&shared->mark[s->log_index].time, s->own.now, __ATOMIC_RELAXED);
            __atomic_store_n(&shared->mark[s->log_index].position, s->log_next, __ATOMIC_RELAXED);
            __atomic_store_n(&shared->mark[s->log_index].state, now, __ATOMIC_RELEASE);
        }
    }
    s->mark_filter = filter;
}

/* Distinct blocks that all threads' sets of the sample hold together. */
static uint64_t merged_size(sampler* s, shared_sample* shared, uint64_t now, uint64_t sampled) {
    uint64_t distinct = 0;
    uint32_t logs = __atomic_load_n(&common->logs, __ATOMIC_ACQUIRE);
    if (s->merged.size > 1 << 16) table_free(&s->merged);
    s->merging++;
    for (uint32_t k = 0; k < logs && k < MOST_LOGS; k++) {
        if (__atomic_load_n(&shared->mark[k].state, __ATOMIC_ACQUIRE) != now) continue;
        uint64_t time = __atomic_load_n(&shared->mark[k].time, __ATOMIC_RELAXED);
        uint64_t at = __atomic_load_n(&shared->mark[k].position, __ATOMIC_RELAXED);
        shared_log* log = &common->log[k];
        log_entry* ring = __atomic_load_n(&log->ring, __ATOMIC_ACQUIRE);
        uint64_t head = k == s->log_index ? s->log_next : __atomic_load_n(&log->head, __ATOMIC_ACQUIRE);
        if (!ring) continue;
        if (head > at && head - at > LOG_ENTRIES / 2) at = head - LOG_ENTRIES / 2;
        for (; at < head; at++) {
            uint64_t block = __atomic_load_n(&ring[at % LOG_ENTRIES].word[0], __ATOMIC_RELAXED);
            uint64_t before = __atomic_load_n(&ring[at % LOG_ENTRIES].word[1], __ATOMIC_RELAXED);
            if (before > time || block == sampled) continue;
            distinct += table_exchange(&s->merged, block, s->merging, s->merging) != s->merging;
        }
    }
    return distinct;
}

static void end_shared(revisit_thread* self, sampler* s, uint32_t index, uint32_t outcome,
                       uint64_t site, uint32_t write) {
    shared_mark mark = s->marks[index];
    shared_sample* shared = &common->shared[mark.slot];
    uint64_t now = mark.state, id = __atomic_load_n(&shared->id, __ATOMIC_RELAXED);
    memmove(&s->marks[index], &s->marks[index + 1], (--s->mark_count - index) * sizeof mark);
    /* Its slot may be used anew only when it has been read: +1 makes it even, hence closed. */
    if (__atomic_load_n(&shared->state, __ATOMIC_ACQUIRE) != now) return;
    uint64_t distance = mark.depth;
    if (outcome == REVISIT_REUSED) {
        distance = revisit_recent_distance(s, mark.position, mark.block, id);
        if (distance == NEVER) distance = merged_size(s, shared, now, mark.block);
    }
    if (!__atomic_compare_exchange_n(&shared->state, &now, now + 1, 0, __ATOMIC_ACQ_REL,
                                     __ATOMIC_RELAXED))
        return;
    revisit_limit_add(&s->limit, distance);
    s->limit.given_up += outcome == REVISIT_PRUNED;
    revisit_out_end(self, s, id, outcome, distance, s->own.now - mark.time, site, write);
    active_add(-1);
    __atomic_add_fetch(&common->version, 1, __ATOMIC_RELEASE);
}

void revisit_use_shared(revisit_thread* self, sampler* s, uint64_t block, uint64_t site,
                        uint32_t write) {
    uint64_t now = s->own.now;
    if (s->mark_filter & filter_bit(block))
        for (uint32_t i = s->mark_count; i-- > 0;)
            if (s->marks[i].block == block)
                end_shared(self, s, i, REVISIT_REUSED, revisit_on_path(s, site), write);
    if (!s->mark_count) return;
    uint64_t last = table_exchange(&s->own.last_uses, block, now, s->marks[0].time);
    uint32_t i = s->mark_count;
    while (i > 0 && s->marks[i - 1].time >= last) s->marks[--i].depth++;
    if (i == s->mark_count || !log_ready(s)) return;
    log_put(s, s->log_next, 0, block);
    log_put(s, s->log_next, 1, last);
    s->log_next++;
}

/* Closes those that the level leaves out, whoever's they are. */
void revisit_thin_shared(sampler* s) {
    uint32_t level = __atomic_load_n(&common->level, __ATOMIC_RELAXED);
    if (level == s->own_level) return;
    s->own_level = level;
    for (uint32_t i = 0; i < MOST_SHARED; i++) {
        shared_sample* shared = &common->shared[i];
        uint64_t now = __atomic_load_n(&shared->state, __ATOMIC_ACQUIRE);
        if (!(now & 1)) continue;
        if (revisit_sample_is_kept(__atomic_load_n(&shared->id, __ATOMIC_RELAXED), level)) continue;
        if (!__atomic_compare_exchange_n(&shared->state, &now, now + 1, 0, __ATOMIC_ACQ_REL,
                                         __ATOMIC_RELAXED))
            continue;
        active_add(-1);
        __atomic_add_fetch(&common->version, 1, __ATOMIC_RELEASE);
    }
}

int revisit_choose_shared(revisit_thread* self, sampler* s, uint64_t block, uint64_t site) {
    for (uint32_t i = 0; i < MOST_SHARED && s->mark_count < MOST_SHARED; i++) {
        shared_sample* shared = &common->shared[i];
        uint64_t now = __atomic_load_n(&shared->state, __ATOMIC_RELAXED);
        /* 2 mod 4: being filled. */
        if (now & 3 || !__atomic_compare_exchange_n(&shared->state, &now, now + 2, 0, __ATOMIC_ACQ_REL,
                                                    __ATOMIC_RELAXED))
            continue;
        now += 3;
        __atomic_store_n(&shared->block, block, __ATOMIC_RELAXED);
        __atomic_store_n(&shared->id, revisit_out_begin(self, s, revisit_on_path(s, site)),
                         __ATOMIC_RELAXED);
        if (s->log) {
            __atomic_store_n(&shared->mark[s->log_index].time, s->own.now, __ATOMIC_RELAXED);
            __atomic_store_n(&shared->mark[s->log_index].position, s->log_next, __ATOMIC_RELAXED);
            __atomic_store_n(&shared->mark[s->log_index].state, now, __ATOMIC_RELAXED);
        }
        s->marks[s->mark_count++] = (shared_mark){i, now, block, s->own.now, 0, s->position};
        s->mark_filter |= filter_bit(block);
        s->own.top = NO_BLOCK;
        active_add(1);
        __atomic_store_n(&shared->state, now, __ATOMIC_RELEASE);
        __atomic_add_fetch(&common->version, 1, __ATOMIC_RELEASE);
        return 1;
    }
    /* No room: where the rate is ours to choose, a lower one. */
    if (process.stream->plan.wanted) revisit_raise(s->next_level);
    return 0;
}

void revisit_prune_shared(revisit_thread* self, sampler* s) {
    if (s->mark_count && revisit_limit_exceeded(&s->limit, s->marks[0].depth))
        end_shared(self, s, 0, REVISIT_PRUNED, 0, 0);
}

/* A fair lock: threads are served as they came. Who waits long sleeps, under a bit of its own, so that
   only the next one is woken. */
static long futex(uint32_t* word, int operation, uint32_t value, uint32_t bits) {
    return syscall(SYS_futex, word, operation | 128 /* private */, value, NULL, NULL, bits);
}
void revisit_wait_turn(void) {
    uint32_t mine = __atomic_fetch_add(&common->ticket, 1, __ATOMIC_SEQ_CST), now;
    for (int spins = 0; (now = __atomic_load_n(&common->serving, __ATOMIC_ACQUIRE)) != mine; spins++)
        if (spins > 100) futex(&common->serving, 9 /* FUTEX_WAIT_BITSET */, now, 1u << mine % 32);
}
void revisit_end_turn(void) {
    uint32_t next = common->serving + 1;
    __atomic_store_n(&common->serving, next, __ATOMIC_SEQ_CST);
    if (__atomic_load_n(&common->ticket, __ATOMIC_SEQ_CST) != next)
        futex(&common->serving, 10 /* FUTEX_WAKE_BITSET */, 0x7fffffff, 1u << next % 32);
}
