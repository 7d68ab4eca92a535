/* Short windows of a shared stack: what other threads used between two uses in one thread.
 *
 * Problem. Threads learn of a sample when they read a page, some 500 accesses. A window that is shorter
 * gets nothing of what other threads used in it, or a page of it. Idea. Every thread keeps its last
 * pages where others can read them. A sample that its own thread ends within these pages is counted
 * from them: of its own thread all between use and reuse; of every other thread that runs, a window of
 * as many words, times how much faster than this one it went on lately, that ends at random in its last
 * page. As in the full analysis (record/interleave.h), time passes by words, and a block of code is not
 * interrupted:
 *
 *     own:    │ use … │ a b │ c … reuse │     12 words from the block of the use to that of the reuse
 *     other:  │ d e │ f │ g h i │ j … │       blocks of code that begin within 12 words: {d, e, f, g,
 * h, i}
 *
 * If another thread uses the sample's block in its window, the sample ends there. Cost. Keeping a page
 * takes a store per word, 0.4 ns; counting a window, 5 ns per access in it.
 */
#define _GNU_SOURCE
#include "record/clang/sampler_stack.h"

enum {
    LAP = 1 << 18,              /* accesses over which speeds are compared: some time slices */
    LONGEST = RECENT_WORDS / 4, /* window of one thread */
    LONGEST_OF_ALL = 1 << 16,   /* of all threads together */
    PHASES = 512,               /* words: about a page */
};

void revisit_recent_keep(sampler* s, const uint64_t* at, const uint64_t* end) {
    shared_log* log = s->log;
    uint64_t words = (uint64_t)(end - at);
    s->recent_base = 0;
    if (!log || words > RECENT_WORDS / 4) return;
    if (!log->recent) {
        uint64_t* ring = own_memory(RECENT_WORDS * sizeof *ring);
        if (!ring) return;
        __atomic_store_n(&log->recent, ring, __ATOMIC_RELEASE);
    }
    uint64_t base = log->recent_head ? log->recent_head : 1, page = log->recent_pages;
    for (uint64_t i = 0; i < words; i++)
        __atomic_store_n(&log->recent[(base + i) % RECENT_WORDS], at[i], __ATOMIC_RELAXED);
    __atomic_store_n(&log->recent_page[page % RECENT_PAGES], base, __ATOMIC_RELAXED);
    __atomic_store_n(&log->recent_pages, page + 1, __ATOMIC_RELEASE);
    __atomic_store_n(&log->recent_head, base + words, __ATOMIC_RELEASE);
    s->recent_base = base;
}

void revisit_recent_progress(sampler* s, uint64_t accesses) {
    if (!s->log) return;
    uint64_t own = s->log->progress + accesses;
    __atomic_store_n(&s->log->progress, own, __ATOMIC_RELAXED);
    if (s->lap_own[1] && own - s->lap_own[1] < LAP) return;
    uint32_t logs = __atomic_load_n(&common->logs, __ATOMIC_ACQUIRE);
    for (uint32_t k = 0; k < logs && k < MOST_LOGS; k++) {
        uint64_t now = __atomic_load_n(&common->log[k].progress, __ATOMIC_RELAXED);
        s->lap[0][k] = s->lap_own[1] ? s->lap[1][k] : now;
        s->lap[1][k] = now;
    }
    s->lap_own[0] = s->lap_own[1] ? s->lap_own[1] : own;
    s->lap_own[1] = own;
}

/* Another thread's accesses for each of this one's, over the last one or two laps. */
static double speed_of(const sampler* s, uint32_t k) {
    uint64_t own = s->log->progress - s->lap_own[0];
    uint64_t other = __atomic_load_n(&common->log[k].progress, __ATOMIC_RELAXED) - s->lap[0][k];
    if (other == 0 || other > 1ull << 60) return 0;
    if (own < 4096) return 1;
    double speed = (double)other / (double)own;
    return speed > 4 ? 4 : speed;
}

/* Positions in a thread's words. An own window lies between two accesses; of another thread, blocks of
   code that begin in it count. */
typedef struct {
    const shared_log* log;
    uint64_t from, to;
    int is_own;
    uint64_t met;       /* where the sample's block was used first, or NEVER */
    uint64_t use_block; /* own: where the block of code begins that has the use */
} window;

static uint64_t word_at(const shared_log* log, uint64_t at) {
    return __atomic_load_n(&log->recent[at % RECENT_WORDS], __ATOMIC_RELAXED);
}

static uint64_t page_before(const shared_log* log, uint64_t at) {
    uint64_t pages = __atomic_load_n(&log->recent_pages, __ATOMIC_ACQUIRE);
    for (uint64_t i = 1; i <= RECENT_PAGES && i <= pages; i++) {
        uint64_t begin =
            __atomic_load_n(&log->recent_page[(pages - i) % RECENT_PAGES], __ATOMIC_RELAXED);
        if (begin <= at) return begin;
    }
    return NEVER;
}

static void enter_blocks(sampler* s, window* w, uint64_t address, uint64_t bytes, uint64_t sampled,
                         uint64_t at, uint64_t* distinct) {
    uint64_t shift = process.stream->plan.block_shift, first = address >> shift, last = first;
    if (shift && bytes) last = (address + bytes - 1) >> shift;
    if (last - first > RECENT_WORDS) last = first + RECENT_WORDS;
    for (uint64_t block = first; block <= last; block++) {
        if (block == sampled) {
            if (at < w->met) w->met = at;
        } else {
            *distinct += table_exchange(&s->merged, block, s->merging, s->merging) != s->merging;
        }
    }
}

/* Adds a window's blocks to the union; 0 when its words are gone. */
static int read_window(sampler* s, window* w, uint64_t sampled, uint64_t* distinct) {
    uint64_t at = page_before(w->log, w->from), begin = at;
    w->met = NEVER;
    if (at == NEVER) return 0;
    while (at < w->to) {
        uint64_t first = word_at(w->log, at);
        if (!(first & REVISIT_BLOCK_BIT)) {
            if (REVISIT_TAG(first) == REVISIT_BULK && at >= w->from)
                enter_blocks(s, w, word_at(w->log, at + 2), word_at(w->log, at + 3), sampled, at,
                             distinct);
            uint64_t words = first ? revisit_record_words(first) : 1;
            at += words ? words : 1; /* words that were overwritten meanwhile say anything */
            continue;
        }
        uint64_t id = REVISIT_BLOCK_ID(first);
        uint32_t count = REVISIT_BLOCK_COUNT(first);
        const uint64_t* definition = id < MOST_BLOCKS ? common->blocks[id].definition : NULL;
        if (!definition || count > REVISIT_N(definition[0])) return 0;
        if (w->is_own && at < w->from && w->from <= at + count) w->use_block = at;
        for (uint32_t i = 0; i < count; i++) {
            uint64_t place = w->is_own ? at + 1 + i : at;
            if (w->is_own ? place <= w->from || place >= w->to : place < w->from) continue;
            uint64_t address = word_at(w->log, at + 1 + i), what = definition[2 + 2 * i];
            if (what >> 32 & REVISIT_GUARDED && address == REVISIT_NO_ACCESS) continue;
            enter_blocks(s, w, address, (uint32_t)what, sampled, at, distinct);
        }
        at += 1 + count;
    }
    uint64_t head = __atomic_load_n(&w->log->recent_head, __ATOMIC_ACQUIRE);
    return head - begin <= RECENT_WORDS / 4 * 3;
}

/* The union of this thread's window up to `until` words after its beginning and those of the others;
   where another thread met the sampled block first, or NEVER. */
static int merge_windows(sampler* s, uint64_t use, uint64_t reuse, uint64_t reuse_block,
                         uint64_t sampled, uint64_t until, uint64_t phase, uint64_t* distinct,
                         uint64_t* met) {
    uint64_t in_all = 0;
    window own = {s->log, use, reuse, 1, NEVER, 0};
    s->merging++;
    *distinct = 0;
    *met = NEVER;
    if (!read_window(s, &own, sampled, distinct) || !own.use_block) return 0;
    uint64_t length = reuse_block > own.use_block ? reuse_block - own.use_block : 0;
    if (until < length) {
        length = until;
        own.to = own.use_block + length > use ? own.use_block + length : use;
        s->merging++;
        *distinct = 0;
        if (!read_window(s, &own, sampled, distinct)) return 0;
    }
    uint32_t logs = __atomic_load_n(&common->logs, __ATOMIC_ACQUIRE);
    for (uint32_t k = 0; length && k < logs && k < MOST_LOGS; k++) {
        const shared_log* log = &common->log[k];
        if (k == s->log_index || !__atomic_load_n(&log->recent, __ATOMIC_ACQUIRE)) continue;
        double speed = speed_of(s, k);
        uint64_t words = (uint64_t)((double)length * speed + 0.5);
        uint64_t head = __atomic_load_n(&log->recent_head, __ATOMIC_ACQUIRE);
        phase = phase * 0x9e3779b97f4a7c15ull + k;
        uint64_t later = (phase >> 33) % PHASES;
        if (words > LONGEST || (in_all += words) > LONGEST_OF_ALL) return 0;
        if (!words || head <= words + later) continue;
        window other = {log, head - later - words, head - later, 0, NEVER, 0};
        if (!read_window(s, &other, sampled, distinct)) continue;
        if (other.met == NEVER) continue;
        uint64_t after = (uint64_t)((double)(other.met - other.from) / speed);
        if (after < *met) *met = after;
    }
    return 1;
}

uint64_t revisit_recent_distance(sampler* s, uint64_t use, uint64_t block, uint64_t id) {
    uint64_t distinct, met, none;
    if (!use || !s->position || !s->log || s->log->recent_head - use > RECENT_WORDS / 2) return NEVER;
    if (!merge_windows(s, use, s->position, s->block_position, block, NEVER, id, &distinct, &met))
        return NEVER;
    if (met != NEVER &&
        !merge_windows(s, use, s->position, s->block_position, block, met, id, &distinct, &none))
        return NEVER;
    return distinct;
}
