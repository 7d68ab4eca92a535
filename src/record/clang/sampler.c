/* Samples reuse distances while the threads run, in private or shared stacks.
 *
 * Problem. To analyze every access of several threads costs two orders of magnitude, and makes them
 * wait for each other. Idea. While no sample is near, threads run copies of the code that only count
 * (copies.cpp), down to the next one (sampler_chance.c). From a little before it is chosen they append
 * to a page of memory instead. A full page is read by the thread itself (sampler_pages.c): with no
 * sample open anywhere its accesses are counted and forgotten, else they are analyzed, in tables of the
 * thread's own (sampler_stack.h). What threads must know of each other goes through logs with one
 * writer each (sampler_log.h), and no operation is atomic but the ones that publish a page's results,
 * which happen only while a sample is open. sampler_private.c and sampler_shared.c have the models;
 * sampler_output.c informs the analyzer. Samples still open at the end are the analyzer's to count
 * (cold). Cost. Counting takes 1.1 to 1.5 times as long as native, see docs/multicore.md.
 *
 * Here is how samplers begin and end: with their threads, at a fork, and around long waits.
 *
 * Source. Schuff, Kulkarni, Pai 2010, section 3.
 */
#define _GNU_SOURCE
#include <stdlib.h>

#include "record/clang/sampler_stack.h"

void revisit_sampler_rest(revisit_thread* self) {
    sampler* s = self->sampler;
    if (!s || s->busy) return;
    revisit_sampler_is_far(s);
    s->busy = 1;
    revisit_settle_pending(self, s, 1);
    s->busy = 0;
    if (s->resting || process.stream->want & REVISIT_WANT_SHARED) return;
    s->resting = (uint32_t)s->own.open.count;
    if (!s->resting) return;
    __atomic_store_n(&common->looked_away, 0, __ATOMIC_RELAXED);
    active_add(-(int64_t)s->resting);
}

/* If others were not followed meanwhile, nobody knows what they wrote: its samples are given up. */
void revisit_sampler_go_on(revisit_thread* self) {
    sampler* s = self->sampler;
    if (!s || !s->resting) return;
    active_add(s->resting);
    s->resting = 0;
    if (!__atomic_load_n(&common->looked_away, __ATOMIC_RELAXED)) return;
    stack* st = &s->own;
    s->busy = 1;
    while (st->open.count) {
        sets_place at = {0, 0};
        open_sample* given_up = sets_sample(&st->open, at);
        revisit_out_end(self, s, given_up->id, REVISIT_PRUNED, sets_depth(&st->open, at),
                        st->now - given_up->start, given_up->site, 0);
        sets_remove(&st->open, at);
        active_add(-1);
    }
    s->busy = 0;
}

void revisit_sampler_hand_over(revisit_thread* self) {
    sampler* s = self->sampler;
    if (s && !s->busy) revisit_out_close(s);
}

void revisit_sampler_send(revisit_thread* self, const uint64_t* record, uint32_t words) {
    sampler* s = self->sampler;
    if (!s || s->busy) return;
    s->busy = 1;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    s->counts_last = 0;
    revisit_out_copy(self, s, record, words);
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    s->busy = 0;
}

static void take_log(sampler* s) {
    for (uint32_t k = 0; k < MOST_LOGS; k++) {
        uint32_t free_ = 0;
        if (__atomic_load_n(&common->log[k].taken, __ATOMIC_RELAXED)) continue;
        if (!__atomic_compare_exchange_n(&common->log[k].taken, &free_, 1, 0, __ATOMIC_ACQ_REL,
                                         __ATOMIC_RELAXED))
            continue;
        uint32_t logs = __atomic_load_n(&common->logs, __ATOMIC_RELAXED);
        while (logs < k + 1 && !__atomic_compare_exchange_n(&common->logs, &logs, k + 1, 0,
                                                            __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) {
        }
        s->log = &common->log[k];
        s->log_index = k;
        s->log_next = s->log->head;
        s->own.now = s->log->now;
        break;
    }
    uint32_t logs = __atomic_load_n(&common->logs, __ATOMIC_ACQUIRE);
    for (uint32_t k = 0; k < logs; k++)
        s->read[k] = __atomic_load_n(&common->log[k].head, __ATOMIC_ACQUIRE);
}

void revisit_sampler_begin(revisit_thread* self) {
    sampler* s = own_memory(sizeof *s);
    if (!s) return;
    s->random = process.stream->plan.seed * 0x2545f4914f6cdd1dull + self->number;
    s->thread = self->number;
    s->out_slot = -1;
    s->inside = common->regions ? 0 : 1;
    s->own.now = 1;
    s->own.top = NO_BLOCK;
    s->calls = &s->own_calls;
    take_log(s);
    if (s->own.now == 0) s->own.now = 1;
    s->to_next = revisit_gap(s);
    s->last_clock = clock_now();
    self->sampler = s;
}

void revisit_sampler_end(revisit_thread* self) {
    sampler* s = self->sampler;
    if (!s) return;
    s->busy = 1;
    revisit_sampler_is_far(s);
    revisit_settle_pending(self, s, 1);
    if (!(process.stream->want & REVISIT_WANT_SHARED) && !s->resting)
        active_add(-(int64_t)s->own.open.count);
    revisit_out_close(s);
    if (s->log) {
        s->log->now = s->own.now;
        __atomic_store_n(&s->log->taken, 0, __ATOMIC_RELEASE);
    }
    self->sampler = NULL;
    table_free(&s->own.last_uses);
    table_free(&s->merged);
    sets_free(&s->own.open);
    list_free(&s->own.lost);
    munmap(s, sizeof *s);
}

void revisit_sampler_forked(revisit_thread* self) {
    if (self->sampler) self->sampler->out_slot = -1;
    sampling_state* before = common;
    code_block* blocks = before->blocks;
    common = own_memory(sizeof *common);
    if (!common) {
        common = before;
        return;
    }
    common->blocks = blocks;
    common->regions = before->regions;
    common->level = before->level;
    common->samples = before->samples;
    sampler* old = self->sampler;
    self->sampler = NULL;
    revisit_sampler_begin(self);
    if (old && self->sampler) {
        self->sampler->inside = old->inside;
        self->sampler->own_calls = old->own_calls;
        for (uint32_t i = 0; i < MOST_FRAMES; i++) self->sampler->own_calls.frame[i].path = 0;
    }
    if (old) munmap(old, sizeof *old);
}

void revisit_sampling_start(void) {
    sampling_state* made = own_memory(sizeof *made);
    if (!made) return;
    made->blocks = own_memory(MOST_BLOCKS * sizeof *made->blocks);
    if (!made->blocks) return;
    if (process.stream->want & REVISIT_WANT_REGIONS) made->regions = getenv(REVISIT_REGIONS_ENV);
    common = made;
}

void revisit_sampling_define(const revisit_unit* unit, uint64_t block_base, uint64_t site_base) {
    const uint64_t* at = unit->definitions;
    const uint64_t* end = at + unit->definition_words;
    while (at < end) {
        uint64_t n = REVISIT_N(at[0]);
        if (REVISIT_TAG(at[0]) == REVISIT_DEFINE_SITE) {
            at += 2 + (n + 7) / 8;
            continue;
        }
        uint64_t id = at[1] + block_base;
        if (id < MOST_BLOCKS) {
            code_block* code = &common->blocks[id];
            code->writes = n > 63 ? ~0ull : 0;
            for (uint64_t i = 0; i < n && n <= 63; i++)
                code->writes |= (at[2 + 2 * i] >> 32 & REVISIT_WRITE) << i;
            code->words = 0;
            for (uint64_t i = 0; i < n; i++) code->words += !(at[2 + 2 * i] >> 32 & REVISIT_DERIVED);
            code->site_base = site_base;
            code->definition = at;
        }
        at += 2 + 2 * n;
    }
}
