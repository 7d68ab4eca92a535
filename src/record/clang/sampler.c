/* Samples reuse distances while the threads run, in private or shared stacks.
 *
 * Problem. To analyze every access of several threads costs two orders of magnitude, and makes them
 * wait for each other. Idea. Threads append to a page of memory as they always do (1.5 times as long as
 * native). When it is full it is read here, by the thread itself. No sample open anywhere: the accesses
 * are counted down to the next one, block of code by block of code, and forgotten. Else they are
 * analyzed. What a thread needs for that is its own, no operation is atomic but the ones that publish a
 * page's results, and those happen only while a sample is open.
 *
 * A thread's distance sets are nested: the set of a sample holds the blocks last used after its start.
 * So one table, block → time of last use, stands for all (engines/sample.cpp, which this follows).
 *
 * Private stacks. Threads log the blocks they write, once a page, with the clock; at a page's end, and
 * at locks, condition variables, barriers, joins and the end of OpenMP regions, the log's head is
 * published. Each thread, before it analyzes a page, applies what others logged before the page began:
 * entries leave its sets and become holes. Nobody stops. A reuse that was found is held back for two
 * pages, because a write that came before it may still wait in another thread's page; the clock
 * decides, to the access, by interpolation.
 *
 * Shared stack, parallel. Each thread logs what enters its own sets. Who finds the reuse (any thread)
 * counts the union of all logs since the sample's start. In turn: one table for all under a fair lock,
 * page by page, while a sample is open.
 *
 * Gaps between samples are geometric and every thread's own, hence every access is as likely as any
 * other. A sample that is deeper than 99 % of those before it is given up, but never more than 1 % of
 * all. Open ones at the end are the analyzer's to count (cold).
 *
 * Results are records in an ordinary slot, complete at any moment: a program may end as it likes.
 *
 * Source. Schuff, Kulkarni, Pai 2010, section 3. Their threads stop each other to propagate.
 */
#define _GNU_SOURCE
#include "record/clang/sampler.h"

#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "record/clang/runtime.h"

#define process __revisit_process

enum {
    MOST_LOGS = 1024,      /* threads at a time that tell each other */
    LOG_ENTRIES = 1 << 17, /* then the oldest are overwritten */
    MOST_BLOCKS = 1 << 22, /* blocks of code */
    MOST_SHARED = 256,     /* samples open at a time in a shared stack */
    SEEN_BLOCKS = 1024,    /* written in this page */
    MOST_PENDING = 64,
    PAGES_KNOWN = 8,
    LIMIT_OCTAVE = 8,      /* bins a power of two, of distances */
    KEPT_FREE_WORDS = 256, /* in an output slot */
};

typedef struct {
    const uint64_t* definition;
    uint64_t site_base;
    uint64_t
        writes; /* bits: which of its first 63 accesses are writes; all ones where there are more */
} code_block;

/* One writer, any number of readers. Words of an entry: private: block, first and last clock, count;
   shared: block, time of its use before, time of this one. */
typedef struct {
    uint64_t word[4];
} log_entry;
typedef struct {
    uint64_t head __attribute__((aligned(64))); /* published */
    log_entry* ring;
    uint64_t now; /* the time at which a next owner goes on */
    uint32_t taken;
} shared_log;

typedef struct {
    uint64_t start; /* in the stack's accesses */
    uint64_t block, id, clock;
    uint64_t depth, holes;
    uint64_t site;
} sample;

typedef struct {
    uint64_t block, stamp; /* 0: empty; 1: forgotten; else time + 1 */
} table_entry;
typedef struct {
    table_entry* entries;
    uint64_t size, used;
    unsigned shift;
} table;

typedef struct {
    sample* items;
    uint32_t count, room;
} sample_list;

typedef struct {
    table last_uses;
    sample_list open; /* by rising start */
    sample_list lost; /* taken by a write elsewhere and not used again yet */
    uint64_t lost_filter;
    uint64_t now;
    uint64_t top; /* the block used last, when using it again changes nothing; else NO_BLOCK */
} stack;

/* How deep samples are: the limit for giving up. */
typedef struct {
    uint32_t seen[64 * LIMIT_OCTAVE];
    uint64_t count, counted, given_up, limit;
} depth_limit;

typedef struct {
    uint64_t id, block, use_clock, reuse_clock, distance, time, site;
    uint32_t write, pages, lost;
} pending_end;

/* A sample in the shared stack; `state` is odd while it is open. */
typedef struct {
    uint64_t state, block, id;
    struct {
        uint64_t state, time, position;
    } mark[MOST_LOGS]; /* where each thread's set begins */
} shared_sample;

typedef struct {
    uint64_t slot, state, block, time, depth;
} shared_mark;

typedef struct revisit_sampling {
    int64_t active;   /* samples open or lost */
    uint64_t version; /* of shared samples */
    uint32_t logs;
    uint32_t looked_away; /* pages went by unread since a thread began to rest */
    uint32_t ticket __attribute__((aligned(64)));
    uint32_t serving;
    stack all; /* in turn */
    depth_limit limit;
    code_block* blocks;
    shared_log log[MOST_LOGS];
    shared_sample shared[MOST_SHARED];
} sampling_state;

typedef struct revisit_sampler {
    uint64_t random, to_next, made;
    int counts_last; /* the last record in the output slot is SAMPLED */
    int busy;
    uint32_t resting; /* samples it had when it began to wait */
    int32_t out_slot;
    uint64_t* out;
    uint32_t out_words;
    stack own;
    depth_limit limit;
    /* what others are told, and what they told */
    shared_log* log;
    uint32_t log_index;
    uint64_t log_next;
    uint64_t read[MOST_LOGS];
    struct {
        uint64_t block, index, page;
    } seen[SEEN_BLOCKS];
    /* the page in hand */
    uint64_t page, page_begin, page_step, page_at, last_clock;
    struct {
        uint64_t first, begin;
    } known[PAGES_KNOWN];
    pending_end pending[MOST_PENDING];
    uint32_t pendings;
    /* shared, parallel */
    uint64_t version;
    shared_mark marks[MOST_SHARED];
    uint32_t mark_count;
    uint64_t mark_filter;
    table merged;
} sampler;

#define common process.sampling
#define NO_BLOCK (~0ull)

static uint64_t clock_now(void) {
#if defined(__aarch64__)
    uint64_t value;
    __asm__ volatile("mrs %0, cntvct_el0" : "=r"(value));
    return value;
#else
    return __builtin_ia32_rdtsc();
#endif
}

static void* memory(size_t bytes) {
    void* at =
        mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return at == MAP_FAILED ? NULL : at;
}

static uint64_t hash(uint64_t block) {
    return (block ^ block >> 32) * 0x9e3779b97f4a7c15ull;
}
static uint64_t filter_bit(uint64_t block) {
    return 1ull << (hash(block) >> 58);
}

/* Tables. They forget what is older than `oldest` whenever they are full. */
static table_entry* table_slot(const table* t, uint64_t block) {
    uint64_t i = hash(block) >> t->shift;
    while (t->entries[i].stamp && t->entries[i].block != block) i = (i + 1) & (t->size - 1);
    return &t->entries[i];
}
static int table_make(table* t, uint64_t size) {
    table_entry* entries = memory(size * sizeof *entries);
    if (!entries) return 0;
    t->entries = entries;
    t->size = size;
    t->used = 0;
    t->shift = 64 - (unsigned)__builtin_ctzll(size);
    return 1;
}
static void table_free(table* t) {
    if (t->entries) munmap(t->entries, t->size * sizeof *t->entries);
    memset(t, 0, sizeof *t);
}
static int table_rebuild(table* t, uint64_t oldest) {
    table old = *t;
    uint64_t kept = 0, size = 1024;
    for (uint64_t i = 0; i < old.size; i++) kept += old.entries[i].stamp > oldest;
    while (size < 4 * kept) size *= 2;
    if (!table_make(t, size)) {
        *t = old;
        return 0;
    }
    for (uint64_t i = 0; i < old.size; i++)
        if (old.entries[i].stamp > oldest) {
            *table_slot(t, old.entries[i].block) = old.entries[i];
            t->used++;
        }
    table_free(&old);
    return 1;
}
/* Notes a use at `now`; the time of the use before, 0 for none. */
static uint64_t table_exchange(table* t, uint64_t block, uint64_t now, uint64_t oldest) {
    if (!t->entries && !table_make(t, 1024)) return 0;
    table_entry* entry = table_slot(t, block);
    if (!entry->stamp) {
        if ((t->used + 1) * 2 > t->size) {
            if (!table_rebuild(t, oldest)) return 0;
            entry = table_slot(t, block);
        }
        t->used++;
    }
    uint64_t before = entry->stamp < 2 ? 0 : entry->stamp - 1;
    entry->block = block;
    entry->stamp = now + 1;
    return before;
}

static sample* list_add(sample_list* list) {
    if (list->count == list->room) {
        uint32_t room = list->room ? 2 * list->room : 64;
        sample* items = memory(room * sizeof *items);
        if (!items) return NULL;
        if (list->items) {
            memcpy(items, list->items, list->count * sizeof *items);
            munmap(list->items, list->room * sizeof *items);
        }
        list->items = items;
        list->room = room;
    }
    return &list->items[list->count++];
}
static void list_remove(sample_list* list, uint32_t i) {
    memmove(&list->items[i], &list->items[i + 1], (--list->count - i) * sizeof *list->items);
}
static void list_free(sample_list* list) {
    if (list->items) munmap(list->items, list->room * sizeof *list->items);
    memset(list, 0, sizeof *list);
}

/* Chance. */
static uint64_t next_random(sampler* s) {
    uint64_t z = s->random += 0x9e3779b97f4a7c15ull;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ z >> 27) * 0x94d049bb133111ebull;
    return z ^ z >> 31;
}
/* Of 0 < x ≤ 1, without the mathematical library: x = m·2^e, and ln m = 2 artanh((m − 1)/(m + 1)). */
static double logarithm(double x) {
    int exponent = 0;
    while (x < 0.70710678118654752) x *= 2, exponent--;
    double q = (x - 1) / (x + 1), term = q, sum = 0;
    for (int k = 1; k < 24; k += 2, term *= q * q) sum += term / k;
    return 2 * sum + exponent * 0.69314718055994531;
}
static uint64_t gap(sampler* s) {
    double scale = process.stream->plan.gap_scale;
    if (scale == 0) return 1;
    double u = (double)((next_random(s) >> 11) + 1) * 0x1p-53;
    double skipped = logarithm(u) * scale;
    return skipped > 1e18 ? 1ull << 60 : 1 + (uint64_t)skipped;
}

/* Output: records in a slot. How many accesses there were is kept up to date in place while nothing
   else is told. */
static int out_open(revisit_thread* self, sampler* s) {
    if (s->out_slot >= 0) return 1;
    if (self->unrecorded || process.over) return 0;
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
static void out_close(sampler* s) {
    if (s->out_slot < 0) return;
    int32_t slot = s->out_slot;
    s->out_slot = -1;
    revisit_hand_over(slot, s->out_words);
}
/* Room for a record; its first word is written last, so that what lies in a slot is always whole. */
static uint64_t* out_record(revisit_thread* self, sampler* s, uint32_t words) {
    if (s->out_slot >= 0 && s->out_words + words + KEPT_FREE_WORDS > REVISIT_SLOT_WORDS) out_close(s);
    if (!out_open(self, s)) return NULL;
    return s->out + s->out_words;
}
static void out_done(sampler* s, uint64_t first, uint32_t words) {
    __atomic_store_n(s->out + s->out_words, first, __ATOMIC_RELEASE);
    s->out_words += words;
}
static void out_copy(revisit_thread* self, sampler* s, const uint64_t* record, uint32_t words) {
    uint64_t* to = out_record(self, s, words);
    if (!to) return;
    memcpy(to + 1, record + 1, (words - 1) * 8);
    out_done(s, record[0], words);
}
static void out_counts(revisit_thread* self, sampler* s, uint64_t accesses, uint64_t analyzed,
                       uint64_t chosen) {
    uint64_t* to = out_record(self, s, 4);
    if (!to) return;
    if (s->counts_last) {
        to[-3] += accesses;
        to[-2] += analyzed;
        to[-1] += chosen;
        return;
    }
    s->counts_last = 1;
    to[1] = accesses;
    to[2] = analyzed;
    to[3] = chosen;
    out_done(s, REVISIT_RECORD(REVISIT_SAMPLED, self->number), 4);
}
static void out_end(revisit_thread* self, sampler* s, uint64_t id, uint32_t outcome, uint64_t distance,
                    uint64_t time, uint64_t site, uint32_t write) {
    uint64_t* to = out_record(self, s, 5);
    if (!to) return;
    s->counts_last = 0;
    to[1] = outcome | write << 8;
    to[2] = distance;
    to[3] = time;
    to[4] = site;
    out_done(s, REVISIT_RECORD(REVISIT_SAMPLE_END, id), 5);
}
static uint64_t out_begin(revisit_thread* self, sampler* s, uint64_t site) {
    uint64_t id = (uint64_t)(self->number & 0xffffff) << 32 | (s->made++ & 0xffffffff);
    uint64_t* to = out_record(self, s, 2);
    if (!to) return id;
    s->counts_last = 0;
    to[1] = site;
    out_done(s, REVISIT_RECORD(REVISIT_SAMPLE, id), 2);
    return id;
}

/* Giving up. */
static uint32_t limit_bin(uint64_t depth) {
    if (depth < LIMIT_OCTAVE) return (uint32_t)depth;
    uint32_t width = 63 - (uint32_t)__builtin_clzll(depth);
    return (width - 2) * LIMIT_OCTAVE + (uint32_t)(depth >> (width - 3) & 7);
}
static uint64_t limit_top(uint32_t bin) {
    if (bin < LIMIT_OCTAVE) return bin;
    uint32_t width = bin / LIMIT_OCTAVE + 2;
    return ((uint64_t)(8 + bin % LIMIT_OCTAVE + 1) << (width - 3)) - 1;
}
static void limit_add(depth_limit* limit, uint64_t depth) {
    limit->seen[limit_bin(depth)]++;
    limit->count++;
}
static int limit_exceeded(depth_limit* limit, uint64_t depth) {
    double share = process.stream->plan.prune_share;
    if (share >= 1 || limit->count < process.stream->plan.prune_after || limit->count == 0) return 0;
    if ((double)(limit->given_up + 1) > (1 - share) * (double)limit->count) return 0;
    if ((double)limit->count > 1.02 * (double)limit->counted) {
        double below = 0;
        limit->counted = limit->count;
        for (uint32_t bin = 0; bin < 64 * LIMIT_OCTAVE; bin++) {
            below += limit->seen[bin];
            limit->limit = limit_top(bin);
            if (below >= share * (double)limit->count) break;
        }
    }
    return depth > limit->limit;
}

static uint64_t clock_of(const sampler* s) {
    return s->page_begin + (s->page_at * s->page_step >> 16);
}

static void active_add(int64_t n) {
    __atomic_add_fetch(&common->active, n, __ATOMIC_RELAXED);
}
static int is_on(void) {
    return __atomic_load_n(&common->active, __ATOMIC_RELAXED) > 0;
}
int revisit_sampler_wants_order(void) {
    return is_on() && !(process.stream->want & REVISIT_WANT_SHARED);
}

/* Is there one of the entry's writes, taken as evenly spaced, between the two? */
static int wrote_between(const uint64_t* entry, uint64_t after, uint64_t before) {
    uint64_t first = entry[1], last = entry[2], count = entry[3];
    if (first >= before || last <= after) return 0;
    if (first > after || count < 2) return first > after;
    uint64_t space = (last - first) / (count - 1);
    if (!space) return 1;
    return first + ((after - first) / space + 1) * space < before;
}

static uint32_t first_after(const stack* st, uint64_t time) {
    uint32_t i = st->open.count;
    while (i > 0 && st->open.items[i - 1].start > time) i--;
    return i;
}
static uint64_t oldest_of(const stack* st) {
    return st->open.count ? st->open.items[0].start : st->now;
}

/* Another thread wrote this block: it leaves the sets it is in. */
static void take_block(sampler* s, const uint64_t* entry) {
    stack* st = &s->own;
    for (uint32_t i = 0; i < s->pendings; i++)
        if (s->pending[i].block == entry[0] &&
            wrote_between(entry, s->pending[i].use_clock, s->pending[i].reuse_clock))
            s->pending[i].lost = 1;
    if (!st->open.count || !st->last_uses.entries) return;
    table_entry* found = table_slot(&st->last_uses, entry[0]);
    uint64_t last = found->stamp < 2 ? 0 : found->stamp - 1;
    if (last == 0 || last < oldest_of(st)) return;
    for (uint32_t i = 0; i < PAGES_KNOWN; i++) /* used again since */
        if (s->known[i].first && last >= s->known[i].first && s->known[i].begin > entry[2]) return;
    found->stamp = 1;
    st->top = NO_BLOCK;
    uint32_t after = first_after(st, last);
    if (after > 0 && st->open.items[after - 1].start == last) {
        sample* lost = list_add(&st->lost);
        if (lost) {
            *lost = st->open.items[after - 1];
            st->lost_filter |= filter_bit(lost->block);
        }
        list_remove(&st->open, --after);
        active_add(-1); /* only its own thread waits for it now */
    }
    for (uint32_t i = 0; i < after; i++) st->open.items[i].holes++;
}

/* What others wrote before this page began. */
static void read_logs(sampler* s) {
    uint32_t logs = __atomic_load_n(&common->logs, __ATOMIC_ACQUIRE);
    int concerned = s->own.open.count || s->pendings;
    for (uint32_t k = 0; k < logs && k < MOST_LOGS; k++) {
        shared_log* log = &common->log[k];
        if (log == s->log) continue;
        uint64_t head = __atomic_load_n(&log->head, __ATOMIC_ACQUIRE);
        if (!concerned) {
            s->read[k] = head;
            continue;
        }
        log_entry* ring = __atomic_load_n(&log->ring, __ATOMIC_ACQUIRE);
        while (s->read[k] < head) {
            if (head - s->read[k] > LOG_ENTRIES / 2) s->read[k] = head - LOG_ENTRIES / 2;
            uint64_t entry[4];
            for (int i = 0; i < 4; i++)
                entry[i] = __atomic_load_n(&ring[s->read[k] % LOG_ENTRIES].word[i], __ATOMIC_RELAXED);
            if (entry[1] >= s->page_begin) break;
            s->read[k]++;
            take_block(s, entry);
        }
    }
}

static void log_put(sampler* s, uint64_t at, int word, uint64_t value) {
    __atomic_store_n(&s->log->ring[at % LOG_ENTRIES].word[word], value, __ATOMIC_RELAXED);
}
static int log_ready(sampler* s) {
    if (!s->log) return 0;
    if (!s->log->ring) {
        log_entry* ring = memory(LOG_ENTRIES * sizeof *ring);
        if (!ring) return 0;
        __atomic_store_n(&s->log->ring, ring, __ATOMIC_RELEASE);
    }
    return 1;
}
static void log_write(sampler* s, uint64_t block) {
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
static void log_publish(sampler* s) {
    if (s->log && s->log->head != s->log_next)
        __atomic_store_n(&s->log->head, s->log_next, __ATOMIC_RELEASE);
}

/* Reuses whose block nobody wrote in time, as far as is known after two more pages. */
static void settle_pending(revisit_thread* self, sampler* s, int all) {
    uint32_t kept = 0;
    for (uint32_t i = 0; i < s->pendings; i++) {
        pending_end* end = &s->pending[i];
        if (!all && !end->lost && end->pages++ < 2) {
            s->pending[kept++] = *end;
            continue;
        }
        out_end(self, s, end->id, end->lost ? REVISIT_INVALIDATED : REVISIT_REUSED, end->distance,
                end->time, end->site, end->write);
    }
    s->pendings = kept;
}

/* One access to one block in a private stack, or in turn in the shared one. */
static void use_block(revisit_thread* self, sampler* s, stack* st, depth_limit* limit, uint64_t block,
                      uint64_t site, uint32_t write) {
    uint64_t last = table_exchange(&st->last_uses, block, st->now, oldest_of(st));
    uint32_t after = first_after(st, last);
    for (uint32_t i = after; i < st->open.count; i++) {
        if (st->open.items[i].holes)
            st->open.items[i].holes--;
        else
            st->open.items[i].depth++;
    }
    if (after == 0 || st->open.items[after - 1].start != last) return;
    sample* ended = &st->open.items[after - 1];
    limit_add(limit, ended->depth);
    if (st == &s->own && __atomic_load_n(&common->logs, __ATOMIC_RELAXED) > 1 &&
        s->pendings < MOST_PENDING)
        s->pending[s->pendings++] = (pending_end){ended->id,
                                                  block,
                                                  ended->clock,
                                                  clock_of(s),
                                                  ended->depth,
                                                  st->now - ended->start,
                                                  site,
                                                  write,
                                                  0,
                                                  0};
    else
        out_end(self, s, ended->id, REVISIT_REUSED, ended->depth, st->now - ended->start, site, write);
    list_remove(&st->open, after - 1);
    active_add(-1);
}

static void come_back(revisit_thread* self, sampler* s, stack* st, uint64_t block, uint64_t site,
                      uint32_t write) {
    uint64_t filter = 0;
    for (uint32_t i = 0; i < st->lost.count;) {
        sample* lost = &st->lost.items[i];
        if (lost->block != block) {
            filter |= filter_bit(lost->block);
            i++;
            continue;
        }
        out_end(self, s, lost->id, REVISIT_INVALIDATED, 0, st->now - lost->start, site, write);
        list_remove(&st->lost, i);
    }
    st->lost_filter = filter;
}

static void choose(revisit_thread* self, sampler* s, stack* st, uint64_t block, uint64_t site) {
    table_exchange(&st->last_uses, block, st->now, oldest_of(st));
    st->top = NO_BLOCK;
    sample* made = list_add(&st->open);
    if (!made) return;
    *made = (sample){st->now, block, out_begin(self, s, site), clock_of(s), 0, 0, site};
    active_add(1);
}

static void prune(revisit_thread* self, sampler* s, stack* st, depth_limit* limit) {
    if (!st->open.count || !limit_exceeded(limit, st->open.items[0].depth)) return;
    sample* oldest = &st->open.items[0];
    limit_add(limit, oldest->depth);
    limit->given_up++;
    out_end(self, s, oldest->id, REVISIT_PRUNED, oldest->depth, st->now - oldest->start, oldest->site,
            0);
    list_remove(&st->open, 0);
    active_add(-1);
}

/* The shared stack, parallel. */
static void notice(sampler* s) {
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
        s->marks[s->mark_count++] = (shared_mark){i, now, block, s->own.now, 0};
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
static uint64_t merged_size(sampler* s, shared_sample* shared, uint64_t now) {
    uint64_t distinct = 0;
    uint32_t logs = __atomic_load_n(&common->logs, __ATOMIC_ACQUIRE);
    if (s->merged.size > 1 << 16) table_free(&s->merged);
    if (s->merged.entries) memset(s->merged.entries, 0, s->merged.size * sizeof *s->merged.entries);
    s->merged.used = 0;
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
            if (before > time || block == shared->block) continue;
            distinct += table_exchange(&s->merged, block, 1, 0) == 0;
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
    uint64_t distance = outcome == REVISIT_REUSED ? merged_size(s, shared, now) : mark.depth;
    if (!__atomic_compare_exchange_n(&shared->state, &now, now + 1, 0, __ATOMIC_ACQ_REL,
                                     __ATOMIC_RELAXED))
        return;
    limit_add(&s->limit, distance);
    s->limit.given_up += outcome == REVISIT_PRUNED;
    out_end(self, s, id, outcome, distance, s->own.now - mark.time, site, write);
    active_add(-1);
    __atomic_add_fetch(&common->version, 1, __ATOMIC_RELEASE);
}

static void use_shared(revisit_thread* self, sampler* s, uint64_t block, uint64_t site,
                       uint32_t write) {
    uint64_t now = s->own.now;
    if (s->mark_filter & filter_bit(block))
        for (uint32_t i = s->mark_count; i-- > 0;)
            if (s->marks[i].block == block) end_shared(self, s, i, REVISIT_REUSED, site, write);
    if (!s->mark_count) return;
    uint64_t last = table_exchange(&s->own.last_uses, block, now, s->marks[0].time);
    uint32_t i = s->mark_count;
    while (i > 0 && s->marks[i - 1].time >= last) s->marks[--i].depth++;
    if (i == s->mark_count || !log_ready(s)) return;
    log_put(s, s->log_next, 0, block);
    log_put(s, s->log_next, 1, last);
    s->log_next++;
}

static void choose_shared(revisit_thread* self, sampler* s, uint64_t block, uint64_t site) {
    for (uint32_t i = 0; i < MOST_SHARED && s->mark_count < MOST_SHARED; i++) {
        shared_sample* shared = &common->shared[i];
        uint64_t now = __atomic_load_n(&shared->state, __ATOMIC_RELAXED);
        /* 2 mod 4: being filled. */
        if (now & 3 || !__atomic_compare_exchange_n(&shared->state, &now, now + 2, 0, __ATOMIC_ACQ_REL,
                                                    __ATOMIC_RELAXED))
            continue;
        now += 3;
        __atomic_store_n(&shared->block, block, __ATOMIC_RELAXED);
        __atomic_store_n(&shared->id, out_begin(self, s, site), __ATOMIC_RELAXED);
        if (s->log) {
            __atomic_store_n(&shared->mark[s->log_index].time, s->own.now, __ATOMIC_RELAXED);
            __atomic_store_n(&shared->mark[s->log_index].position, s->log_next, __ATOMIC_RELAXED);
            __atomic_store_n(&shared->mark[s->log_index].state, now, __ATOMIC_RELAXED);
        }
        s->marks[s->mark_count++] = (shared_mark){i, now, block, s->own.now, 0};
        s->mark_filter |= filter_bit(block);
        s->own.top = NO_BLOCK;
        active_add(1);
        __atomic_store_n(&shared->state, now, __ATOMIC_RELEASE);
        __atomic_add_fetch(&common->version, 1, __ATOMIC_RELEASE);
        return;
    }
}

/* A fair lock: threads are served as they came. Who waits long sleeps, under a bit of its own, so that
   only the next one is woken. */
static long futex(uint32_t* word, int operation, uint32_t value, uint32_t bits) {
    return syscall(SYS_futex, word, operation | 128 /* private */, value, NULL, NULL, bits);
}
static void wait_turn(void) {
    uint32_t mine = __atomic_fetch_add(&common->ticket, 1, __ATOMIC_SEQ_CST), now;
    for (int spins = 0; (now = __atomic_load_n(&common->serving, __ATOMIC_ACQUIRE)) != mine; spins++)
        if (spins > 100) futex(&common->serving, 9 /* FUTEX_WAIT_BITSET */, now, 1u << mine % 32);
}
static void end_turn(void) {
    uint32_t next = common->serving + 1;
    __atomic_store_n(&common->serving, next, __ATOMIC_SEQ_CST);
    if (__atomic_load_n(&common->ticket, __ATOMIC_SEQ_CST) != next)
        futex(&common->serving, 10 /* FUTEX_WAKE_BITSET */, 0x7fffffff, 1u << next % 32);
}

typedef struct {
    revisit_thread* self;
    sampler* s;
    stack* st;
    depth_limit* limit;
    int is_on, is_shared, is_private;
    uint64_t shift, analyzed, chosen;
} page_reader;

/* One access to one block while a sample is open somewhere. Using the top of the stack again changes
   nothing. */
static inline void one_block(page_reader* r, uint64_t block, uint64_t site, uint32_t write) {
    sampler* s = r->s;
    stack* st = r->st;
    st->now++;
    if (block != st->top) {
        if (r->is_shared) {
            if (s->mark_count) use_shared(r->self, s, block, site, write);
        } else {
            if (st->open.count) use_block(r->self, s, st, r->limit, block, site, write);
            if (st->lost.count && st->lost_filter & filter_bit(block))
                come_back(r->self, s, st, block, site, write);
        }
        st->top = block;
    }
    if (write && r->is_private) log_write(s, block);
}

static void choose_block(page_reader* r, uint64_t block, uint64_t site) {
    if (r->is_shared)
        choose_shared(r->self, r->s, block, site);
    else
        choose(r->self, r->s, r->st, block, site);
}

/* What is counted down: accesses, and of those of variable length every block. A chosen access is a
   sample in each block it touches, so that blocks are chosen alike. */
static inline void one_access(page_reader* r, uint64_t address, uint64_t bytes, uint64_t site,
                              uint32_t write) {
    uint64_t shift = r->shift;
    uint64_t first = address >> shift, last = shift && bytes ? (address + bytes - 1) >> shift : first;
    for (uint64_t block = first; block <= last; block++) one_block(r, block, site, write);
    r->s->page_at++;
    if (--r->s->to_next) return;
    r->chosen++;
    for (uint64_t block = first; block <= last; block++) choose_block(r, block, site);
    r->s->to_next = gap(r->s);
}

static uint64_t bulk_blocks(const uint64_t* at) {
    uint64_t shift = process.stream->plan.block_shift;
    return at[3] == 0 ? 0 : shift == 0 ? 1 : ((at[2] + at[3] - 1) >> shift) - (at[2] >> shift) + 1;
}
static void bulk(page_reader* r, const uint64_t* at) {
    uint64_t blocks = bulk_blocks(at), block = at[2] >> r->shift;
    uint32_t write = at[0] & REVISIT_WRITE;
    if (!r->is_on && blocks < r->s->to_next) {
        r->s->to_next -= blocks;
        return;
    }
    for (uint64_t i = 0; i < blocks; i++, block++) {
        if (r->is_on) one_block(r, block, at[1], write);
        r->analyzed += (uint64_t)r->is_on;
        if (--r->s->to_next) continue;
        r->is_on = 1;
        r->chosen++;
        choose_block(r, block, at[1]);
        r->s->to_next = gap(r->s);
    }
}

/* Words of a record that is not a block of accesses. */
static uint32_t record_words(uint64_t first) {
    uint64_t n = REVISIT_N(first), text = (n + 7) / 8;
    switch (REVISIT_TAG(first)) {
        case REVISIT_PROCESS:
            return (uint32_t)(3 + text);
        case REVISIT_MODULE:
            return (uint32_t)(4 + text);
        case REVISIT_DEFINE_BLOCK:
            return (uint32_t)(2 + 2 * n);
        case REVISIT_DEFINE_SITE:
            return (uint32_t)(2 + text);
        case REVISIT_REGION_BEGIN:
        case REVISIT_REGION_END:
            return (uint32_t)(1 + text);
        case REVISIT_BULK:
            return 4;
        case REVISIT_UNLOAD:
        case REVISIT_STACK:
        case REVISIT_ALLOC:
        case REVISIT_ALLOC_SITE:
            return 3;
        case REVISIT_THREAD_START:
        case REVISIT_ENTER:
        case REVISIT_ENTER_SITE:
        case REVISIT_SYNC:
        case REVISIT_END:
            return 2;
        default:
            return 1;
    }
}

/* A block of code whose reads nobody waits for: its writes are for others to know. */
static void writes_of(page_reader* r, const code_block* code, const uint64_t* at, uint32_t count) {
    uint64_t begin = r->s->page_at;
    for (uint32_t i = 0; i < count; i++) {
        if (i < 63 && !(code->writes >> i & 1)) continue;
        uint64_t what = code->definition[2 + 2 * i];
        if (!(what >> 32 & REVISIT_WRITE) || at[1 + i] == REVISIT_NO_ACCESS) continue;
        uint64_t first = at[1 + i] >> r->shift, last = first;
        if (r->shift && (uint32_t)what) last = (at[1 + i] + (uint32_t)what - 1) >> r->shift;
        r->s->page_at = begin + i;
        for (uint64_t block = first; block <= last; block++) log_write(r->s, block);
    }
    r->s->page_at = begin + count;
}

static void block_of_code(page_reader* r, const code_block* code, const uint64_t* at, uint32_t count) {
    sampler* s = r->s;
    uint32_t i = 0;
    if (count < s->to_next) {
        int concerned = r->is_shared || r->st->open.count || r->st->lost.count;
        if (!r->is_on || !concerned) {
            s->to_next -= count;
            r->analyzed += r->is_on ? count : 0;
            if (r->is_on && r->is_private && code->writes)
                writes_of(r, code, at, count);
            else
                s->page_at += count;
            return;
        }
    } else if (!r->is_on) {
        i = (uint32_t)(s->to_next - 1);
        s->to_next = 1;
        s->page_at += i;
        r->is_on = 1;
    }
    r->analyzed += count - i;
    const table* uses = &r->st->last_uses;
    for (; i < count; i++) {
        uint64_t what = code->definition[2 + 2 * i];
        if (i + 6 < count && uses->entries)
            __builtin_prefetch(&uses->entries[hash(at[7 + i] >> r->shift) >> uses->shift]);
        if (what >> 32 & REVISIT_GUARDED && at[1 + i] == REVISIT_NO_ACCESS) {
            if (--s->to_next == 0) {
                r->chosen++;
                s->to_next = gap(s);
            }
            continue;
        }
        one_access(r, at[1 + i], (uint32_t)what, code->definition[3 + 2 * i] + code->site_base,
                   what >> 32 & REVISIT_WRITE);
    }
}

static void read_page(page_reader* r, const uint64_t* at, const uint64_t* end) {
    while (at < end) {
        if (*at & REVISIT_BLOCK_BIT) {
            uint64_t id = REVISIT_BLOCK_ID(*at);
            uint32_t count = REVISIT_BLOCK_COUNT(*at);
            if (id >= MOST_BLOCKS || !common->blocks[id].definition || at + 1 + count > end) return;
            block_of_code(r, &common->blocks[id], at, count);
            at += 1 + count;
        } else {
            if (REVISIT_TAG(*at) == REVISIT_BULK) bulk(r, at);
            at += *at ? record_words(*at) : 1;
        }
    }
}

/* Counts a page's accesses; sends on what is not about accesses. */
static uint64_t count_page(revisit_thread* self, sampler* s, const uint64_t* at, const uint64_t* end) {
    uint64_t sum = 0;
    while (at < end) {
        if (*at & REVISIT_BLOCK_BIT) {
            uint32_t count = REVISIT_BLOCK_COUNT(*at);
            sum += count;
            at += 1 + count;
        } else {
            uint32_t words = *at ? record_words(*at) : 1;
            if (REVISIT_TAG(*at) == REVISIT_BULK)
                sum += bulk_blocks(at);
            else if (REVISIT_TAG(*at) && REVISIT_TAG(*at) < REVISIT_TAGS &&
                     REVISIT_TAG(*at) != REVISIT_SYNC && REVISIT_TAG(*at) != REVISIT_DEFINE_BLOCK &&
                     words <= (size_t)(end - at)) {
                s->counts_last = 0;
                out_copy(self, s, at, words);
            }
            at += words;
        }
    }
    return sum;
}

static void analyze_page(revisit_thread* self, sampler* s, const uint64_t* at, const uint64_t* end,
                         uint64_t accesses, page_reader* r) {
    uint32_t want = process.stream->want;
    int in_turn = want & REVISIT_WANT_IN_TURN && want & REVISIT_WANT_SHARED;
    *r = (page_reader){self, s, &s->own, &s->limit, is_on(), 0, 0, process.stream->plan.block_shift,
                       0,    0};
    if (in_turn) {
        wait_turn();
        r->st = &common->all;
        r->limit = &common->limit;
    } else if (want & REVISIT_WANT_SHARED) {
        r->is_shared = 1;
        notice(s);
    } else {
        r->is_private = log_ready(s);
        r->is_on |= s->own.lost.count != 0;
        read_logs(s);
        settle_pending(self, s, 0);
        s->known[s->page % PAGES_KNOWN].first = s->own.now + 1;
        s->known[s->page % PAGES_KNOWN].begin = s->page_begin;
    }
    s->page_at = 0;
    s->page_step = accesses ? ((s->last_clock - s->page_begin) << 16) / accesses : 0;
    read_page(r, at, end);
    if (r->is_shared) {
        if (s->mark_count && limit_exceeded(&s->limit, s->marks[0].depth))
            end_shared(self, s, 0, REVISIT_PRUNED, 0, 0);
    } else {
        prune(self, s, r->st, r->limit);
    }
    if (in_turn) end_turn();
    log_publish(s);
}

void revisit_sampler_take(revisit_thread* self, const uint64_t* at, const uint64_t* end) {
    sampler* s = self->sampler;
    if (!s || s->busy) return; /* a handler that interrupted us here is not sampled */
    s->busy = 1;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    uint64_t accesses = count_page(self, s, at, end);
    s->page++;
    s->page_begin = s->last_clock;
    s->last_clock = clock_now();
    page_reader r = {.analyzed = 0};
    if (accesses >= s->to_next || is_on() || s->pendings || s->own.lost.count)
        analyze_page(self, s, at, end, accesses, &r);
    else {
        s->to_next -= accesses;
        if (!__atomic_load_n(&common->looked_away, __ATOMIC_RELAXED))
            __atomic_store_n(&common->looked_away, 1, __ATOMIC_RELAXED);
    }
    if (accesses) out_counts(self, s, accesses, r.analyzed, r.chosen);
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    s->busy = 0;
}

void revisit_sampler_rest(revisit_thread* self) {
    sampler* s = self->sampler;
    if (!s || s->busy || s->resting || process.stream->want & REVISIT_WANT_SHARED) return;
    s->resting = s->own.open.count;
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
        sample* given_up = &st->open.items[--st->open.count];
        out_end(self, s, given_up->id, REVISIT_PRUNED, given_up->depth, st->now - given_up->start,
                given_up->site, 0);
        active_add(-1);
    }
    s->busy = 0;
}

void revisit_sampler_hand_over(revisit_thread* self) {
    sampler* s = self->sampler;
    if (s && !s->busy) out_close(s);
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
    sampler* s = memory(sizeof *s);
    if (!s) return;
    s->random = process.stream->plan.seed * 0x2545f4914f6cdd1dull + self->number;
    s->out_slot = -1;
    s->own.now = 1;
    s->own.top = NO_BLOCK;
    take_log(s);
    if (s->own.now == 0) s->own.now = 1;
    s->to_next = gap(s);
    s->last_clock = clock_now();
    self->sampler = s;
}

void revisit_sampler_end(revisit_thread* self) {
    sampler* s = self->sampler;
    if (!s) return;
    s->busy = 1;
    settle_pending(self, s, 1);
    if (!(process.stream->want & REVISIT_WANT_SHARED) && !s->resting)
        active_add(-(int64_t)s->own.open.count);
    out_close(s);
    if (s->log) {
        s->log->now = s->own.now;
        __atomic_store_n(&s->log->taken, 0, __ATOMIC_RELEASE);
    }
    self->sampler = NULL;
    table_free(&s->own.last_uses);
    table_free(&s->merged);
    list_free(&s->own.open);
    list_free(&s->own.lost);
    munmap(s, sizeof *s);
}

void revisit_sampler_forked(revisit_thread* self) {
    if (self->sampler) self->sampler->out_slot = -1;
    sampling_state* before = common;
    code_block* blocks = before->blocks;
    common = memory(sizeof *common);
    if (!common) {
        common = before;
        return;
    }
    common->blocks = blocks;
    sampler* old = self->sampler;
    self->sampler = NULL;
    revisit_sampler_begin(self);
    if (old) munmap(old, sizeof *old);
}

void revisit_sampling_start(void) {
    sampling_state* made = memory(sizeof *made);
    if (!made) return;
    made->blocks = memory(MOST_BLOCKS * sizeof *made->blocks);
    if (!made->blocks) return;
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
            code->site_base = site_base;
            code->definition = at;
        }
        at += 2 + 2 * n;
    }
}
