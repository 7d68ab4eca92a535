/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * What the parts of the tool share: main.c talks to valgrind's core and to the stream, instrument.c
 * rewrites the program's code, programs.c is about what the program starts.
 */
#ifndef REVISIT_VALGRIND_TOOL_H
#define REVISIT_VALGRIND_TOOL_H

/* config.h of the package belongs to valgrind's own build; tools need only these. */
#include "pub_tool_basics.h"
#include "pub_tool_tooliface.h"

#define RV_(name) revisit_tool_##name

#include "record/stream.h"

#if defined(VGA_arm64)
#include "libvex_guest_arm64.h"
#define GUEST_ARGUMENT_0 offsetof(VexGuestARM64State, guest_X0)
#define GUEST_ARGUMENT_1 offsetof(VexGuestARM64State, guest_X1)
#define GUEST_ARGUMENT_2 offsetof(VexGuestARM64State, guest_X2)
#define GUEST_RESULT offsetof(VexGuestARM64State, guest_X0)
#define GUEST_LINK offsetof(VexGuestARM64State, guest_X30)
#define CALL_PUSHES 0
#elif defined(VGA_amd64)
#include "libvex_guest_amd64.h"
#define GUEST_ARGUMENT_0 offsetof(VexGuestAMD64State, guest_RDI)
#define GUEST_ARGUMENT_1 offsetof(VexGuestAMD64State, guest_RSI)
#define GUEST_ARGUMENT_2 offsetof(VexGuestAMD64State, guest_RDX)
#define GUEST_RESULT offsetof(VexGuestAMD64State, guest_RAX)
#define CALL_PUSHES 8
#else
#error "the recorder runs on arm64 and amd64"
#endif

/* Where the next word goes and where a slot must be handed over before the next superblock. Translated
   code reads and writes these two directly. */
typedef struct {
    ULong* next;
    ULong* limit;
} Cursor;
extern Cursor RV_(cursor);

/* Words kept free behind `limit`: no superblock writes more. */
#define SUPERBLOCK_WORDS 2048
#define SUPERBLOCK_ACCESSES (SUPERBLOCK_WORDS - 8)

/* The stack pointer that the running thread will have when the function it is inside of returns, for
   functions whose return is waited for (allocation, --function); 0 = none. */
extern Addr RV_(awaited_return);

enum {
    FUNCTION_NONE,
    FUNCTION_ALLOCATE,
    FUNCTION_CALLOC,
    FUNCTION_REALLOC,
    FUNCTION_ALIGNED,
    FUNCTION_POSIX_MEMALIGN,
    FUNCTION_FREE,
    FUNCTION_REGION_BEGIN,
    FUNCTION_REGION_END,
    FUNCTION_CHOSEN,
    FUNCTION_SETJMP,
    FUNCTION_LOCK,
    FUNCTION_UNLOCK,
    FUNCTION_WAIT,
    FUNCTION_JOIN
};

/* main.c */
extern UInt RV_(want)(void);                /* REVISIT_WANT_… of the stream */
extern UInt RV_(function_kind)(Addr entry); /* FUNCTION_… of the function that starts there */
extern Bool RV_(after_setjmp)(Addr where);  /* a jump may come back to there */
extern void RV_(hand_over)(void);           /* called from translated code when next > limit */
extern void RV_(need)(UInt words);          /* room for a record outside translated code */
extern void RV_(function_entered)(HWord kind, HWord a0, HWord a1, HWord a2, HWord sp, HWord link);
extern void RV_(function_returned)(HWord result, HWord target);

/* programs.c */
extern void RV_(programs_begin)(void);
extern const HChar* RV_(program_path)(void);
/* The file handed down to this program, if there is one (not -1), or the one at the path; -1 = none. */
extern Int RV_(inherited)(Int handed_down, const HChar* path, Int flags);
extern void RV_(hand_down)(Int fd, const HChar* option); /* to programs started, "--option=" fd */
/* Whether valgrind will run the program at `path`, else it runs as it is. */
extern Bool RV_(before_exec)(HChar* path, HChar** arguments, Bool is_recorded);
/* Gives the program the name that it was called by, null: none; `stack` as it is at the beginning. */
extern void RV_(take_called)(Addr stack, const HChar* called);
extern void RV_(after_failed_exec)(void);

/* instrument.c */
extern IRSB* RV_(instrument)(VgCallbackClosure*, IRSB*, const VexGuestLayout*, const VexGuestExtents*,
                             const VexArchInfo*, IRType, IRType);

#endif
