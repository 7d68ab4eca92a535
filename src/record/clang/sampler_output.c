/* Results are records in an ordinary slot, complete at any moment: a program may end as it likes. How
 * many accesses there were is kept up to date in place while nothing else is sent.
 */
#define _GNU_SOURCE
#include <string.h>

#include "record/clang/sampler_state.h"

static int out_open(revisit_thread* self, sampler* s) {
    if (s->out_slot >= 0) return 1;
    if (self->unrecorded || revisit_is_over()) return 0;
    int32_t slot = revisit_slot_open(process.stream, process.producer, self->number);
    if (slot < 0) {
        self->unrecorded = 1;
        return 0;
    }
    s->out_slot = slot;
    s->out = revisit_slot_data(process.stream, (uint32_t)slot);
    s->out_words = 0;
    s->counts_last = 0;
    return 1;
}
void revisit_out_close(sampler* s) {
    if (s->out_slot < 0) return;
    int32_t slot = s->out_slot;
    s->out_slot = -1;
    revisit_hand_over(slot, s->out_words);
}
/* Room for a record; its first word is written last, so that what lies in a slot is always whole. */
static uint64_t* out_record(revisit_thread* self, sampler* s, uint32_t words) {
    if (s->out_slot >= 0 && s->out_words + words + KEPT_FREE_WORDS > REVISIT_SLOT_WORDS)
        revisit_out_close(s);
    if (!out_open(self, s)) return NULL;
    return s->out + s->out_words;
}
static void out_done(sampler* s, uint64_t first, uint32_t words) {
    __atomic_store_n(s->out + s->out_words, first, __ATOMIC_RELEASE);
    s->out_words += words;
}
void revisit_out_copy(revisit_thread* self, sampler* s, const uint64_t* record, uint32_t words) {
    uint64_t* to = out_record(self, s, words);
    if (!to) return;
    memcpy(to + 1, record + 1, (words - 1) * 8);
    out_done(s, record[0], words);
}
void revisit_out_path(revisit_thread* self, sampler* s, uint64_t site) {
    uint32_t path = (uint32_t)(site >> 32);
    if (!path || path >= MOST_PATHS || s->told_paths[path / 64] >> path % 64 & 1) return;
    uint64_t from = __atomic_load_n(&common->paths[path], __ATOMIC_RELAXED);
    if (!from--) return;             /* from an entry that was overwritten while it was read */
    revisit_out_path(self, s, from); /* its caller's path lies where a site's does */
    uint64_t* to = out_record(self, s, 2);
    if (!to) return;
    s->told_paths[path / 64] |= 1ull << path % 64;
    s->counts_last = 0;
    to[1] = from;
    out_done(s, REVISIT_RECORD(REVISIT_PATH, path), 2);
}
void revisit_out_counts(revisit_thread* self, sampler* s, uint64_t accesses, uint64_t analyzed,
                        uint64_t chosen) {
    uint64_t* to = out_record(self, s, 4);
    if (!to) return;
    s->told_level = s->own_level;
    uint64_t first = REVISIT_RECORD(REVISIT_SAMPLED, (uint64_t)s->told_level << 32 | self->number);
    if (s->counts_last) {
        __atomic_store_n(&to[-4], first, __ATOMIC_RELEASE);
        to[-3] += accesses;
        to[-2] += analyzed;
        to[-1] += chosen;
        return;
    }
    s->counts_last = 1;
    to[1] = accesses;
    to[2] = analyzed;
    to[3] = chosen;
    out_done(s, first, 4);
}
void revisit_out_end(revisit_thread* self, sampler* s, uint64_t id, uint32_t outcome, uint64_t distance,
                     uint64_t time, uint64_t site, uint32_t write) {
    revisit_out_path(self, s, site);
    uint64_t* to = out_record(self, s, 5);
    if (!to) return;
    s->counts_last = 0;
    to[1] = outcome | write << 8;
    to[2] = distance;
    to[3] = time;
    to[4] = site;
    out_done(s, REVISIT_RECORD(REVISIT_SAMPLE_END, id), 5);
}
void revisit_out_taken(revisit_thread* self, sampler* s, uint64_t id, uint64_t block, uint64_t time,
                       uint64_t site, uint32_t write, uint32_t parts, const taking_write* by) {
    revisit_out_path(self, s, site);
    revisit_out_path(self, s, by->site);
    uint64_t* to = out_record(self, s, 6);
    if (!to) return;
    s->counts_last = 0;
    to[1] = write | (uint64_t)parts << 8 | (uint64_t)by->parts << 20 | (uint64_t)by->thread << 32;
    to[2] = block << process.stream->plan.block_shift;
    to[3] = time;
    to[4] = site;
    to[5] = by->site;
    out_done(s, REVISIT_RECORD(REVISIT_SAMPLE_TAKEN, id), 6);
}
uint64_t revisit_out_begin(revisit_thread* self, sampler* s, uint64_t site) {
    uint64_t id = REVISIT_SAMPLE_ID(self->number, s->next_level, s->made++);
    revisit_count_sample(s);
    revisit_out_path(self, s, site);
    uint64_t* to = out_record(self, s, 2);
    if (!to) return id;
    s->counts_last = 0;
    to[1] = site;
    out_done(s, REVISIT_RECORD(REVISIT_SAMPLE, id), 2);
    return id;
}
