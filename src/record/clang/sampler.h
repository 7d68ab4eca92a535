/* Sampling inside the program: sampler.c explains how. */
#ifndef REVISIT_RECORD_CLANG_SAMPLER_H
#define REVISIT_RECORD_CLANG_SAMPLER_H

#include <stdint.h>

#include "record/clang/abi.h"

struct revisit_thread;

/* Begins when the process was asked to sample: process.sampling is set. */
void revisit_sampling_start(void);
/* Blocks of code, so that their words can be read here. */
void revisit_sampling_define(const revisit_unit* unit, uint64_t block_base, uint64_t site_base);

void revisit_sampler_begin(struct revisit_thread* self);
void revisit_sampler_end(struct revisit_thread* self);
/* Takes the words from `at` up to `end` that a thread has appended. */
void revisit_sampler_take(struct revisit_thread* self, const uint64_t* at, const uint64_t* end);
/* Accesses that the thread may count now without writing them down; 0: it must write. */
uint64_t revisit_sampler_may_count(struct revisit_thread* self);
/* It did. */
void revisit_sampler_count(struct revisit_thread* self, uint64_t accesses);
/* Nonzero when it matters which thread did what first: a sample is open in a private stack, or about to
   be in what a thread has not read yet. */
int revisit_sampler_wants_order(void);
/* A wait is over, and the page empty: its accesses come after, not from when the last page ended. */
void revisit_sampler_waited(struct revisit_thread* self);
/* Around a wait for another thread's end, which may last for most of the run: samples of a thread that
   rests do not keep the others in analysis. */
void revisit_sampler_rest(struct revisit_thread* self);
void revisit_sampler_go_on(struct revisit_thread* self);
/* A call or a return while the thread only counts. */
void revisit_sampler_enter(struct revisit_thread* self, uint64_t site, uintptr_t stack);
void revisit_sampler_leave(struct revisit_thread* self, uintptr_t stack);
/* Hands over what the thread has sent so far. */
void revisit_sampler_hand_over(struct revisit_thread* self);
/* A record that is not about accesses, past the page that the thread fills. */
void revisit_sampler_send(struct revisit_thread* self, const uint64_t* record, uint32_t words);
/* A forked child has none of its parent's samples and threads. */
void revisit_sampler_forked(struct revisit_thread* self);

#endif
