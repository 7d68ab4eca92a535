/* What is linked into a program built with the plug-in: gives its threads slots to fill.
 *
 * It must never be felt by the program: it needs libc only, allocates nothing but address space, leaves
 * errno alone, and when the analyzer stops, dies or was never there, threads write round and round in
 * a page of scratch memory and the program runs on. A thread's life: its first words go to the boot
 * page (abi.h) unless pthread_create was seen, then to a slot; a full slot is handed over and the next
 * one opened, waiting while the analyzer is behind; what it holds when it exits is handed over by a
 * key's destructor. Nothing is done when the process ends, however it ends: the analyzer shares the
 * memory.
 *
 * Every slot is mapped a second time at an address of our choice, so that the one bit that recorded
 * code tests is set exactly where the slack begins. A thread that is not recorded, or has a while to go
 * to its next sample, runs copies of the code that write nothing and count by the same cursor, in a
 * part of memory where another bit is clear (copies.cpp, abi.h). mremap with an old size of 0 makes
 * such a mapping without a descriptor, which a program might have closed.
 */
#define _GNU_SOURCE
#include "record/clang/runtime.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "record/clang/sampler.h"

#define SLOT_BYTES ((size_t)REVISIT_SLOT_WORDS * 8)
/* Four slot sizes. The second is where copies of code that only count move their cursor, up to its end;
   words are written at the end of the third and, where a check comes late, into the fourth. */
#define WINDOW ((size_t)2 << REVISIT_RECORD_BIT)
#define COUNTED_END (2 * SLOT_BYTES)
#define WRITTEN_END (3 * SLOT_BYTES)
#define SCRATCH_WORDS 512
#define SCRATCH_SLACK 1024

_Static_assert(SLOT_BYTES == (size_t)1 << REVISIT_FULL_BIT, "the full bit is a slot's size");
_Static_assert(offsetof(revisit_tls, cursor) == REVISIT_TLS_CURSOR, "the pass knows where it is");
_Static_assert(offsetof(revisit_tls, want) == REVISIT_TLS_WANT, "the pass knows where it is");

EXPORTED _Thread_local revisit_tls __revisit_tls = {(uint64_t*)REVISIT_BOOT_ADDRESS, {0, 0}, 0, 0};
EXPORTED revisit_process __revisit_process;
#define process __revisit_process

/* How `revisit` recognizes that a program was built with the plug-in: it looks for the text. */
__attribute__((section(".note.revisit"), used, aligned(4))) static const struct {
    uint32_t name_bytes, text_bytes, type;
    char name[8];
    char text[32];
} note = {8, 32, REVISIT_ABI, "revisit", "revisit-instrumented-program"};

/* Reserved address space of `bytes`, aligned to a window. */
static char* reserve_windows(size_t bytes, int protection) {
    char* all =
        mmap(NULL, bytes + WINDOW, protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (all == MAP_FAILED) return NULL;
    char* aligned = (char*)(((uintptr_t)all + WINDOW - 1) & ~(WINDOW - 1));
    if (aligned > all) munmap(all, (size_t)(aligned - all));
    munmap(aligned + bytes, (size_t)(all + WINDOW - aligned));
    return aligned;
}

static char* window_start(int32_t slot) {
    return process.windows + (size_t)slot * WINDOW + WRITTEN_END - process.usable;
}

/* Makes a slot appear where its slack has the full bit set. */
static uint64_t* window_of(int32_t slot) {
    char* start = window_start(slot);
    if (!process.mapped[slot]) {
        void* from = revisit_slot_data(process.stream, (uint32_t)slot);
        if (mremap(from, 0, SLOT_BYTES, MREMAP_MAYMOVE | MREMAP_FIXED, start) == MAP_FAILED)
            return NULL;
        process.mapped[slot] = 1;
    }
    return (uint64_t*)start;
}

static size_t scratch_bytes(void) {
    return process.sampling ? LANES * WINDOW : WINDOW;
}

static void use_scratch(revisit_lane* lane) {
    revisit_thread* self = __revisit_tls.self;
    lane->slot = -1;
    if (!self->scratch) self->scratch = reserve_windows(scratch_bytes(), PROT_READ | PROT_WRITE);
    if (!self->scratch) abort(); /* the program has no memory left at all */
    /* What lies in it is read only by the sampler: then every lane has its own. */
    size_t at = process.sampling ? (size_t)(lane - self->lane) * WINDOW : 0;
    lane->start = (uint64_t*)(self->scratch + at + WRITTEN_END - process.scratch);
    if (process.way) return; /* code built so has no copy that counts */
    if (lane != self->lane) {
        if (process.sampling) memset(lane->start, 0, (SCRATCH_WORDS + SCRATCH_SLACK) * 8);
        return;
    }
    uint64_t counted = process.sampling ? revisit_sampler_may_count(self) : REVISIT_COUNTED_MAX;
    if (lane->must_record) counted = 0;
    lane->counts = counted != 0;
    if (counted) {
        lane->start = (uint64_t*)(self->scratch + at + COUNTED_END) - counted;
        return;
    }
    if (!process.sampling) return;
    /* What a counting copy that has not noticed passes over must be seen to be nothing. */
    uint64_t* written = self->written;
    if (written < lane->start || written > lane->start + SCRATCH_WORDS + SCRATCH_SLACK)
        written = lane->start + SCRATCH_WORDS + SCRATCH_SLACK;
    memset(lane->start, 0, (size_t)((char*)written - (char*)lane->start));
    self->written = lane->start;
}

static revisit_runner* runner_of(const revisit_thread* self) {
    return &process.runner[self->number % REVISIT_RUNNERS];
}

/* With signals held off: the analyzer takes tickets in order, and a handler that came between a ticket
   and its slot and then waited for the analyzer would wait for itself. */
void revisit_hand_over(int32_t slot, uint64_t words) {
    uint64_t all = ~0ull, before;
    syscall(SYS_rt_sigprocmask, SIG_BLOCK, &all, &before, 8);
    uint64_t ticket = revisit_slot_hand_over(process.stream, slot, (uint32_t)words);
    if (__revisit_tls.self) {
        revisit_thread* self = __revisit_tls.self;
        self->alone = ticket == self->ticket ? self->alone + 1 : 0;
        self->before = self->ticket;
        self->ticket = ticket + 1;
        revisit_runner* mine = runner_of(self);
        if (__atomic_load_n(&mine->owner, __ATOMIC_RELAXED) == self->number + 1)
            __atomic_store_n(&mine->ticket, self->ticket, __ATOMIC_RELAXED);
    }
    syscall(SYS_rt_sigprocmask, SIG_SETMASK, &before, NULL, 8);
}

/* Threads wait for the analyzer most of the time, and the one that runs when it gives a slot back would
   take that too: they would go on by turns. Where their order matters, each waits for its own slot,
   unless nobody else handed one over for a while. */
static void wait_for_turn(const revisit_thread* self) {
    if (process.stream->want & REVISIT_WANT_ORDER && self->ticket != 0 &&
        self->alone < 64 * REVISIT_SLOTS_FULL &&
        __atomic_load_n(&process.threads, __ATOMIC_RELAXED) > 1)
        revisit_ticket_wait(process.stream, self->ticket - 1);
}

static uint64_t nanoseconds(clockid_t clock) {
    struct timespec now = {0, 0};
    clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* Of another thread, by the kernel's number for it (what pthread_getcpuclockid returns). */
static uint64_t processor_time(uint32_t thread) {
    return nanoseconds((clockid_t)(~thread << 3 | 6));
}

/* The thread that gets its slot back sooner, or a processor, would go on alone for a while, and the
   program's threads would seem to run by turns. So none goes on two slots ahead of another that is
   about to run: it waits until that one has handed over a slot or uses a processor. Not for a thread
   that may wait for something itself, not for long, and at most a quarter of the time. */
static void wait_for_others(revisit_thread* self) {
    const uint64_t longest = 5000000, nap = 20000, allowance = 50000000;
    if (!(process.stream->want & REVISIT_WANT_ORDER) || self->before == 0) return;
    uint32_t threads = __atomic_load_n(&process.threads, __ATOMIC_RELAXED);
    for (uint32_t i = 0; i < REVISIT_RUNNERS && i < threads; i++) {
        revisit_runner* other = &process.runner[i];
        uint32_t owner = __atomic_load_n(&other->owner, __ATOMIC_ACQUIRE);
        uint64_t ticket = __atomic_load_n(&other->ticket, __ATOMIC_RELAXED);
        if (owner == 0 || owner == self->number + 1 || ticket > self->before) continue;
        if (__atomic_load_n(&other->given_up, __ATOMIC_RELAXED) == ticket) continue;
        uint64_t now = nanoseconds(CLOCK_MONOTONIC), since = now;
        if (self->waited > allowance + (now - self->began) / 4) return;
        uint32_t id = __atomic_load_n(&other->id, __ATOMIC_RELAXED);
        uint64_t used = processor_time(id);
        while (now - since < longest && !__atomic_load_n(&other->rests, __ATOMIC_RELAXED) &&
               __atomic_load_n(&other->owner, __ATOMIC_RELAXED) == owner &&
               __atomic_load_n(&other->ticket, __ATOMIC_RELAXED) == ticket &&
               !__atomic_load_n(&process.stream->stop, __ATOMIC_RELAXED)) {
            struct timespec pause = {0, (long)nap};
            syscall(SYS_nanosleep, &pause, NULL);
            now = nanoseconds(CLOCK_MONOTONIC);
            if (processor_time(id) - used > nap / 2) break;
        }
        __atomic_store_n(&other->given_up, ticket, __ATOMIC_RELAXED);
        self->waited += now - since;
    }
}

/* A fresh place for the thread to write, now its cursor. Once there was none, it stays unrecorded:
   asking again may mean waiting again. */
void revisit_open(revisit_lane* lane) {
    revisit_tls* tls = &__revisit_tls;
    revisit_thread* self = tls->self;
    int32_t slot = -1;
    lane->slot = -1;
    lane->counts = 0;
    if (process.stream && !revisit_is_over() && !self->unrecorded && !process.sampling) {
        wait_for_turn(self);
        wait_for_others(self);
        slot = revisit_slot_open(process.stream, process.producer, self->number);
        if (slot < 0) {
            self->unrecorded = 1;
            if (__atomic_load_n(&process.stream->stop, __ATOMIC_RELAXED) ||
                !revisit_analyzer_lives(process.stream))
                __atomic_store_n(&process.over, 1, __ATOMIC_RELAXED);
        }
    }
    if (slot >= 0) {
        lane->start = window_of(slot);
        if (lane->start)
            lane->slot = slot;
        else {
            revisit_hand_over(slot, 0);
            self->unrecorded = 1;
        }
    }
    if (lane->slot < 0) {
        use_scratch(lane);
        if (!process.sampling) tls->want = 0;
    }
    lane->end = lane->start + REVISIT_SLOT_WORDS;
    if (process.way) process.way->opened(lane);
    tls->cursor = lane->start;
}

static void take(revisit_thread* self, revisit_lane* lane, uint64_t* cursor) {
    if (lane->counts) {
        revisit_sampler_count(self, (uint64_t)(cursor - lane->start));
        return;
    }
    if (lane == self->lane && cursor > self->written) self->written = cursor;
    revisit_sampler_take(self, lane->start, cursor);
}

void revisit_roll(revisit_lane* lane, uint64_t* cursor) {
    int32_t slot = lane->slot;
    if (process.sampling) take(__revisit_tls.self, lane, cursor);
    revisit_leave(lane);
    lane->slot = -1; /* before it is given away: a handler that never returns must not do it twice */
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    if (slot >= 0) revisit_hand_over(slot, (uint64_t)(cursor - lane->start));
    revisit_open(lane);
}

void revisit_thread_begin(uint32_t number) {
    revisit_tls* tls = &__revisit_tls;
    revisit_thread* self =
        mmap(NULL, sizeof *self, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (self == MAP_FAILED) return; /* the boot page it is */
    self->number = number;
    for (int i = 0; i < LANES; i++) self->lane[i].slot = -1;
    tls->self = self;
    tls->want = process.stream ? process.stream->want : 0;
    if (process.stream && process.chosen) tls->want |= REVISIT_WANT_FUNCTIONS;
    if (process.sampling) revisit_sampler_begin(self);
    if (process.stream) {
        revisit_runner* mine = runner_of(self);
        __atomic_store_n(&mine->owner, 0, __ATOMIC_RELAXED);
        uint64_t next = __atomic_load_n(&process.stream->head, __ATOMIC_RELAXED) + 1;
        __atomic_store_n(&mine->id, (uint32_t)syscall(SYS_gettid), __ATOMIC_RELAXED);
        __atomic_store_n(&mine->rests, 0, __ATOMIC_RELAXED);
        __atomic_store_n(&mine->given_up, 0, __ATOMIC_RELAXED);
        __atomic_store_n(&mine->ticket, next, __ATOMIC_RELAXED);
        self->began = nanoseconds(CLOCK_MONOTONIC);
        __atomic_store_n(&mine->owner, number + 1, __ATOMIC_RELEASE);
    }
    revisit_open(&self->lane[0]);
    if (process.key) pthread_setspecific(process.key - 1, self);
}

static void thread_end(void* of) {
    revisit_tls* tls = &__revisit_tls;
    revisit_thread* self = of;
    if (tls->self != self) return;
    uint64_t* record = revisit_reserve(1);
    if (record) {
        record[0] = REVISIT_RECORD(REVISIT_THREAD_EXIT, self->number);
        revisit_done(1);
    }
    for (int i = 0; i <= self->depth; i++) {
        revisit_lane* lane = &self->lane[i];
        uint64_t* cursor = i == self->depth ? tls->cursor : self->lane[i + 1].saved_cursor;
        revisit_leave(lane);
        if (lane->slot >= 0) revisit_hand_over(lane->slot, (uint64_t)(cursor - lane->start));
        if (process.sampling) take(self, lane, cursor);
    }
    if (process.sampling) revisit_sampler_end(self);
    if (__atomic_load_n(&runner_of(self)->owner, __ATOMIC_RELAXED) == self->number + 1)
        __atomic_store_n(&runner_of(self)->owner, 0, __ATOMIC_RELEASE);
    /* Destructors still to run may be recorded code: the thread then begins anew. */
    tls->cursor = (uint64_t*)REVISIT_BOOT_ADDRESS;
    tls->own[0] = tls->own[1] = NULL;
    tls->want = 0;
    tls->self = NULL;
    if (self->scratch) munmap(self->scratch, scratch_bytes());
    munmap(self, sizeof *self);
}

static void roll_to_record(revisit_lane* lane, uint64_t* cursor) {
    lane->must_record = 1;
    revisit_roll(lane, cursor);
    lane->must_record = 0;
}

uint64_t* revisit_reserve(uint32_t words) {
    revisit_tls* tls = &__revisit_tls;
    if (!tls->self) return NULL;
    revisit_lane* lane = &tls->self->lane[tls->self->depth];
    if (lane->slot < 0 && !process.sampling) return NULL;
    if (lane->counts) roll_to_record(lane, tls->cursor);
    if (tls->cursor + words > lane->end) revisit_roll(lane, tls->cursor);
    return lane->slot < 0 && !process.sampling ? NULL : tls->cursor;
}

void revisit_done(uint32_t words) {
    revisit_tls* tls = &__revisit_tls;
    tls->cursor += words;
    if ((uintptr_t)tls->cursor >> REVISIT_FULL_BIT & 1)
        revisit_roll(&tls->self->lane[tls->self->depth], tls->cursor);
}

/* Hands over what there is, so that what other threads do next comes after it. */
void revisit_flush(void) {
    revisit_tls* tls = &__revisit_tls;
    if (!tls->self) return;
    revisit_lane* lane = &tls->self->lane[tls->self->depth];
    __atomic_store_n(&runner_of(tls->self)->rests, 1, __ATOMIC_RELAXED);
    if ((lane->slot >= 0 || process.sampling) && tls->cursor > lane->start)
        revisit_roll(lane, tls->cursor);
}

/* The last page of the thread that ends the program. */
static void at_exit(void) {
    revisit_flush();
}

/* A copy that counts meets its bit also when the cursor has become one for records, and the other way
   round: then there is nothing to do here. */
static int has_room(const revisit_lane* lane, uint64_t* cursor) {
    if (lane->counts) return cursor >= lane->start && cursor < revisit_counted_end(lane);
    return cursor >= lane->start && !((uintptr_t)cursor >> REVISIT_FULL_BIT & 1);
}

static uint64_t* full(uint64_t* cursor, int must_record) {
    int saved = errno;
    revisit_tls* tls = &__revisit_tls;
    if (!tls->self)
        revisit_thread_begin(__atomic_fetch_add(&process.threads, 1, __ATOMIC_RELAXED));
    else if (tls->self->depth)
        revisit_settle(tls->self, (uintptr_t)__builtin_frame_address(0));
    if (!tls->self) {
        errno = saved;
        return (uint64_t*)REVISIT_BOOT_ADDRESS;
    }
    __atomic_store_n(&runner_of(tls->self)->rests, 0, __ATOMIC_RELAXED);
    revisit_lane* lane = &tls->self->lane[tls->self->depth];
    if ((uintptr_t)cursor - REVISIT_BOOT_ADDRESS < REVISIT_BOOT_BYTES) cursor = tls->cursor;
    if (must_record && (lane->counts || !has_room(lane, cursor)))
        roll_to_record(lane, cursor);
    else if (!has_room(lane, cursor))
        revisit_roll(lane, cursor);
    else
        tls->cursor = cursor;
    errno = saved;
    return tls->cursor;
}

/* The default scheme found its slot full; and any thread we have not met, at its first check. */
EXPORTED uint64_t* __revisit_full_now(uint64_t* cursor) {
    return full(cursor, 0);
}

/* Called from the middle of a function that expects its registers kept; hidden, because a lazily bound
   call would not keep them. */
__attribute__((preserve_most, visibility("hidden"))) uint64_t* __revisit_full(uint64_t* cursor) {
    return full(cursor, 0);
}
/* From code that will write words. */
__attribute__((preserve_most, visibility("hidden"))) uint64_t* __revisit_full_record(uint64_t* cursor) {
    return full(cursor, 1);
}

EXPORTED void __revisit_bulk(uint64_t flags, uint64_t site, uint64_t address, uint64_t bytes) {
    uint64_t* record = revisit_reserve(4);
    if (!record) return;
    record[0] = REVISIT_RECORD(REVISIT_BULK, flags);
    record[1] = site;
    record[2] = address;
    record[3] = bytes;
    revisit_done(4);
}

/* A child has its parent's memory, hence its parent's cursor: it must not write there. Frames that a
   handler interrupted keep their cursor in registers; for those the child gets a private copy. */
static void before_fork(void) {
    revisit_flush();
    if (process.sampling && __revisit_tls.self) revisit_sampler_hand_over(__revisit_tls.self);
}
static void child_of_fork(void) {
    revisit_tls* tls = &__revisit_tls;
    if (!process.stream || !tls->self) return;
    uint32_t parent = process.producer;
    for (int i = 0; i <= tls->self->depth; i++) {
        revisit_lane* lane = &tls->self->lane[i];
        if (i < tls->self->depth && lane->slot >= 0) {
            mmap(lane->start, SLOT_BYTES, PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
            process.mapped[lane->slot] = 0;
        }
        lane->slot = -1;
        memset(&lane->own, 0, sizeof lane->own);
    }
    process.producer = revisit_producer_start(process.stream);
    memset(process.runner, 0, sizeof process.runner);
    if (process.sampling) revisit_sampler_forked(tls->self);
    revisit_open(&tls->self->lane[tls->self->depth]);
    revisit_describe_process(parent);
    if (process.sampling) { /* before its threads hand over theirs */
        revisit_flush();
        revisit_sampler_hand_over(tls->self);
    }
}

static void attach(const char* path) {
    int fd = open(path, O_RDWR | O_CLOEXEC);
    if (fd < 0) return;
    revisit_stream* stream =
        mmap(NULL, REVISIT_STREAM_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    /* A program that a recorded one started by exec; its profile may not be wanted. */
    int wanted = stream != MAP_FAILED && revisit_stream_valid(stream) &&
                 (__atomic_load_n(&stream->producers, __ATOMIC_RELAXED) == 0 ||
                  stream->want & REVISIT_WANT_CHILDREN);
    if (!wanted || !(process.windows = reserve_windows(REVISIT_SLOTS * WINDOW, PROT_NONE))) {
        if (stream != MAP_FAILED) munmap(stream, REVISIT_STREAM_BYTES);
        close(fd);
        return;
    }
    process.stream = stream;
    /* Slots are analyzed one after the other: where threads' accesses should mix as they did, a slot is
       full after a few hundred. */
    if (stream->want & REVISIT_WANT_ORDER && process.usable < SLOT_BYTES)
        process.usable = process.page > 4096 ? process.page : 4096;
    /* Emulators of the system calls may not know such a second mapping: all slots at once then. */
    if (!window_of(0))
        for (int32_t slot = 0; slot < (int32_t)REVISIT_SLOTS; slot++) {
            char* start = window_start(slot);
            off_t at = (off_t)(stream->data_offset + (size_t)slot * SLOT_BYTES);
            process.mapped[slot] = mmap(start, SLOT_BYTES, PROT_READ | PROT_WRITE,
                                        MAP_SHARED | MAP_FIXED, fd, at) == start;
        }
    close(fd);
    process.producer = revisit_producer_start(stream);
}

void revisit_start(void) {
    if (__atomic_exchange_n(&process.started, 1, __ATOMIC_SEQ_CST)) return;
    int saved = errno;
    pthread_key_t key;
    mmap((void*)REVISIT_BOOT_ADDRESS, REVISIT_BOOT_BYTES, PROT_READ | PROT_WRITE,
         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
    process.page = (size_t)sysconf(_SC_PAGESIZE);
    size_t slack = process.page > 8192 ? process.page : 8192;
    process.usable = SLOT_BYTES - slack;
    process.scratch = SCRATCH_WORDS * 8;
    if (process.way && process.way->start) process.way->start();
    const char* path = getenv(REVISIT_STREAM_ENV);
    if (path && *path) attach(path);
    int can_sample = !process.way || process.way->samples;
    if (process.stream && can_sample && process.stream->want & REVISIT_WANT_SAMPLES) {
        revisit_sampling_start();
        if (process.sampling) atexit(at_exit);
    }
    if (pthread_key_create(&key, thread_end) == 0) process.key = key + 1;
    pthread_atfork(before_fork, NULL, child_of_fork);
    process.threads = 1;
    revisit_thread_begin(0);
    revisit_describe_process((uint32_t)-1);
    revisit_describe_stack(1);
    errno = saved;
}

/* Threads. The creator's words so far come before the new thread's; a thread that was not made here
   (by a library that binds to libc directly) is met at its first check. */
typedef struct {
    void* (*run)(void*);
    void* argument;
    uint32_t number;
} thread_start;

static void* begin(void* of) {
    thread_start start = *(thread_start*)of;
    free(of);
    if (!__revisit_tls.self) {
        revisit_thread_begin(start.number);
        revisit_describe_stack(0);
    }
    return start.run(start.argument);
}

#ifdef REVISIT_STATIC
int __real_pthread_create(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);
#define PTHREAD_CREATE __wrap_pthread_create
#define REAL_PTHREAD_CREATE __real_pthread_create
#else
#include <dlfcn.h>
#define PTHREAD_CREATE pthread_create
typedef int create_function(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);
static create_function* real_pthread_create;
#define REAL_PTHREAD_CREATE real_pthread_create
#endif

EXPORTED int PTHREAD_CREATE(pthread_t* thread, const pthread_attr_t* attributes, void* (*run)(void*),
                            void* argument) {
#ifndef REVISIT_STATIC
    if (!__atomic_load_n(&real_pthread_create, __ATOMIC_RELAXED))
        __atomic_store_n(&real_pthread_create, (create_function*)dlsym(RTLD_NEXT, "pthread_create"),
                         __ATOMIC_RELAXED);
#endif
    int seen = process.stream || revisit_own_signal();
    thread_start* start = seen ? malloc(sizeof *start) : NULL;
    if (!start) return REAL_PTHREAD_CREATE(thread, attributes, run, argument);
    *start = (thread_start){run, argument, __atomic_fetch_add(&process.threads, 1, __ATOMIC_RELAXED)};
    uint64_t* record = revisit_reserve(2);
    if (record) {
        record[0] = REVISIT_RECORD(REVISIT_THREAD_START, start->number);
        record[1] = __revisit_tls.self->number;
        revisit_done(2);
        revisit_flush();
    }
    int error = REAL_PTHREAD_CREATE(thread, attributes, begin, start);
    if (error) free(start);
    return error;
}
