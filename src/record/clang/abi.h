/* What code built with the plug-in and the runtime linked to it agree on. Both come from the same
 * build of revisit: nothing here is a promise to anybody else. C and C++.
 *
 * A thread's place in its slot is `cursor` in thread-local memory whenever control crosses a function's
 * edge; inside a function it is a value in a register. The pass checks one bit of it, REVISIT_FULL_BIT:
 * the runtime maps every slot so that the bit is clear over the part to fill and set over the slack
 * that follows, hence "full?" is one test-and-branch with no second register and no load. Between two
 * checks a function writes at most REVISIT_UNCHECKED_WORDS, which fit into the slack.
 */
#ifndef REVISIT_RECORD_CLANG_ABI_H
#define REVISIT_RECORD_CLANG_ABI_H

#include <stdint.h>

#include "record/stream.h"

#define REVISIT_ABI 3

#define REVISIT_FULL_BIT 17 /* of an address: 2^17 bytes, the size of a slot */
/* Set where words are written; clear where the counting copy of a body moves the cursor. There FULL_BIT
   is set, so that each copy meets its own bit at once when the cursor is the other's. */
#define REVISIT_RECORD_BIT 18
#define REVISIT_UNCHECKED_WORDS 896u
#define REVISIT_BLOCK_ACCESSES 400u /* in a block that the pass makes */

/* Where a thread writes that the runtime has not seen yet, mapped before any constructor runs. The full
   bit is set, so that the first check sends the thread to the runtime. Below 2^39: some arm64 kernels
   end there. (ThreadSanitizer has that address for itself: its test takes another.) */
#ifndef REVISIT_BOOT_ADDRESS
#define REVISIT_BOOT_ADDRESS 0x5e00060000ull
#endif
#define REVISIT_BOOT_BYTES (1u << REVISIT_FULL_BIT)

typedef struct {
    uint64_t* cursor; /* next word to write */
    uint64_t* own[2]; /* of a way to append that is not the default; a handler has others */
    uint64_t want;    /* REVISIT_WANT_…, as the analyzer asked; 0 = not recorded */
    struct revisit_thread* self;
} revisit_tls;

enum { REVISIT_TLS_CURSOR = 0, REVISIT_TLS_WANT = 24 };

/* Beside the analyzer's wishes in `want`: functions were chosen by name (--function). */
#define REVISIT_WANT_FUNCTIONS (1ull << 32)

/* One translation unit. `headers` are the first words of its blocks with numbers from 0; registering
   adds the process-wide base. `definitions` are DEFINE_SITE and DEFINE_BLOCK records, numbered alike.
 */
typedef struct {
    uint64_t abi;
    const struct revisit_way* way; /* how it appends; null: the default */
    uint64_t* headers;
    uint64_t blocks;
    uint64_t* site_base;
    uint64_t sites;
    const uint64_t* definitions;
    uint64_t definition_words;
} revisit_unit;

#endif
