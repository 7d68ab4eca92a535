/* The stream from a recorded program to the analyzer.
 *
 * Problem. A program makes a billion accesses a second; each must reach the analyzer, in order, with
 * its instruction, in bounded memory, whatever way the program ends, and with nothing left behind.
 * Idea. One shared mapping (a memfd: it has no name, so nothing can be left) cut into slots of 128 KiB.
 * A thread fills a slot with 8-byte words and hands it over; the order of hand-over is the order of
 * analysis. What instruction, size and direction an access has is sent once per block of code
 * (DEFINE_BLOCK); from then on a block costs one word and each of its accesses one more, the address,
 * unless the definition says that it lies a constant away from another.
 * A program that dies has nothing to do: its slots lie in memory the analyzer shares, which zeroes a
 * slot before it is reused, so what a dead process had not handed over is read up to the first zero
 * word (salvage). No exit hook or signal handler is needed for a complete profile. Cost. A hand-over is
 * a ticket, two stores and, when the other side sleeps, one futex call.
 *
 * This header is all that producers share with the analyzer: C or C++, no library at all (system calls
 * are made here), so that it works inside valgrind, inside a signal handler and before main.
 *
 *   producer: base = mmap of $REVISIT_STREAM (a path like /proc/PID/fd/N), revisit_stream_valid(base)
 *             me = revisit_producer_start(base); first slot opens with a PROCESS record
 *             slot = revisit_slot_open(base, me, thread); write words; revisit_slot_hand_over(base,
 * slot, n) analyzer: src/record/consume.h
 *
 * A child made by fork must take a producer number and a slot of its own (its parent's go on being the
 * parent's) and open with PROCESS, which names the parent: it inherits the parent's definitions, so the
 * parent hands over what it has defined before it forks.
 */
#ifndef REVISIT_RECORD_STREAM_H
#define REVISIT_RECORD_STREAM_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define REVISIT_STREAM_MAGIC 0x336d737465726976ull /* "viretsm3" */
#define REVISIT_STREAM_ENV "REVISIT_STREAM"
#define REVISIT_FUNCTIONS_ENV "REVISIT_FUNCTIONS" /* clang: chosen by --function, one a line */
#define REVISIT_REGIONS_ENV "REVISIT_REGIONS"     /* clang, sampling: regions that count, one a line */

#define REVISIT_SLOT_WORDS 16384u /* 128 KiB */
#define REVISIT_SLOTS 1024u       /* pages are used only where touched: low slots first */
/* Handed over and not yet analysed: 2 MiB, then producers wait. With 16 MiB they left the cache and
   appending took a tenth longer (bench/discard.cpp). */
#define REVISIT_SLOTS_FULL 16u
#define REVISIT_BLOCK_MAX 4095u /* accesses in one block of code; longer ones are cut */
#define REVISIT_TEXT_MAX 8192u  /* bytes of text in one record */

/* Records.
 *
 * First word of a block of accesses: bit 63 set, count in 62..48, block id in 47..0. Then `count`
 * addresses, in order, of the accesses that have a word (see REVISIT_DERIVED); there may be less of
 * them than the definition has where the block was left early: it ended before the first access without
 * one. Ids are the producer's choice, process-wide: small numbers are looked up by index, others (the
 * address of a static descriptor, say) by hash. An address of REVISIT_NO_ACCESS is an access whose
 * guard was false.
 *
 * Every other first word: tag in 63..56, then a field called n in 55..0. Word 0 never begins a record.
 * `where` is a program counter, or with REVISIT_BY_SITE a number some DEFINE_SITE explains.
 * Text is bytes, padded with zeros to whole words; n is its length in bytes.
 */
#define REVISIT_BLOCK_BIT (1ull << 63)
#define REVISIT_BLOCK(id, count) (REVISIT_BLOCK_BIT | (uint64_t)(count) << 48 | (uint64_t)(id))
#define REVISIT_BLOCK_ID(word) ((word)&0xffffffffffffull)
#define REVISIT_BLOCK_COUNT(word) ((uint32_t)((word) >> 48) & 0x7fffu)
#define REVISIT_NO_ACCESS (~0ull)

#define REVISIT_RECORD(tag, n) ((uint64_t)(tag) << 56 | (uint64_t)(n))
#define REVISIT_TAG(word) ((uint32_t)((word) >> 56))
#define REVISIT_N(word) ((word)&0xffffffffffffffull)

enum {
    REVISIT_PROCESS =
        1, /* n = text length; REVISIT_PROCESS_ID, parent's producer number or REVISIT_NO_PARENT, text:
              the command, arguments separated by zeros. First record of every producer. */
    REVISIT_END, /* n = 0; accesses appended in all (0 = not counted). Last record, if there is one */
    REVISIT_MODULE,       /* n = text length; low, high, file offset, text: path, 0, build id in hex */
    REVISIT_UNLOAD,       /* n = 0; low, high: what was mapped there is gone */
    REVISIT_DEFINE_BLOCK, /* n = accesses; block id; n × (REVISIT_ACCESS(size, flags), where) */
    REVISIT_DEFINE_SITE,  /* n = text length; site; text: frames, innermost first, each function, 0,
                             file,  0, line in decimal, 0 */
    REVISIT_THREAD,       /* n = thread number; what follows in this slot is that thread's */
    REVISIT_THREAD_START, /* n = new thread's number; the thread that made it */
    REVISIT_THREAD_EXIT,  /* n = thread number */
    REVISIT_BULK,  /* n = flags; where, address, length: memcpy and the like; once in each block */
    REVISIT_ENTER, /* n = where of the call or function; stack pointer. A frame at or above an older
                      one means that the older was jumped out of */
    REVISIT_ENTER_SITE,   /* the same, n is a site number */
    REVISIT_LEAVE,        /* n = stack pointer that ENTER had: ends that frame and all below it */
    REVISIT_ALLOC,        /* n = where of the call, or 0: pages mapped by the call the thread is in;
                             address, size */
    REVISIT_ALLOC_SITE,   /* the same, n is a site number */
    REVISIT_FREE,         /* n = address */
    REVISIT_STACK,        /* n = thread number; low, high of its stack */
    REVISIT_REGION_BEGIN, /* n = text length; text: name */
    REVISIT_REGION_END,   /* n = text length; text: name */
    REVISIT_SYNC,         /* n = kind; object's address */
    REVISIT_PATH,       /* n = a call path's number, from 1; its caller's << 32 | site of the function.
                           Sites of the records below are site | path << 32, path 0: not known */
    REVISIT_SAMPLE,     /* n = sample's number; site. Chosen by a sampling recorder, in this thread */
    REVISIT_SAMPLE_END, /* n = its number; REVISIT_REUSED… | write << 8, distance, time distance, site
                         */
    REVISIT_SAMPLE_TAKEN, /* the same where another thread's write took the block: n = its number; write
                             | parts << 8 | writer's parts << 20 | writer's thread << 32 (parts: the
                             first and the last << 6 of the block's 64), the block's address, time
                             distance, site, writer's site */
    REVISIT_SAMPLED,      /* n = thread number | level << 32 (see the sampling plan); accesses since the
                             last such record; of these, those analyzed, and those chosen (which are
                             samples in each block they touch), each 2^level times */
    REVISIT_MAP_SITE, /* n = site number of the call that mapped pages; address, size */
    REVISIT_TAGS
};

#define REVISIT_NO_PARENT (~0ull)

/* A process's number and the PID namespace that has it: the inode of that, or 0 where /proc does not
   show it. Both have 32 bits. */
#define REVISIT_NAMESPACE "/proc/self/ns/pid"
#define REVISIT_PROCESS_ID(pid, space) ((uint64_t)(space) << 32 | (uint32_t)(pid))
#define REVISIT_NAMESPACE_OF(id) ((uint64_t)(id) >> 32)

/* One access of a block definition. An atomic read-modify-write is one access, written and atomic; an
   instruction that loads, computes and stores is two. */
#define REVISIT_ACCESS(size, flags) ((uint64_t)(flags) << 32 | (uint64_t)(size))
enum {
    REVISIT_WRITE = 1,
    REVISIT_ATOMIC = 2,
    REVISIT_GUARDED = 4, /* the address may be REVISIT_NO_ACCESS */
    REVISIT_BY_SITE = 8, /* `where` is a site number */
    REVISIT_DERIVED = 16 /* no word of its own; with REVISIT_BY_SITE */
};
/* A derived access: a word of the block, counted from 0 behind the header and before this access, is an
   address that this one is a constant away from. Its number lies in the access's word, the constant in
   the upper half of `where`. */
/* 1 + accesses ≤ 3 × (1 + words), so that readers know how many come. */
#define REVISIT_DERIVED_MOST 3u
#define REVISIT_DERIVED_FROM(word) ((uint64_t)REVISIT_DERIVED << 32 | (uint64_t)(word) << 40)
#define REVISIT_DERIVED_BY(offset) ((uint64_t)(uint32_t)(offset) << 32)
#define REVISIT_DERIVED_WORD(access) ((uint32_t)((access) >> 40) & 0xfffu)
#define REVISIT_DERIVED_OFFSET(where) ((int64_t)(where) >> 32)
enum {
    REVISIT_SYNC_LOCK = 1,
    REVISIT_SYNC_UNLOCK,
    REVISIT_SYNC_SIGNAL,
    REVISIT_SYNC_WAIT,
    REVISIT_SYNC_JOIN,
    REVISIT_SYNC_REST, /* about to wait until another thread ends */
    REVISIT_SYNC_EXIT  /* the thread ends; object: the word that the kernel clears then */
};

/* What the analyzer wants beside accesses; a producer may leave out what is not asked for. */
enum {
    REVISIT_WANT_CALLS = 1,    /* ENTER, LEAVE */
    REVISIT_WANT_OBJECTS = 2,  /* ALLOC, FREE, STACK */
    REVISIT_WANT_REGIONS = 4,  /* only accesses between REGION_BEGIN and REGION_END count */
    REVISIT_WANT_CHILDREN = 8, /* programs started by exec are to be recorded too */
    REVISIT_WANT_SAMPLES = 16, /* SAMPLE, SAMPLE_END and SAMPLED instead of accesses; see below */
    REVISIT_WANT_SHARED = 32,  /* … in one stack for all threads, not in one for each */
    REVISIT_WANT_IN_TURN = 64, /* … threads take turns while there is a sample */
    REVISIT_WANT_ORDER = 128   /* the order of accesses of different threads matters: small slots */
};
enum { REVISIT_REUSED = 0, REVISIT_COLD, REVISIT_INVALIDATED, REVISIT_PRUNED };

/* How to sample. */
typedef struct {
    double rate;     /* at level 0; every level halves it */
    uint64_t wanted; /* samples: whenever there are twice as many, the level rises; 0: it stays */
    double prune_share;
    uint64_t prune_after;
    uint64_t seed;
    uint64_t block_shift; /* log2 of the granularity */
} revisit_sampling_plan;

/* A sample's number: thread, the level that its gap was drawn at, and which it is of the thread's. As
   the level rises, samples of lower ones are dropped with chance 1/2 each, so that what is left was
   chosen at the last level's rate. Both sides know which: it follows from the number. */
enum { REVISIT_MOST_LEVELS = 48 };
#define REVISIT_SAMPLE_ID(thread, level, made) \
    ((uint64_t)((thread)&0xfffff) << 36 | (uint64_t)(level) << 30 | ((made)&0x3fffffff))
#define REVISIT_SAMPLE_LEVEL(id) ((uint32_t)((id) >> 30) & 63)
static inline int revisit_sample_is_kept(uint64_t id, uint32_t level) {
    uint32_t since = level > REVISIT_SAMPLE_LEVEL(id) ? level - REVISIT_SAMPLE_LEVEL(id) : 0;
    uint64_t z = id * 0x9e3779b97f4a7c15ull;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ z >> 27) * 0x94d049bb133111ebull;
    return since == 0 || z >> (64 - since) == 0;
}

enum { REVISIT_SLOT_FREE = 0, REVISIT_SLOT_FILLING = 1, REVISIT_SLOT_FULL = 2 };

typedef struct {
    uint32_t state;
    uint32_t producer;
    uint32_t thread;
    uint32_t words;        /* valid when full */
    uint64_t opened;       /* the ticket counter when it was opened: the order of salvage */
    uint64_t began, ended; /* revisit_ticks() when it was opened and handed over */
} revisit_slot;

typedef struct {
    uint64_t magic;
    uint32_t slots, slot_words, slots_full;
    uint32_t want;
    uint64_t data_offset; /* of slot 0, from the base; slots are page-aligned */
    uint32_t analyzer;    /* its process id */
    uint32_t stop;        /* not 0: the analyzer wants no more; record nothing */
    revisit_sampling_plan plan;

    uint64_t head __attribute__((aligned(64))); /* tickets given out */
    uint64_t published;                         /* tickets whose queue entry is written; a futex */
    uint64_t words;                             /* handed over in all */
    uint32_t producers;                         /* numbers given out; 0 is never one */
    uint32_t unrecorded;                        /* threads that found no slot */
    uint32_t analyzer_sleeps;
    uint32_t out_of_reach; /* processes and programs that cannot be recorded and run as they are */
    uint32_t forks;        /* under way: counted before one, no more once the child has said PROCESS */

    uint64_t tail __attribute__((aligned(64))); /* slots analysed and given back; a futex */
    uint32_t producers_sleep;
    uint32_t
        guard_at; /* the word of the guard that tells whether the analyzer lives, from 1; 0: none */
    uint64_t guard[6]; /* a mutex that the analyzer holds and the kernel marks when that ends */

    uint32_t queue[REVISIT_SLOTS] __attribute__((aligned(64))); /* ticket mod SLOTS → slot + 1 */
    revisit_slot slot[REVISIT_SLOTS];
} revisit_stream;

#define REVISIT_STREAM_DATA ((sizeof(revisit_stream) + 65535u) & ~(size_t)65535u)
#define REVISIT_STREAM_BYTES (REVISIT_STREAM_DATA + (size_t)REVISIT_SLOTS * REVISIT_SLOT_WORDS * 8u)

static inline long revisit_syscall(long number, long a, long b, long c, long d) {
#if defined(__aarch64__)
    register long x8 __asm__("x8") = number;
    register long x0 __asm__("x0") = a;
    register long x1 __asm__("x1") = b;
    register long x2 __asm__("x2") = c;
    register long x3 __asm__("x3") = d;
    register long x4 __asm__("x4") = 0;
    __asm__ volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4) : "memory", "cc");
    return x0;
#elif defined(__x86_64__)
    long result;
    register long r10 __asm__("r10") = d;
    register long r8 __asm__("r8") = 0;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8)
                     : "rcx", "r11", "memory");
    return result;
#else
#error "revisit records on aarch64 and x86_64"
#endif
}

#if defined(__aarch64__)
enum {
    REVISIT_SYS_FUTEX = 98,
    REVISIT_SYS_KILL = 129,
    REVISIT_SYS_OPENAT = 56,
    REVISIT_SYS_READ = 63,
    REVISIT_SYS_CLOSE = 57
};
#else
enum {
    REVISIT_SYS_FUTEX = 202,
    REVISIT_SYS_KILL = 62,
    REVISIT_SYS_OPENAT = 257,
    REVISIT_SYS_READ = 0,
    REVISIT_SYS_CLOSE = 3
};
#endif

/* Futexes are on the low half of a 64-bit counter; both machines are little-endian. */
static inline void revisit_futex_wait(uint64_t* counter, uint64_t seen, uint32_t milliseconds) {
    struct {
        int64_t seconds, nanoseconds;
    } timeout;
    timeout.seconds = milliseconds / 1000;
    timeout.nanoseconds = (int64_t)(milliseconds % 1000) * 1000000;
    revisit_syscall(REVISIT_SYS_FUTEX, (long)counter, 0 /* FUTEX_WAIT */, (long)(int32_t)seen,
                    (long)&timeout);
}
static inline void revisit_futex_wake(uint64_t* counter) {
    revisit_syscall(REVISIT_SYS_FUTEX, (long)counter, 1 /* FUTEX_WAKE */, 0x7fffffff, 0);
}

/* A process that was killed but not yet waited for is dead too: /proc/PID/stat says Z. */
static inline int revisit_process_lives(uint32_t pid) {
    char path[32], stat[512];
    char digits[12];
    const char* name = "/proc/";
    int n = 0, at = 0;
    long fd, got, i;
    uint32_t rest = pid;
    if (revisit_syscall(REVISIT_SYS_KILL, (long)pid, 0, 0, 0) == -3 /* ESRCH */) return 0;
    while (*name) path[at++] = *name++;
    do digits[n++] = (char)('0' + rest % 10);
    while (rest /= 10);
    while (n) path[at++] = digits[--n];
    for (name = "/stat"; *name;) path[at++] = *name++;
    path[at] = 0;
    fd = revisit_syscall(REVISIT_SYS_OPENAT, -100, (long)path, 02000000 /* O_CLOEXEC */, 0);
    if (fd < 0) return 1;
    got = revisit_syscall(REVISIT_SYS_READ, fd, (long)stat, (long)sizeof stat, 0);
    revisit_syscall(REVISIT_SYS_CLOSE, fd, 0, 0, 0);
    for (i = got - 1; i > 0; i--)
        if (stat[i] == ')') return i + 2 >= got || (stat[i + 2] != 'Z' && stat[i + 2] != 'X');
    return 1;
}

/* Also for a producer in another PID namespace, where the analyzer has no number. */
static inline int revisit_analyzer_lives(const revisit_stream* s) {
    uint32_t word;
    if (!s->guard_at) return revisit_process_lives(s->analyzer);
    word = __atomic_load_n((const uint32_t*)s->guard + s->guard_at - 1, __ATOMIC_RELAXED);
    return (word & 0x3fffffff /* FUTEX_TID_MASK */) && !(word & 0x40000000 /* FUTEX_OWNER_DIED */);
}

static inline int revisit_stream_valid(const revisit_stream* s) {
    return s->magic == REVISIT_STREAM_MAGIC && s->slots == REVISIT_SLOTS &&
           s->slot_words == REVISIT_SLOT_WORDS && s->data_offset == REVISIT_STREAM_DATA;
}

static inline uint64_t* revisit_slot_data(revisit_stream* s, uint32_t slot) {
    return (uint64_t*)(void*)((char*)s + s->data_offset) + (size_t)slot * REVISIT_SLOT_WORDS;
}

/* A clock that all cores share, read without a system call. */
static inline uint64_t revisit_ticks(void) {
#if defined(__aarch64__)
    uint64_t ticks;
    __asm__ volatile("mrs %0, cntvct_el0" : "=r"(ticks));
    return ticks;
#else
    uint32_t low, high;
    __asm__ volatile("rdtsc" : "=a"(low), "=d"(high));
    return (uint64_t)high << 32 | low;
#endif
}

static inline uint32_t revisit_producer_start(revisit_stream* s) {
    return __atomic_add_fetch(&s->producers, 1, __ATOMIC_RELAXED);
}

/* A slot to fill, or -1: record nothing more (the analyzer asked to stop, it is gone, or every slot is
   held by another thread and none comes back). Waits while the analyzer is behind. */
static inline int32_t revisit_slot_open(revisit_stream* s, uint32_t producer, uint32_t thread) {
    uint32_t idle = 0;
    for (;;) {
        uint64_t tail = __atomic_load_n(&s->tail, __ATOMIC_ACQUIRE);
        uint64_t head = __atomic_load_n(&s->head, __ATOMIC_ACQUIRE);
        uint32_t i;
        if (__atomic_load_n(&s->stop, __ATOMIC_RELAXED)) return -1;
        if (head - tail < s->slots_full)
            for (i = 0; i < REVISIT_SLOTS; i++) {
                uint32_t free_ = REVISIT_SLOT_FREE;
                if (__atomic_load_n(&s->slot[i].state, __ATOMIC_RELAXED) != REVISIT_SLOT_FREE) continue;
                if (!__atomic_compare_exchange_n(&s->slot[i].state, &free_, REVISIT_SLOT_FILLING, 0,
                                                 __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
                    continue;
                s->slot[i].thread = thread;
                s->slot[i].opened = head;
                s->slot[i].began = revisit_ticks();
                __atomic_store_n(&s->slot[i].producer, producer, __ATOMIC_RELEASE);
                return (int32_t)i;
            }
        __atomic_store_n(&s->producers_sleep, 1, __ATOMIC_SEQ_CST);
        if (__atomic_load_n(&s->tail, __ATOMIC_SEQ_CST) == tail)
            revisit_futex_wait(&s->tail, tail, 100);
        if (__atomic_load_n(&s->tail, __ATOMIC_RELAXED) != tail) {
            idle = 0;
            continue;
        }
        if (!revisit_analyzer_lives(s)) return -1;
        /* Nothing in flight and no slot free: more threads than slots. Some may never run again. */
        if (head == tail && ++idle > 20) {
            __atomic_add_fetch(&s->unrecorded, 1, __ATOMIC_RELAXED);
            return -1;
        }
    }
}

/* Hands a slot's first `words` words to the analyzer; its ticket. The slot is no longer the caller's.
 */
static inline uint64_t revisit_slot_hand_over(revisit_stream* s, int32_t slot, uint32_t words) {
    uint64_t ticket;
    s->slot[slot].words = words;
    s->slot[slot].ended = revisit_ticks();
    __atomic_store_n(&s->slot[slot].state, REVISIT_SLOT_FULL, __ATOMIC_RELEASE);
    __atomic_add_fetch(&s->words, words, __ATOMIC_RELAXED);
    ticket = __atomic_fetch_add(&s->head, 1, __ATOMIC_SEQ_CST);
    __atomic_store_n(&s->queue[ticket % REVISIT_SLOTS], (uint32_t)slot + 1, __ATOMIC_RELEASE);
    __atomic_add_fetch(&s->published, 1, __ATOMIC_SEQ_CST);
    if (__atomic_load_n(&s->analyzer_sleeps, __ATOMIC_SEQ_CST)) revisit_futex_wake(&s->published);
    return ticket;
}

/* Waits until the analyzer has given back the slot of that ticket, or wants no more. */
static inline void revisit_ticket_wait(revisit_stream* s, uint64_t ticket) {
    for (;;) {
        uint64_t tail = __atomic_load_n(&s->tail, __ATOMIC_ACQUIRE);
        if (tail > ticket || __atomic_load_n(&s->stop, __ATOMIC_RELAXED)) return;
        __atomic_store_n(&s->producers_sleep, 1, __ATOMIC_SEQ_CST);
        if (__atomic_load_n(&s->tail, __ATOMIC_SEQ_CST) != tail) continue;
        revisit_futex_wait(&s->tail, tail, 100);
        if (__atomic_load_n(&s->tail, __ATOMIC_RELAXED) == tail && !revisit_analyzer_lives(s)) return;
    }
}

/* Copies text into whole words, zero-padded; returns the words written. */
static inline uint32_t revisit_put_text(uint64_t* to, const char* text, uint32_t bytes) {
    uint32_t words = (bytes + 7) / 8, i;
    char* out = (char*)to;
    if (words) to[words - 1] = 0;
    for (i = 0; i < bytes; i++) out[i] = text[i];
    return words;
}

#ifdef __cplusplus
}
#endif
#endif
