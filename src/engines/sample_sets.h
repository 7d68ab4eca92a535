/* The distance sets of all samples that are open in one stack.
 *
 * Problem. Every open sample has the set of blocks used since it began. The sets are nested: a use of a
 * block whose last use was at time L enters those of the samples that began after L, and a write
 * elsewhere takes the block out of those that began before and leaves a hole in each, which the next
 * block to enter fills. Done sample by sample that is as many steps an access as samples are open:
 * 10 000 of them made 3 M accesses over 1 M blocks take 27 s.
 *
 * Idea. Samples lie in parts of up to 32, by rising start. What happens to all of a part is noted with
 * the part and passed to its samples only when one of them is looked at. Two numbers hold any sequence
 * of enterings (-1) and holes (+1): its sum `net`, and `ahead`, the most by which enterings were ahead
 * of holes at any moment. A sample with h holes then is ahead − h deeper, if that is more than 0, and
 * has max(h, ahead) + net holes. Cost. A step a part, and one for each sample of one part: the same run
 * takes 1.7 s (processor time, Neoverse-V1).
 *
 * C, for it is also part of the programs that sample themselves (record/clang/sampler.c): memory comes
 * from mmap, because a program's malloc is not ours to call.
 */
#ifndef REVISIT_ENGINES_SAMPLE_SETS_H
#define REVISIT_ENGINES_SAMPLE_SETS_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

enum { SETS_PART = 32, SETS_SLAB = 32 };

typedef struct {
    uint64_t start; /* in the stack's accesses; no two samples share one */
    uint64_t block, id, clock;
    uint64_t site;
} open_sample;

typedef struct sets_part {
    uint32_t count;
    struct sets_part* next_unused;
    uint64_t depth[SETS_PART]; /* blocks in the set and holes among them */
    uint64_t holes[SETS_PART];
    open_sample sample[SETS_PART];
} sets_part;

typedef struct {
    sets_part** part;
    uint64_t* first; /* start of a part's first sample */
    int64_t* net;
    int64_t* ahead;
    uint32_t parts, room;
    uint64_t count;
    uint64_t oldest, newest; /* starts, while there are samples */
    sets_part* unused;
    struct sets_slab* slabs;
} sample_sets;

typedef struct sets_slab {
    struct sets_slab* next;
    sets_part part[SETS_SLAB];
} sets_slab;

/* Where a sample lies, until the next one is added or removed. */
typedef struct {
    uint32_t part, index;
} sets_place;

static inline void* own_memory(size_t bytes) {
    void* at =
        mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return at == MAP_FAILED ? NULL : at;
}

static inline open_sample* sets_sample(const sample_sets* s, sets_place at) {
    return &s->part[at.part]->sample[at.index];
}
/* When the oldest began; `otherwise` when none is open. */
static inline uint64_t sets_oldest(const sample_sets* s, uint64_t otherwise) {
    return s->count ? s->oldest : otherwise;
}

/* A part's samples learn what happened to all of them. */
static inline void sets_settle(sample_sets* s, uint32_t p) {
    const int64_t net = s->net[p], ahead = s->ahead[p];
    if (!(net | ahead)) return;
    sets_part* part = s->part[p];
    for (uint32_t i = 0; i < part->count; i++) {
        int64_t holes = (int64_t)part->holes[i], deeper = ahead > holes ? ahead - holes : 0;
        part->depth[i] += (uint64_t)deeper;
        part->holes[i] = (uint64_t)(holes + deeper + net);
    }
    s->net[p] = s->ahead[p] = 0;
}
static inline uint64_t sets_depth(sample_sets* s, sets_place at) {
    sets_settle(s, at.part);
    return s->part[at.part]->depth[at.index];
}

/* The last part that begins at or before `time`, plus one. */
static inline uint32_t sets_parts_until(const sample_sets* s, uint64_t time) {
    uint32_t low = 0, high = s->parts;
    while (low < high) {
        uint32_t middle = (low + high) / 2;
        if (s->first[middle] <= time)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}
/* Samples of a part that began before `time`. */
static inline uint32_t sets_before(const sets_part* part, uint64_t time) {
    uint32_t i = part->count;
    while (i > 0 && part->sample[i - 1].start >= time) i--;
    return i;
}

static inline __attribute__((noinline)) int sets_enter_older(sample_sets* s, uint64_t last,
                                                             sets_place* ended) {
    const uint32_t begin = sets_parts_until(s, last), parts = s->parts;
    int64_t *net = s->net, *ahead = s->ahead;
    for (uint32_t p = begin; p < parts; p++) {
        net[p]--;
        ahead[p] = -net[p] > ahead[p] ? -net[p] : ahead[p];
    }
    if (begin == 0) return 0;
    sets_part* part = s->part[begin - 1];
    const uint32_t after = sets_before(part, last + 1);
    if (after < part->count) {
        sets_settle(s, begin - 1);
        for (uint32_t i = after; i < part->count; i++) {
            uint64_t is_filled = part->holes[i] != 0;
            part->holes[i] -= is_filled;
            part->depth[i] += 1 - is_filled;
        }
    }
    if (after == 0 || part->sample[after - 1].start != last) return 0;
    ended->part = begin - 1;
    ended->index = after - 1;
    return 1;
}

/* A block last used at `last` enters the sets of the samples that began later. Nonzero when one began
   with that use: the place of the sample that this use ends. Most blocks were used since the newest
   sample began, and enter none. */
static inline int sets_enter(sample_sets* s, uint64_t last, sets_place* ended) {
    return last > s->newest ? 0 : sets_enter_older(s, last, ended);
}

/* The sample that began at `start`, if one did. */
static inline int sets_find(const sample_sets* s, uint64_t start, sets_place* found) {
    const uint32_t until = sets_parts_until(s, start);
    if (until == 0) return 0;
    const uint32_t i = sets_before(s->part[until - 1], start);
    if (i == s->part[until - 1]->count || s->part[until - 1]->sample[i].start != start) return 0;
    found->part = until - 1;
    found->index = i;
    return 1;
}

/* A block last used at `last` was taken: a hole for each sample that began before. */
static inline void sets_take(sample_sets* s, uint64_t last) {
    const uint32_t until = sets_parts_until(s, last);
    if (until == 0) return;
    for (uint32_t p = 0; p + 1 < until; p++) s->net[p]++;
    sets_part* part = s->part[until - 1];
    const uint32_t before = sets_before(part, last);
    if (before == part->count) {
        s->net[until - 1]++;
        return;
    }
    sets_settle(s, until - 1);
    for (uint32_t i = 0; i < before; i++) part->holes[i]++;
}

static inline int sets_grow(sample_sets* s) {
    const uint32_t room = s->room ? 2 * s->room : 64;
    char* memory = (char*)own_memory(32ull * room);
    if (!memory) return 0;
    sample_sets old = *s;
    s->part = (sets_part**)memory;
    s->first = (uint64_t*)(memory + 8ull * room);
    s->net = (int64_t*)(memory + 16ull * room);
    s->ahead = (int64_t*)(memory + 24ull * room);
    s->room = room;
    if (!old.room) return 1;
    memcpy(s->part, old.part, 8ull * old.parts);
    memcpy(s->first, old.first, 8ull * old.parts);
    memcpy(s->net, old.net, 8ull * old.parts);
    memcpy(s->ahead, old.ahead, 8ull * old.parts);
    munmap(old.part, 32ull * old.room);
    return 1;
}
static inline int sets_add_part(sample_sets* s) {
    if (s->parts == s->room && !sets_grow(s)) return 0;
    if (!s->unused) {
        sets_slab* slab = (sets_slab*)own_memory(sizeof *slab);
        if (!slab) return 0;
        slab->next = s->slabs;
        s->slabs = slab;
        for (int i = 0; i < SETS_SLAB; i++) {
            slab->part[i].next_unused = s->unused;
            s->unused = &slab->part[i];
        }
    }
    sets_part* made = s->unused;
    s->unused = made->next_unused;
    made->count = 0;
    s->part[s->parts] = made;
    s->net[s->parts] = s->ahead[s->parts] = 0;
    s->parts++;
    return 1;
}
/* Begins a sample, later than all others; 0 when there is no memory for it. */
static inline int sets_add(sample_sets* s, const open_sample* sample) {
    if (!s->parts || s->part[s->parts - 1]->count == SETS_PART) {
        if (!sets_add_part(s)) return 0;
        s->first[s->parts - 1] = sample->start;
    }
    sets_settle(s, s->parts - 1);
    sets_part* part = s->part[s->parts - 1];
    part->depth[part->count] = part->holes[part->count] = 0;
    part->sample[part->count++] = *sample;
    if (s->count++ == 0) s->oldest = sample->start;
    s->newest = sample->start;
    return 1;
}

static inline void sets_remove_part(sample_sets* s, uint32_t p) {
    sets_part* gone = s->part[p];
    const size_t bytes = 8ull * (--s->parts - p);
    memmove(&s->part[p], &s->part[p + 1], bytes);
    memmove(&s->first[p], &s->first[p + 1], bytes);
    memmove(&s->net[p], &s->net[p + 1], bytes);
    memmove(&s->ahead[p], &s->ahead[p + 1], bytes);
    gone->next_unused = s->unused;
    s->unused = gone;
}
/* Two parts of few samples become one. */
static inline void sets_join(sample_sets* s, uint32_t p) {
    if (p + 1 >= s->parts || s->part[p]->count + s->part[p + 1]->count > SETS_PART / 2) return;
    sets_settle(s, p);
    sets_settle(s, p + 1);
    sets_part *to = s->part[p], *from = s->part[p + 1];
    memcpy(&to->depth[to->count], from->depth, 8ull * from->count);
    memcpy(&to->holes[to->count], from->holes, 8ull * from->count);
    memcpy(&to->sample[to->count], from->sample, from->count * sizeof *from->sample);
    to->count += from->count;
    sets_remove_part(s, p + 1);
}
static inline void sets_find_ends(sample_sets* s) {
    if (!s->count) return;
    const sets_part* last = s->part[s->parts - 1];
    s->oldest = s->first[0];
    s->newest = last->sample[last->count - 1].start;
}
static inline void sets_remove(sample_sets* s, sets_place at) {
    sets_part* part = s->part[at.part];
    const uint32_t i = at.index, behind = --part->count - i;
    memmove(&part->depth[i], &part->depth[i + 1], 8ull * behind);
    memmove(&part->holes[i], &part->holes[i + 1], 8ull * behind);
    memmove(&part->sample[i], &part->sample[i + 1], behind * sizeof *part->sample);
    s->count--;
    if (part->count == 0) {
        sets_remove_part(s, at.part);
    } else {
        s->first[at.part] = part->sample[0].start;
        sets_join(s, at.part);
        if (at.part > 0) sets_join(s, at.part - 1);
    }
    sets_find_ends(s);
}

/* Removes the samples that are not to be kept. */
static inline void sets_keep(sample_sets* s, int (*is_kept)(const open_sample*, void*), void* context) {
    for (uint32_t p = s->parts; p-- > 0;) {
        sets_part* part = s->part[p];
        uint32_t kept = 0;
        for (uint32_t i = 0; i < part->count; i++) {
            if (!is_kept(&part->sample[i], context)) continue;
            part->depth[kept] = part->depth[i];
            part->holes[kept] = part->holes[i];
            part->sample[kept++] = part->sample[i];
        }
        s->count -= part->count - kept;
        part->count = kept;
        if (kept == 0) {
            sets_remove_part(s, p);
            continue;
        }
        s->first[p] = part->sample[0].start;
        sets_join(s, p);
    }
    sets_find_ends(s);
}

static inline void sets_free(sample_sets* s) {
    if (s->room) munmap(s->part, 32ull * s->room);
    while (s->slabs) {
        sets_slab* next = s->slabs->next;
        munmap(s->slabs, sizeof *s->slabs);
        s->slabs = next;
    }
    memset(s, 0, sizeof *s);
}

/* All samples, oldest first: for (sets_place at = {0, 0}; at.part < s->parts; at = sets_next(s, at)) */
static inline sets_place sets_next(const sample_sets* s, sets_place at) {
    if (++at.index == s->part[at.part]->count) {
        at.part++;
        at.index = 0;
    }
    return at;
}

#endif
