/* Inside the runtime: state of the process and of a thread. See runtime.c. */
#ifndef REVISIT_RECORD_CLANG_RUNTIME_H
#define REVISIT_RECORD_CLANG_RUNTIME_H

#include <signal.h>
#include <stddef.h>
#include <stdint.h>

#include "record/clang/abi.h"
#include "record/stream.h"

#define EXPORTED __attribute__((visibility("default")))
#define LANES 8

typedef struct {
    uint64_t word[3]; /* zero: nothing */
} revisit_own;

/* Where a thread writes. Lane 0 is its ordinary life; a signal handler writes into a lane of its own,
   because the interrupted function holds its cursor in a register and will go on where it was. */
typedef struct {
    int32_t slot; /* -1: nothing is recorded, words go to scratch memory */
    int counts;   /* nothing is written: the cursor counts accesses */
    int must_record;
    uint64_t* start;
    uint64_t* end;   /* of what records may be reserved in */
    revisit_own own; /* what the way to append notes */
    /* a handler's lane: what it interrupted */
    uint64_t *saved_cursor, *saved_own[2];
    uintptr_t interrupted_stack, other_stack_low, other_stack_high;
} revisit_lane;

typedef struct revisit_thread {
    uint32_t number;
    int depth; /* lane in use */
    revisit_lane lane[LANES];
    char* scratch;     /* reserved memory of its own, or null */
    uint64_t* written; /* end of what lane 0 last wrote in scratch */
    int unrecorded;
    uint64_t ticket;                 /* the one after that of the slot handed over last; 0 = none */
    uint32_t alone;                  /* so many slots in a row were this thread's */
    uint64_t before;                 /* the ticket of the slot handed over before that one */
    uint64_t began, waited;          /* for other threads; ns */
    struct revisit_sampler* sampler; /* null: accesses are sent, not sampled */
    uintptr_t chosen_stack;          /* frame of the chosen function under way, or 0 */
} revisit_thread;

/* A way to append that is not the default. Only programs built so have one linked in (papers/), and the
   runtime does what it lists where slots are opened and left. */
typedef struct revisit_way {
    int samples;                    /* code built so can sample its accesses */
    int signal;                     /* kept from the program; 0 = none */
    void (*start)(void);            /* before the stream is attached, or null */
    void (*opened)(revisit_lane*);  /* the lane has a new place to write */
    void (*leaving)(revisit_lane*); /* the lane's place is about to be handed over; or null */
} revisit_way;

typedef struct {
    struct sigaction action; /* as the program set it */
} revisit_handler;

/* A thread that others may run ahead of. */
#define REVISIT_RUNNERS 64u
typedef struct {
    uint32_t owner;    /* the thread's number + 1; 0 = none */
    uint32_t id;       /* as the kernel has it */
    uint32_t rests;    /* its last slot was handed over at a call that may wait */
    uint64_t ticket;   /* the one after that of its last slot, or of any when it began */
    uint64_t given_up; /* that ticket, when somebody waited for it in vain */
} revisit_runner;

/* One object, visible to all: a program and its libraries may each bring a copy of the runtime. */
typedef struct {
    uint32_t started;
    revisit_stream* stream; /* null: not recorded */
    uint32_t producer;
    uint32_t over;          /* the analyzer wants no more, or is gone */
    uint32_t threads;       /* numbers given out */
    const revisit_way* way; /* of all units; null = the default */
    uint32_t units;
    uint64_t blocks, sites; /* numbers given out */
    char* windows;          /* address space for slots, two slot sizes apart */
    size_t page, usable;    /* bytes; of a slot up to the full bit */
    size_t scratch;         /* the same of scratch memory */
    uint32_t key;
    struct revisit_sampling* sampling; /* null: accesses are sent, not sampled */
    uint8_t* chosen;                   /* bits: sites of functions chosen by name, or null */
    uint8_t
        mapped[REVISIT_SLOTS]; /* window holds the slot: 0 = no, 1 = as mapped, more = see the way */
    revisit_handler handler[65];
    revisit_runner runner[REVISIT_RUNNERS];
} revisit_process;

extern EXPORTED _Thread_local revisit_tls __revisit_tls __attribute__((tls_model("initial-exec")));
extern EXPORTED revisit_process __revisit_process;

static inline int revisit_is_over(void) {
    return (int)__atomic_load_n(&__revisit_process.over, __ATOMIC_RELAXED);
}

static inline int revisit_own_signal(void) {
    return __revisit_process.way ? __revisit_process.way->signal : 0;
}

static inline void revisit_leave(revisit_lane* lane) {
    const revisit_way* way = __revisit_process.way;
    if (way && way->leaving) way->leaving(lane);
}

/* Accesses that a thread counts before it looks again. */
#define REVISIT_COUNTED_MAX 1024u

static inline uint64_t* revisit_counted_end(const revisit_lane* lane) {
    uintptr_t window = (uintptr_t)2 << REVISIT_RECORD_BIT;
    return (uint64_t*)(((uintptr_t)lane->start & ~(window - 1)) + ((uintptr_t)1 << REVISIT_RECORD_BIT));
}

/* runtime.c */
void revisit_start(void);
void revisit_thread_begin(uint32_t number);
/* Hands the lane's slot over with everything before `cursor` and opens the next. */
void revisit_roll(revisit_lane* lane, uint64_t* cursor);
void revisit_open(revisit_lane* lane);
void revisit_hand_over(int32_t slot, uint64_t words);
void revisit_settle(revisit_thread* self, uintptr_t stack);
/* Room for one record of `words` words at the thread's cursor, or null when not recorded; then `done`.
 */
uint64_t* revisit_reserve(uint32_t words);
void revisit_done(uint32_t words);
void revisit_flush(void);

/* signals.c */
void revisit_on_signal(int number, siginfo_t* info, void* context);

/* events.c */
void revisit_describe_process(uint32_t parent);
void revisit_describe_modules(void);
void revisit_describe_stack(int main_thread);
/* A site of this function, first frame; --function may have named it. */
void revisit_choose(uint64_t site, const char* function);

#endif
