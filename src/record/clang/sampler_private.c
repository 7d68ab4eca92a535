/* Private stacks: what a write in one thread does to the samples of the others.
 *
 * Threads log the blocks they write, once a page, with the clock; at a page's end, and at locks,
 * condition variables, barriers, joins and the end of OpenMP regions, the log's head is published. Each
 * thread, before it analyzes a page, applies what others logged before the page began: entries leave
 * its sets and become holes, and a sample whose block was written is lost until its thread comes back
 * for it, and then names the write that took it. Nobody stops. A reuse that was found is held back
 * until the other threads that run have published as much, because a write that came before it may
 * still wait in another thread's page; the clock decides, to the access, by interpolation. Until then
 * the others follow what they write, and what they wrote lately (sampler_pages.c): most reuses begin
 * and end within a page.
 *
 * Source. Schuff, Kulkarni, Pai 2010, section 3.3. Their threads stop each other to propagate.
 */
#define _GNU_SOURCE
#include "record/clang/sampler_log.h"

int revisit_sampler_wants_order(void) {
    return (is_on() || __atomic_load_n(&common->near, __ATOMIC_RELAXED) > 0) &&
           !(process.stream->want & REVISIT_WANT_SHARED);
}

void revisit_sampler_waited(revisit_thread* self) {
    sampler* s = self->sampler;
    if (!s || s->busy || self->depth) return; /* in a handler, what it interrupted is in a page yet */
    s->last_clock = clock_now();
    if (s->log && s->log->ring) __atomic_store_n(&s->log->complete, s->last_clock, __ATOMIC_RELEASE);
}

/* The first of the entry's writes, taken as evenly spaced, after a use; NEVER: there is none. */
static uint64_t next_write(const uint64_t* entry, uint64_t use) {
    uint64_t first = entry[1], last = first + (entry[2] & LOG_SPAN), count = entry[3] & LOG_COUNT;
    if (first > use) return first;
    if (last <= use || count < 2) return NEVER;
    uint64_t space = (last - first) / (count - 1);
    return space ? first + ((use - first) / space + 1) * space : last;
}

static taking_write write_of(const uint64_t* entry, uint64_t clock) {
    return (taking_write){clock, entry[3] >> 32 | entry[4] << 32, (uint32_t)(entry[2] >> 40),
                          (uint32_t)(entry[3] >> 20) & 0xfff};
}

/* The entry's write took the block if it came after the use, before `until` and before any other. */
static void note_write(const uint64_t* entry, uint64_t use, uint64_t until, taking_write* taken) {
    uint64_t clock = next_write(entry, use), bit = contended_bit(entry[0]);
    if (clock >= until || clock >= taken->clock) return;
    *taken = write_of(entry, clock);
    if (clock != entry[1] && !(__atomic_load_n(contended_word(entry[0]), __ATOMIC_RELAXED) & bit))
        __atomic_fetch_or(contended_word(entry[0]), bit, __ATOMIC_RELAXED);
}

/* Another thread wrote this block: it leaves the sets it is in. */
static void take_block(sampler* s, const uint64_t* entry) {
    stack* st = &s->own;
    for (uint32_t i = 0; i < s->pendings; i++) {
        pending_end* end = &s->pending[i];
        if (end->block == entry[0]) note_write(entry, end->use_clock, end->reuse_clock, &end->taken);
    }
    if (st->lost.count && st->lost_filter & filter_bit(entry[0]))
        for (uint32_t i = 0; i < st->lost.count; i++) {
            lost_sample* lost = &st->lost.items[i];
            if (lost->sample.block == entry[0])
                note_write(entry, lost->sample.clock, NEVER, &lost->taken);
        }
    if (!st->open.count || !st->last_uses.entries) return;
    table_entry* found = table_slot(&st->last_uses, entry[0]);
    uint64_t last = found->stamp < 2 ? 0 : found->stamp - 1;
    if (last == 0 || last < oldest_of(st)) return;
    for (uint32_t i = 0; i < PAGES_KNOWN; i++) /* used again since */
        if (s->known[i].first && last >= s->known[i].first &&
            s->known[i].begin > entry[1] + (entry[2] & LOG_SPAN))
            return;
    sets_place at;
    if (sets_find(&st->open, last, &at)) {
        const open_sample* sample = sets_sample(&st->open, at);
        lost_sample* lost = list_add(&st->lost);
        if (lost) {
            /* Clocks within a page are interpolated, so its write may seem to be before the use: take
             * its word for it. */
            *lost = (lost_sample){*sample, write_of(entry, NEVER - 1)};
            note_write(entry, sample->clock, NEVER, &lost->taken);
            st->lost_filter |= filter_bit(entry[0]);
        }
        sets_remove(&st->open, at);
        active_add(-1); /* only its own thread waits for it now */
    }
    found->stamp = 1;
    st->top = NO_BLOCK;
    sets_take(&st->open, last);
}

/* What others wrote before this page began. */
void revisit_read_logs(sampler* s) {
    uint32_t logs = __atomic_load_n(&common->logs, __ATOMIC_ACQUIRE);
    int concerned = s->own.open.count || s->pendings;
    /* One whose last page ended several pages of this thread's ago has no processor, or waits. */
    uint64_t lately = s->page_begin - PAGES_KEPT * (s->last_clock - s->page_begin);
    s->others_complete = NEVER;
    for (uint32_t k = 0; k < logs && k < MOST_LOGS; k++) {
        shared_log* log = &common->log[k];
        if (log == s->log) continue;
        uint64_t complete = __atomic_load_n(&log->complete, __ATOMIC_ACQUIRE);
        if (complete < s->others_complete && __atomic_load_n(&log->taken, __ATOMIC_RELAXED) &&
            __atomic_load_n(&log->page_end, __ATOMIC_RELAXED) > lately)
            s->others_complete = complete;
        uint64_t head = __atomic_load_n(&log->head, __ATOMIC_ACQUIRE);
        if (!concerned) {
            s->read[k] = head;
            continue;
        }
        log_entry* ring = __atomic_load_n(&log->ring, __ATOMIC_ACQUIRE);
        while (s->read[k] < head) {
            if (head - s->read[k] > LOG_ENTRIES / 2) s->read[k] = head - LOG_ENTRIES / 2;
            uint64_t entry[5];
            for (int i = 0; i < 5; i++)
                entry[i] = __atomic_load_n(&ring[s->read[k] % LOG_ENTRIES].word[i], __ATOMIC_RELAXED);
            if (entry[1] >= s->page_begin) break;
            s->read[k]++;
            take_block(s, entry);
        }
    }
}

/* Reuses whose block nobody wrote in time, as far as is known. */
void revisit_settle_pending(revisit_thread* self, sampler* s, int all) {
    uint32_t kept = 0;
    for (uint32_t i = 0; i < s->pendings; i++) {
        pending_end* end = &s->pending[i];
        end->pages++;
        if (!all && (end->reuse_clock >= s->page_begin || end->reuse_clock > s->others_complete) &&
            end->pages <= PENDING_PAGES) {
            s->pending[kept++] = *end;
            continue;
        }
        active_add(-1);
        if (end->taken.clock == NEVER)
            revisit_out_end(self, s, end->id, REVISIT_REUSED, end->distance, end->time, end->site,
                            end->write);
        else
            revisit_out_taken(self, s, end->id, end->block, end->time, end->site, end->write,
                              end->parts, &end->taken);
    }
    s->pendings = kept;
}

/* A sample's block was used again, in a private stack or in turn in the shared one. */
void revisit_ended(revisit_thread* self, sampler* s, stack* st, depth_limit* limit, sets_place at,
                   uint64_t site, uint32_t write, uint32_t parts) {
    const open_sample ended = *sets_sample(&st->open, at);
    uint64_t depth = sets_depth(&st->open, at), time = st->now - ended.start;
    site = revisit_on_path(s, site);
    if (st != &s->own && (ended.id >> 36) == (self->number & 0xfffff)) {
        uint64_t recent = revisit_recent_distance(s, ended.clock, ended.block, ended.id);
        if (recent != NEVER) depth = recent;
    }
    revisit_limit_add(limit, depth);
    sets_remove(&st->open, at);
    if (st == &s->own && __atomic_load_n(&common->logs, __ATOMIC_RELAXED) > 1 &&
        s->pendings < MOST_PENDING)
        s->pending[s->pendings++] =
            (pending_end){ended.id, ended.block, ended.clock, clock_of(s), depth,           time,
                          site,     write,       parts,       0,           {NEVER, 0, 0, 0}};
    else {
        revisit_out_end(self, s, ended.id, REVISIT_REUSED, depth, time, site, write);
        active_add(-1);
    }
}

void revisit_come_back(revisit_thread* self, sampler* s, stack* st, uint64_t block, uint64_t site,
                       uint32_t write, uint32_t parts) {
    uint64_t filter = 0;
    for (uint32_t i = 0; i < st->lost.count;) {
        const lost_sample* lost = &st->lost.items[i];
        if (lost->sample.block != block) {
            filter |= filter_bit(lost->sample.block);
            i++;
            continue;
        }
        revisit_out_taken(self, s, lost->sample.id, block, st->now - lost->sample.start,
                          revisit_on_path(s, site), write, parts, &lost->taken);
        list_remove(&st->lost, i);
    }
    st->lost_filter = filter;
}

int revisit_choose_private(revisit_thread* self, sampler* s, stack* st, uint64_t time, uint64_t block,
                           uint64_t site) {
    table_exchange(&st->last_uses, block, time, oldest_of(st));
    st->top = NO_BLOCK;
    site = revisit_on_path(s, site);
    /* In turn, nobody asks when it was, but where in the thread's last pages. */
    open_sample made = {time, block, 0, st == &s->own ? clock_of(s) : s->position, site};
    if (!sets_add(&st->open, &made)) return 0;
    sets_place last = {st->open.parts - 1, st->open.part[st->open.parts - 1]->count - 1};
    sets_sample(&st->open, last)->id = revisit_out_begin(self, s, site);
    active_add(1);
    return 1;
}

static int is_kept(const open_sample* one, void* level) {
    return revisit_sample_is_kept(one->id, *(uint32_t*)level);
}
void revisit_thin(stack* st, uint32_t* looked_through) {
    uint32_t level = __atomic_load_n(&common->level, __ATOMIC_RELAXED), kept = 0;
    if (level == *looked_through) return;
    *looked_through = level;
    uint64_t before = st->open.count;
    sets_keep(&st->open, is_kept, &level);
    active_add((int64_t)(st->open.count - before));
    for (uint32_t i = 0; i < st->lost.count; i++)
        if (is_kept(&st->lost.items[i].sample, &level)) st->lost.items[kept++] = st->lost.items[i];
    st->lost.count = kept;
}

void revisit_prune(revisit_thread* self, sampler* s, stack* st, depth_limit* limit) {
    sets_place at = {0, 0};
    if (!st->open.count) return;
    uint64_t depth = sets_depth(&st->open, at);
    if (!revisit_limit_exceeded(limit, depth)) return;
    open_sample* oldest = sets_sample(&st->open, at);
    revisit_limit_add(limit, depth);
    limit->given_up++;
    revisit_out_end(self, s, oldest->id, REVISIT_PRUNED, depth, st->now - oldest->start, oldest->site,
                    0);
    sets_remove(&st->open, at);
    active_add(-1);
}
