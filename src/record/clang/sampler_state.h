/* What the parts of the sampler share: the state of the process and of a thread. sampler.c explains the
 * idea.
 *
 * `common` is one for all threads; a thread's `sampler` is read and written by that thread alone. What
 * threads read of each other lies in `common`, and is read and written by atomic operations: of the
 * logs the head (released by the writer, acquired by readers; entries behind it are relaxed, for a
 * reader that is more than a ring behind may meet one that is being overwritten), of shared samples the
 * state. In turn, the stack `all` belongs to whoever is served by the lock.
 */
#ifndef REVISIT_RECORD_CLANG_SAMPLER_STATE_H
#define REVISIT_RECORD_CLANG_SAMPLER_STATE_H

#include "engines/sample_sets.h"
#include "record/clang/runtime.h"
#include "record/clang/sampler.h"

#define process __revisit_process

enum {
    MOST_LOGS = 1024,      /* threads at a time that inform each other */
    LOG_ENTRIES = 1 << 17, /* then the oldest are overwritten */
    MOST_BLOCKS = 1 << 22, /* blocks of code */
    MOST_SHARED = 256,     /* samples open at a time in a shared stack */
    SEEN_BLOCKS = 1024,    /* written in this page */
    MOST_PENDING = 64,
    PENDING_PAGES = 16,   /* at most */
    CONTENDED_WORDS = 64, /* of 64 bits: blocks, hashed */
    PAGES_KNOWN = 8,
    RECENT_WORDS = 1 << 14, /* shared: of a thread's last pages */
    RECENT_PAGES = 64,
    PAGES_KEPT = 4,                 /* that nobody had asked for yet */
    KEPT_WORDS = 1536,              /* a page and what a late check adds */
    LIMIT_OCTAVE = 8,               /* bins a power of two, of distances */
    KEPT_FREE_WORDS = 256,          /* in an output slot */
    MOST_FRAMES = 128,              /* deeper calls stay in their caller */
    MOST_PATHS = 1 << 16,           /* so do those beyond */
    NEAR = 2 * REVISIT_COUNTED_MAX, /* accesses before a sample that all threads write again */
};

typedef struct {
    const uint64_t* definition;
    uint64_t site_base;
    uint32_t words; /* less than its accesses where some are derived */
    uint64_t
        writes; /* bits: which of its first 63 accesses are writes; all ones where there are more */
} code_block;

/* One writer, any number of readers. Words of an entry: private: see sampler_log.h; shared: block, time
   of its use before. */
typedef struct {
    uint64_t word[5];
} log_entry;
typedef struct {
    uint64_t head __attribute__((aligned(64))); /* published */
    log_entry* ring;
    uint64_t now; /* the time at which a next owner goes on */
    /* private: clocks at the end of its last page, and up to which its writes are published */
    uint64_t page_end, complete;
    /* shared: its last pages, where they begin, and its accesses (sampler_recent.c) */
    uint64_t *recent, recent_head, recent_pages, progress;
    uint64_t recent_page[RECENT_PAGES];
    uint32_t taken;
} shared_log;

typedef struct {
    uint64_t block, stamp; /* 0: empty; 1: forgotten; else time + 1 */
} table_entry;
typedef struct {
    table_entry* entries;
    uint64_t size, used;
    unsigned shift;
} table;

/* Calls that a thread is in (sampler_paths.c). */
typedef struct {
    uint64_t stack; /* pointer at entry */
    uint32_t site;
    uint32_t path; /* 0: nobody has asked yet */
} call_frame;
typedef struct {
    uint32_t depth;
    call_frame frame[MOST_FRAMES];
} call_stack;

/* The write that took a block from a thread. */
typedef struct {
    uint64_t clock; /* NEVER: none did */
    uint64_t site;  /* and path << 32, as wherever a sample's site is */
    uint32_t thread, parts;
} taking_write;

typedef struct {
    open_sample sample;
    taking_write taken;
} lost_sample;
typedef struct {
    lost_sample* items;
    uint32_t count, room;
} lost_list;

typedef struct {
    table last_uses;
    sample_sets open;
    lost_list lost; /* taken by a write elsewhere and not used again yet */
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
    uint32_t write, parts, pages;
    taking_write taken;
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
    uint64_t position; /* of its use; 0: another thread's */
} shared_mark;

typedef struct revisit_sampling {
    int64_t active;   /* samples open or pending */
    int64_t near;     /* threads that are about to choose */
    uint64_t version; /* of shared samples */
    uint32_t logs;
    uint32_t level;       /* how often the rate has been halved */
    uint32_t all_level;   /* at which the samples of `all` were looked through */
    uint64_t samples;     /* at that level, about */
    uint32_t looked_away; /* pages went by unread since a thread began to rest */
    uint32_t ticket __attribute__((aligned(64)));
    uint32_t serving;
    stack all; /* in turn */
    depth_limit limit;
    code_block* blocks;
    uint64_t contended[CONTENDED_WORDS]; /* bits: threads write them amid each other's uses */
    uint64_t paths[MOST_PATHS];          /* caller's number << 32 | site + 1; 0: free */
    const char* regions; /* names of those that count, one a line; null: all of the program */
    shared_log log[MOST_LOGS];
    shared_sample shared[MOST_SHARED];
} sampling_state;

typedef struct revisit_sampler {
    uint64_t random, to_next, made;
    uint32_t thread;
    uint32_t next_level; /* at which the way to the next sample was drawn */
    uint32_t own_level;  /* at which samples were last looked through by this thread */
    uint32_t told_level;
    int counts_last; /* the last record in the output slot is SAMPLED */
    int busy;
    int near;         /* counted in common->near */
    uint32_t inside;  /* regions open that count */
    uint32_t resting; /* samples it had when it began to wait */
    int32_t out_slot;
    uint64_t* out;
    uint32_t out_words;
    stack own;
    depth_limit limit;
    /* messages to others, and from them */
    shared_log* log;
    uint32_t log_index;
    uint64_t log_next;
    uint64_t read[MOST_LOGS];
    struct {
        uint64_t block, index, page;
    } seen[SEEN_BLOCKS];
    /* the page in hand */
    uint64_t page, page_begin, page_step, page_at, last_clock;
    uint64_t others_complete; /* clock up to which the writes of all that run are read */
    struct {
        uint64_t first, begin;
    } known[PAGES_KNOWN];
    struct {
        uint64_t begin, step, words;
        uint32_t open;
        uint64_t word[KEPT_WORDS];
        call_stack calls; /* as it began */
    } kept[PAGES_KEPT];   /* private: pages that were only counted */
    uint64_t kept_next, kept_first;
    uint64_t expanded[KEPT_WORDS]; /* of a page with derived accesses */
    pending_end pending[MOST_PENDING];
    uint32_t pendings;
    /* calls up to the word in hand: the thread's, a kept page's, or none (a signal handler's) */
    call_stack *calls, own_calls, no_calls;
    uint64_t told_paths[MOST_PATHS / 64];
    /* shared, parallel */
    uint64_t version;
    shared_mark marks[MOST_SHARED];
    uint32_t mark_count;
    uint64_t mark_filter;
    table merged;
    uint64_t merging; /* which union it holds */
    /* the last pages: where this one begins, the access in hand and its block of code; 0: nowhere */
    uint64_t recent_base, position, block_position;
    uint64_t lap[2][MOST_LOGS], lap_own[2]; /* accesses of others and its own, one and two laps ago */
} sampler;

#define common process.sampling
#define NO_BLOCK (~0ull)
#define NEVER (~0ull)

static inline uint64_t clock_now(void) {
#if defined(__aarch64__)
    uint64_t value;
    __asm__ volatile("mrs %0, cntvct_el0" : "=r"(value));
    return value;
#else
    return __builtin_ia32_rdtsc();
#endif
}

static inline uint64_t clock_of(const sampler* s) {
    return s->page_begin + (s->page_at * s->page_step >> 16);
}

static inline void active_add(int64_t n) {
    __atomic_add_fetch(&common->active, n, __ATOMIC_RELAXED);
}
static inline int is_on(void) {
    return __atomic_load_n(&common->active, __ATOMIC_RELAXED) > 0;
}

/* sampler_chance.c: accesses to the next sample; the limit for giving up. */
uint64_t revisit_gap(sampler* s);
void revisit_count_sample(sampler* s);
void revisit_raise(uint32_t level);
void revisit_limit_add(depth_limit* limit, uint64_t depth);
int revisit_limit_exceeded(depth_limit* limit, uint64_t depth);

/* sampler_output.c */
void revisit_out_close(sampler* s);
void revisit_out_copy(revisit_thread* self, sampler* s, const uint64_t* record, uint32_t words);
void revisit_out_counts(revisit_thread* self, sampler* s, uint64_t accesses, uint64_t analyzed,
                        uint64_t chosen);
/* A sample's number. */
uint64_t revisit_out_begin(revisit_thread* self, sampler* s, uint64_t site);
void revisit_out_end(revisit_thread* self, sampler* s, uint64_t id, uint32_t outcome, uint64_t distance,
                     uint64_t time, uint64_t site, uint32_t write);

/* A reuse that was invalidated, and by whom. */
void revisit_out_taken(revisit_thread* self, sampler* s, uint64_t id, uint64_t block, uint64_t time,
                       uint64_t site, uint32_t write, uint32_t parts, const taking_write* by);

/* sampler_paths.c: the site with the path to it; what a page's record says of calls. */
uint64_t revisit_on_path(sampler* s, uint64_t site);
void revisit_follow_call(sampler* s, const uint64_t* record);
/* sampler_output.c: a path, and those it begins with, before it is named for the first time. */
void revisit_out_path(revisit_thread* self, sampler* s, uint64_t site);

/* sampler_private.c */
void revisit_read_logs(sampler* s);
void revisit_settle_pending(revisit_thread* self, sampler* s, int all);
void revisit_ended(revisit_thread* self, sampler* s, stack* st, depth_limit* limit, sets_place ended,
                   uint64_t site, uint32_t write, uint32_t parts);
void revisit_come_back(revisit_thread* self, sampler* s, stack* st, uint64_t block, uint64_t site,
                       uint32_t write, uint32_t parts);
/* 0: there is no room for another. */
int revisit_choose_private(revisit_thread* self, sampler* s, stack* st, uint64_t time, uint64_t block,
                           uint64_t site);
/* Drops the samples that the level leaves out. */
void revisit_thin(stack* st, uint32_t* looked_through);
void revisit_prune(revisit_thread* self, sampler* s, stack* st, depth_limit* limit);

/* sampler_pages.c: the thread does not keep others from counting. */
void revisit_sampler_is_far(sampler* s);
/* Words of a record that is not a block of accesses. */
uint32_t revisit_record_words(uint64_t first);

/* sampler_recent.c */
void revisit_recent_keep(sampler* s, const uint64_t* at, const uint64_t* end);
void revisit_recent_progress(sampler* s, uint64_t accesses);
/* The distance in the shared stack from a use of this thread to the access in hand; NEVER: not known.
 */
uint64_t revisit_recent_distance(sampler* s, uint64_t use, uint64_t block, uint64_t id);

/* sampler_shared.c */
void revisit_notice(sampler* s);
void revisit_use_shared(revisit_thread* self, sampler* s, uint64_t block, uint64_t site,
                        uint32_t write);
int revisit_choose_shared(revisit_thread* self, sampler* s, uint64_t block, uint64_t site);
void revisit_prune_shared(revisit_thread* self, sampler* s);
void revisit_thin_shared(sampler* s);
void revisit_wait_turn(void);
void revisit_end_turn(void);

#endif
