/* Call paths of sampled accesses.
 *
 * Problem. A sample is to say by which calls its access was reached, but most of the run is only
 * counted, and what is written is read a page later. Idea. Each thread keeps the calls that it is in: a
 * stack of sites and stack pointers. While it counts, calls and returns change the stack at once; while
 * it writes pages they are records there, and change it when the page is read. So the stack is always
 * that of the word in hand. A path gets its number only when a sample or a logged write asks: it is the
 * place of (caller's path, function) in one table of the process, whoever put it there. Example. main
 * (site 3) calls work (site 7): 3 is at 41, so work's entry is 41 << 32 | 8, say at 977. A sample there
 * has the site | 977 << 32, and the thread sends PATH 41 (0, 3) and PATH 977 (41, 7) before it, once.
 * Recursion comes back to the number it has been at, as in the analyzer (symbols/contexts.h). Cost. A
 * call with its return takes 18 ns more (fib: 26 ns instead of 7); a path that has its number, one
 * load.
 */
#define _GNU_SOURCE
#include "record/clang/sampler_stack.h"

enum { REACH = 32, PROBES = 16 };

static uint32_t path_of_call(uint32_t caller, uint32_t site) {
    uint64_t key = (uint64_t)caller << 32 | (site + 1), above = caller;
    for (int i = 0; i < REACH && above; i++) {
        uint64_t from = __atomic_load_n(&common->paths[above], __ATOMIC_RELAXED);
        if ((uint32_t)from == site + 1) return (uint32_t)above;
        above = from >> 32;
    }
    uint64_t at = hash(key) >> 48;
    for (int i = 0; i < PROBES; i++, at = (at + 1) % MOST_PATHS) {
        uint64_t seen = __atomic_load_n(&common->paths[at], __ATOMIC_RELAXED);
        if (at == 0) continue;
        if (!seen && __atomic_compare_exchange_n(&common->paths[at], &seen, key, 0, __ATOMIC_RELAXED,
                                                 __ATOMIC_RELAXED))
            return (uint32_t)at;
        if (seen == key) return (uint32_t)at;
    }
    return caller; /* the table is full */
}

uint64_t revisit_on_path(sampler* s, uint64_t site) {
    call_stack* calls = s->calls;
    uint32_t known = calls->depth;
    while (known && !calls->frame[known - 1].path) known--;
    uint64_t path = known ? calls->frame[known - 1].path : 0;
    for (; known < calls->depth; known++)
        path = calls->frame[known].path = path_of_call((uint32_t)path, calls->frame[known].site);
    return (uint32_t)site | path << 32;
}

/* Frames at or below the stack pointer are over, however they ended. */
static inline void leave(call_stack* calls, uint64_t stack) {
    while (calls->depth && calls->frame[calls->depth - 1].stack <= stack) calls->depth--;
}
static inline void enter(call_stack* calls, uint64_t site, uint64_t stack) {
    leave(calls, stack);
    if (calls->depth < MOST_FRAMES)
        calls->frame[calls->depth++] = (call_frame){stack, (uint32_t)site, 0};
}

void revisit_follow_call(sampler* s, const uint64_t* record) {
    if (REVISIT_TAG(*record) == REVISIT_LEAVE) leave(s->calls, REVISIT_N(*record));
    if (REVISIT_TAG(*record) == REVISIT_ENTER_SITE) enter(s->calls, REVISIT_N(*record), record[1]);
}

void revisit_sampler_enter(revisit_thread* self, uint64_t site, uintptr_t stack) {
    if (self->sampler) enter(&self->sampler->own_calls, site, stack);
}
void revisit_sampler_leave(revisit_thread* self, uintptr_t stack) {
    if (self->sampler) leave(&self->sampler->own_calls, stack);
}
