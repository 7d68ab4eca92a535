/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * revisit's valgrind tool: runs any binary and streams its accesses to the analyzer.
 *
 * This half joins valgrind's core to the stream of record/stream.h: it opens the shared memory, hands
 * full slots over, and passes on what the core knows: threads, mapped files, stacks, forks. Valgrind
 * runs one thread at a time, so there is one cursor a process and THREAD records where it passes to
 * another. When the analyzer asks for no more, or is gone, words go to a buffer nobody reads and the
 * program runs on.
 */
#include "pub_tool_aspacemgr.h"
#include "pub_tool_clientstate.h"
#include "pub_tool_debuginfo.h"
#include "pub_tool_libcassert.h"
#include "pub_tool_libcbase.h"
#include "pub_tool_libcfile.h"
#include "pub_tool_libcprint.h"
#include "pub_tool_libcproc.h"
#include "pub_tool_machine.h"
#include "pub_tool_mallocfree.h"
#include "pub_tool_options.h"
#include "pub_tool_threadstate.h"
#include "pub_tool_vki.h"
#include "pub_tool_xarray.h"
#include "tool.h"

/* Of the core, not of its tool interface; the core's own gdbserver maps shared files with it. */
extern SysRes VG_(am_shared_mmap_file_float_valgrind)(SizeT length, UInt prot, Int fd, Off64T offset);

Cursor RV_(cursor);
Addr RV_(awaited_return);

static const HChar* stream_path;
static const HChar* messages_path;
static const HChar* called; /* what the program finds as its own name */
static Int stream_file = -1, messages_file = -1; /* that the program before exec had */
static XArray* chosen_functions;                 /* of const HChar* */

static revisit_stream* stream;
static UInt producer;
static Int slot = -1;
static ULong* slot_begin;
static ULong unread[REVISIT_SLOT_WORDS]; /* where words go that nobody wants */

static Bool starts_unrecorded = False;
static UInt threads = 0; /* numbers given out; a number is never used again, a ThreadId is */
static ThreadId running = 0;

typedef struct {
    UInt kind;
    Addr sp, link;
    SizeT size;
    Addr argument;
} Awaited;
#define AWAITED 4
typedef struct {
    UInt number;
    Addr clears, child_clears; /* the word that the kernel clears when it ends; and its next child's */
    UInt awaited;
    Awaited stack[AWAITED];
} Thread;
static Thread* thread; /* by ThreadId */

UInt RV_(want)(void) {
    return stream ? stream->want : 0;
}

static void use(ULong* begin, UInt words) {
    slot_begin = RV_(cursor).next = begin;
    RV_(cursor).limit = begin + words - SUPERBLOCK_WORDS;
}

static void open_slot(void) {
    slot = stream ? revisit_slot_open(stream, producer, running ? thread[running].number : 0) : -1;
    use(slot < 0 ? unread : (ULong*)revisit_slot_data(stream, slot), REVISIT_SLOT_WORDS);
    if (slot < 0 && stream && !stream->stop && !revisit_analyzer_lives(stream)) {
        static const HChar gone[] = "revisit: the analyzer is gone; the program runs on unrecorded\n";
        VG_(write)(2, gone, sizeof gone - 1);
    }
}

static void close_slot(void) {
    if (slot >= 0) revisit_slot_hand_over(stream, slot, RV_(cursor).next - slot_begin);
    slot = -1;
}

void RV_(hand_over)(void) {
    if (slot < 0)
        use(unread, REVISIT_SLOT_WORDS);
    else {
        close_slot();
        open_slot();
    }
}

void RV_(need)(UInt words) {
    if (RV_(cursor).next + words > RV_(cursor).limit) RV_(hand_over)();
    tl_assert(RV_(cursor).next + words <= RV_(cursor).limit + SUPERBLOCK_WORDS);
}

static void put(ULong word) {
    *RV_(cursor).next++ = word;
}
static void put_text(const HChar* text, UInt bytes) {
    RV_(cursor).next += revisit_put_text((uint64_t*)RV_(cursor).next, text, bytes);
}

static ULong pid_namespace(void) {
    struct vg_stat status;
    return sr_isError(VG_(stat)(REVISIT_NAMESPACE, &status)) ? 0 : status.ino;
}
/* Whether the analyzer can tell which process this is. */
static Bool is_known_to_analyzer(void) {
    return pid_namespace() != 0 || revisit_process_lives(stream->analyzer);
}

/* Starts this process's part of the stream: PROCESS with the command line. */
static void start_process(ULong parent) {
    static HChar text[REVISIT_TEXT_MAX];
    UInt at = 0;
    Word i;
    const HChar* argument = RV_(program_path)();
    producer = revisit_producer_start(stream);
    open_slot();
    for (i = 0;; i++) {
        UInt length = argument ? VG_(strlen)(argument) : 0;
        if (at + length + 1 > REVISIT_TEXT_MAX) break;
        VG_(memcpy)(text + at, argument, length);
        text[at + length] = 0;
        at += length + 1;
        if (i >= VG_(sizeXA)(VG_(args_for_client))) break;
        argument = *(HChar**)VG_(indexXA)(VG_(args_for_client), i);
    }
    RV_(need)(3 + REVISIT_TEXT_MAX / 8);
    put(REVISIT_RECORD(REVISIT_PROCESS, at));
    put(REVISIT_PROCESS_ID(VG_(getpid)(), pid_namespace()));
    put(parent);
    put_text(text, at);
}

/* Mapped files: what turns a program counter into a place in a file. */
static void file_mapped(Addr low, SizeT length) {
    NSegment const* segment = VG_(am_find_nsegment)(low);
    const HChar* path = segment && segment->kind == SkFileC ? VG_(am_get_filename)(segment) : NULL;
    UInt bytes;
    if (!path || path[0] != '/') return;
    bytes = VG_(strlen)(path);
    if (bytes > REVISIT_TEXT_MAX) return;
    RV_(need)(4 + bytes / 8 + 1);
    put(REVISIT_RECORD(REVISIT_MODULE, bytes));
    put(low);
    put(low + length);
    put(segment->offset + (low - segment->start));
    put_text(path, bytes);
}

static void memory_at_start(Addr a, SizeT length, Bool r, Bool w, Bool x, ULong di) {
    file_mapped(a, length);
}
/* Memory without a file, by the call that asked for it: no `where`. What allocators map for themselves
   is sent again, block by block, when they hand it out. */
static void memory_mapped(Addr a, SizeT length, Bool r, Bool w, Bool x, ULong di) {
    NSegment const* segment = VG_(am_find_nsegment)(a);
    file_mapped(a, length);
    if (!(RV_(want)() & REVISIT_WANT_OBJECTS) || !w || !segment || segment->kind == SkFileC) return;
    RV_(need)(3);
    put(REVISIT_RECORD(REVISIT_ALLOC, 0));
    put(a);
    put(length);
}
static void memory_unmapped(Addr a, SizeT length) {
    RV_(need)(3);
    put(REVISIT_RECORD(REVISIT_UNLOAD, 0));
    put(a);
    put(a + length);
}

static void await_thread(void) {
    Thread* t = &thread[running];
    RV_(awaited_return) = t->awaited ? t->stack[t->awaited - 1].sp : 0;
}

static void thread_runs(ThreadId tid, ULong blocks) {
    if (tid == running) return;
    running = tid;
    RV_(need)(1);
    put(REVISIT_RECORD(REVISIT_THREAD, thread[tid].number));
    await_thread();
}

static void thread_created(ThreadId parent, ThreadId child) {
    thread[child].number = threads++;
    thread[child].awaited = 0;
    thread[child].clears = parent == VG_INVALID_THREADID ? 0 : thread[parent].child_clears;
    if (parent == VG_INVALID_THREADID || parent == child) return;
    RV_(need)(2);
    put(REVISIT_RECORD(REVISIT_THREAD_START, thread[child].number));
    put(thread[parent].number);
}

static void thread_begins(ThreadId tid) {
    Addr sp = VG_(get_SP)(tid);
    if (thread[tid].number == 0) RV_(take_called)(sp, called);
    NSegment const* segment = VG_(am_find_nsegment)(sp);
    Addr high = VG_(thread_get_stack_max)(tid), low = high + 1 - VG_(thread_get_stack_size)(tid);
    if (!(low <= sp && sp <= high)) {
        if (!segment) return;
        low = segment->start;
        high = segment->end;
    }
    RV_(need)(3);
    put(REVISIT_RECORD(REVISIT_STACK, thread[tid].number));
    put(low);
    put(high + 1);
}

static Bool wants_order(void) {
    return (RV_(want)() & REVISIT_WANT_ORDER) != 0;
}
static void synchronised(UInt kind, Addr object) {
    RV_(need)(2);
    put(REVISIT_RECORD(REVISIT_SYNC, kind));
    put(object);
}

static void thread_ended(ThreadId tid) {
    thread_runs(tid, 0);
    if (wants_order() && thread[tid].clears) synchronised(REVISIT_SYNC_EXIT, thread[tid].clears);
    RV_(need)(1);
    put(REVISIT_RECORD(REVISIT_THREAD_EXIT, thread[tid].number));
}

/* Futexes: who waits for whom. A thread that goes on after a wait has not run translated code yet. */
#if defined(VGA_arm64)
enum { SYSCALL_FUTEX = 98, SYSCALL_CLONE = 220, CLONE_CLEARS = 4, SYSCALL_BYTES = 4 };
enum { SYSCALL_EXECVE = 221, SYSCALL_EXECVEAT = 281 };
#else
enum { SYSCALL_FUTEX = 202, SYSCALL_CLONE = 56, CLONE_CLEARS = 3, SYSCALL_BYTES = 2 };
enum { SYSCALL_EXECVE = 59, SYSCALL_EXECVEAT = 322 };
#endif
enum { FUTEX_OPERATION = 127, WAIT = 0, WAKE = 1, WAIT_PI = 6, WAIT_BITSET = 9 };
enum { CHILD_CLEARTID = 0x200000 };

static Bool is_wait(UWord operation) {
    operation &= FUTEX_OPERATION;
    return operation == WAIT || operation == WAIT_PI || operation == WAIT_BITSET;
}
/* A program that is not recorded counts once it is there. */
static Bool is_exec(UInt number) {
    return number == SYSCALL_EXECVE || number == SYSCALL_EXECVEAT;
}
static void out_of_reach(Int more) {
    if (stream && !stream->stop)
        __atomic_add_fetch(&stream->out_of_reach, (UInt)more, __ATOMIC_RELAXED);
}
static void before_syscall(ThreadId tid, UInt number, UWord* arguments, UInt count) {
    if (is_exec(number) && count > 0) {
        HChar* path = number == SYSCALL_EXECVE ? (HChar*)arguments[0] : NULL;
        HChar** argv = (HChar**)arguments[number == SYSCALL_EXECVE ? 1 : 2];
        starts_unrecorded = !RV_(before_exec)(path, argv, stream && !stream->stop);
        if (starts_unrecorded) out_of_reach(1);
    }
    if (!wants_order()) return;
    if (number == SYSCALL_CLONE && count > CLONE_CLEARS)
        thread[tid].child_clears = arguments[0] & CHILD_CLEARTID ? arguments[CLONE_CLEARS] : 0;
    if (number != SYSCALL_FUTEX || count < 2) return;
    thread_runs(tid, 0);
    synchronised(is_wait(arguments[1]) ? REVISIT_SYNC_REST : REVISIT_SYNC_SIGNAL, arguments[0]);
}
static void after_syscall(ThreadId tid, UInt number, UWord* arguments, UInt count, SysRes result) {
    if (is_exec(number)) {
        if (starts_unrecorded) out_of_reach(-1);
        RV_(after_failed_exec)();
    }
    if (!wants_order() || number != SYSCALL_FUTEX || count < 2 || !is_wait(arguments[1])) return;
    thread_runs(tid, 0);
    synchronised(REVISIT_SYNC_WAIT, arguments[0]);
}

/* What the kernel writes for a thread (read into a buffer) invalidates the line for others, as the
   thread's own write at that system call would. Only others care: a program with one thread has the
   accesses that its code makes. */
static void kernel_wrote(CorePart part, ThreadId tid, Addr address, SizeT bytes) {
    if (part != Vg_CoreSysCall || threads < 2 || !bytes || !wants_order()) return;
    thread_runs(tid, 0);
    RV_(need)(4);
    put(REVISIT_RECORD(REVISIT_BULK, REVISIT_WRITE));
    put(VG_(get_IP)(tid) - SYSCALL_BYTES);
    put(address);
    put(bytes);
}

/* Functions known by name. */
static const struct {
    const HChar* name;
    UInt kind;
} known[] = {
    {"malloc", FUNCTION_ALLOCATE},
    {"valloc", FUNCTION_ALLOCATE},
    {"_Znwm", FUNCTION_ALLOCATE},
    {"_Znam", FUNCTION_ALLOCATE},
    {"_ZnwmRKSt9nothrow_t", FUNCTION_ALLOCATE},
    {"_ZnamRKSt9nothrow_t", FUNCTION_ALLOCATE},
    {"_ZnwmSt11align_val_t", FUNCTION_ALLOCATE},
    {"_ZnamSt11align_val_t", FUNCTION_ALLOCATE},
    {"calloc", FUNCTION_CALLOC},
    {"realloc", FUNCTION_REALLOC},
    {"memalign", FUNCTION_ALIGNED},
    {"aligned_alloc", FUNCTION_ALIGNED},
    {"posix_memalign", FUNCTION_POSIX_MEMALIGN},
    {"free", FUNCTION_FREE},
};

/* Where setjmp returns to, and longjmp may. The first return is before that place is translated. */
#define SETJMPS 256
static Addr setjmp_returns[SETJMPS];
static UInt setjmps;

Bool RV_(after_setjmp)(Addr where) {
    UInt i;
    for (i = 0; i < setjmps; i++)
        if (setjmp_returns[i] == where) return True;
    return False;
}
static void setjmp_called(Addr link) {
    if (setjmps < SETJMPS && !RV_(after_setjmp)(link)) setjmp_returns[setjmps++] = link;
}
static Bool is_setjmp(const HChar* name) {
    while (*name == '_') name++;
    return VG_STREQ(name, "setjmp") || VG_STREQ(name, "sigsetjmp");
}

/* Which threads' accesses may be merged depends on who holds a lock, and who has ended. */
static UInt order_kind(const HChar* name) {
    static const struct {
        const HChar* name;
        UInt kind;
    } functions[] = {
        {"pthread_mutex_lock", FUNCTION_LOCK},       {"pthread_mutex_trylock", FUNCTION_LOCK},
        {"pthread_mutex_timedlock", FUNCTION_LOCK},  {"pthread_spin_lock", FUNCTION_LOCK},
        {"pthread_spin_trylock", FUNCTION_LOCK},     {"pthread_rwlock_wrlock", FUNCTION_LOCK},
        {"pthread_rwlock_trywrlock", FUNCTION_LOCK}, {"pthread_mutex_unlock", FUNCTION_UNLOCK},
        {"pthread_spin_unlock", FUNCTION_UNLOCK},    {"pthread_rwlock_unlock", FUNCTION_UNLOCK},
        {"pthread_cond_wait", FUNCTION_WAIT},        {"pthread_cond_timedwait", FUNCTION_WAIT},
        {"pthread_cond_clockwait", FUNCTION_WAIT},   {"pthread_join", FUNCTION_JOIN},
        {"pthread_timedjoin_np", FUNCTION_JOIN},     {"pthread_tryjoin_np", FUNCTION_JOIN},
        {"pthread_clockjoin_np", FUNCTION_JOIN},     {"thrd_join", FUNCTION_JOIN},
    };
    UInt i;
    while (*name == '_') name++;
    for (i = 0; i < sizeof functions / sizeof functions[0]; i++) {
        /* Symbols of the C library may carry a version. */
        UInt length = VG_(strlen)(functions[i].name);
        if (!VG_(strncmp)(name, functions[i].name, length) && (!name[length] || name[length] == '@'))
            return functions[i].kind;
    }
    return FUNCTION_NONE;
}

UInt RV_(function_kind)(Addr entry) {
    const HChar* name;
    UInt i;
    if (!VG_(get_fnname_if_entry)(VG_(current_DiEpoch)(), entry, &name)) return FUNCTION_NONE;
    if (VG_STREQ(name, "revisit_region_begin")) return FUNCTION_REGION_BEGIN;
    if (VG_STREQ(name, "revisit_region_end")) return FUNCTION_REGION_END;
    for (i = 0; i < VG_(sizeXA)(chosen_functions); i++)
        if (VG_STREQ(name, *(const HChar**)VG_(indexXA)(chosen_functions, i))) return FUNCTION_CHOSEN;
    if ((RV_(want)() & REVISIT_WANT_CALLS) && is_setjmp(name)) return FUNCTION_SETJMP;
    if (wants_order() && order_kind(name) != FUNCTION_NONE) return order_kind(name);
    if (RV_(want)() & REVISIT_WANT_OBJECTS)
        for (i = 0; i < sizeof known / sizeof known[0]; i++)
            if (VG_STREQ(name, known[i].name)) return known[i].kind;
    return FUNCTION_NONE;
}

static void region(UInt tag, Addr name) {
    HChar text[256];
    UInt bytes = 0;
    while (bytes < sizeof text && VG_(am_is_valid_for_client)(name + bytes, 1, VKI_PROT_READ) &&
           *(HChar*)(name + bytes)) {
        text[bytes] = *(HChar*)(name + bytes);
        bytes++;
    }
    RV_(need)(1 + sizeof text / 8);
    put(REVISIT_RECORD(tag, bytes));
    put_text(text, bytes);
}

static void chosen(UInt tag) {
    RV_(need)(2);
    put(REVISIT_RECORD(tag, 2));
    put_text("()", 2);
}

static void freed(Addr address) {
    if (!address) return;
    RV_(need)(1);
    put(REVISIT_RECORD(REVISIT_FREE, address));
}

/* An allocation is sent when it returns; one made inside another (operator new calls malloc) is its
   caller's. The name of a chosen function is not kept: there is one region for all of them. */
void RV_(function_entered)(HWord kind, HWord a0, HWord a1, HWord a2, HWord sp, HWord link) {
    Thread* t = &thread[running];
    Awaited* top;
    UInt i;
    if (kind == FUNCTION_FREE) return freed(a0);
    if (kind == FUNCTION_UNLOCK) return synchronised(REVISIT_SYNC_UNLOCK, a0);
    if (kind == FUNCTION_REGION_BEGIN) return region(REVISIT_REGION_BEGIN, a0);
    if (kind == FUNCTION_REGION_END) return region(REVISIT_REGION_END, a0);
    if (kind == FUNCTION_SETJMP) return setjmp_called(link);
    /* It gives the lock back while it waits. */
    if (kind == FUNCTION_WAIT) synchronised(REVISIT_SYNC_UNLOCK, a1);
    sp += CALL_PUSHES;
    while (t->awaited && t->stack[t->awaited - 1].sp < sp) {
        t->awaited--; /* left by a jump */
        if (t->stack[t->awaited].kind == FUNCTION_CHOSEN) chosen(REVISIT_REGION_END);
    }
    for (i = 0; i < t->awaited; i++)
        if ((t->stack[i].kind == FUNCTION_CHOSEN) == (kind == FUNCTION_CHOSEN)) return await_thread();
    if (t->awaited < AWAITED) {
        top = &t->stack[t->awaited++];
        top->kind = kind;
        top->sp = sp;
        top->link = link;
        top->argument = kind == FUNCTION_WAIT ? a1 : a0;
        top->size = kind == FUNCTION_CALLOC                                ? a0 * a1
                    : kind == FUNCTION_POSIX_MEMALIGN                      ? a2
                    : kind == FUNCTION_REALLOC || kind == FUNCTION_ALIGNED ? a1
                                                                           : a0;
        if (kind == FUNCTION_CHOSEN) {
            chosen(REVISIT_REGION_BEGIN);
        }
    }
    await_thread();
}

void RV_(function_returned)(HWord result, HWord target) {
    Thread* t = &thread[running];
    Awaited* top;
    if (!t->awaited) return;
    top = &t->stack[t->awaited - 1];
    if (top->link != target) return;
    t->awaited--;
    await_thread();
    if (top->kind == FUNCTION_CHOSEN) {
        chosen(REVISIT_REGION_END);
        return;
    }
    if (top->kind == FUNCTION_LOCK || top->kind == FUNCTION_JOIN) {
        UInt kind = top->kind == FUNCTION_LOCK ? REVISIT_SYNC_LOCK : REVISIT_SYNC_JOIN;
        if ((Int)result == 0) synchronised(kind, top->argument);
        return;
    }
    if (top->kind == FUNCTION_WAIT) return synchronised(REVISIT_SYNC_LOCK, top->argument);
    if (top->kind == FUNCTION_POSIX_MEMALIGN)
        result = result == 0 && VG_(am_is_valid_for_client)(top->argument, 8, VKI_PROT_READ)
                     ? *(HWord*)top->argument
                     : 0;
    if (top->kind == FUNCTION_REALLOC && (result || !top->size)) freed(top->argument);
    if (!result) return;
    RV_(need)(3);
    put(REVISIT_RECORD(REVISIT_ALLOC, top->link - (CALL_PUSHES ? 1 : 4))); /* the call itself */
    put(result);
    put(top->size);
}

/* The parent's definitions must be with the analyzer before the child's first word. */
static void before_fork(ThreadId tid) {
    RV_(hand_over)();
    if (stream) __atomic_add_fetch(&stream->forks, 1, __ATOMIC_SEQ_CST);
}

static void after_fork_in_child(ThreadId tid) {
    ULong parent = producer;
    UInt* const forks = stream ? &stream->forks : NULL;
    if (!stream) return;
    slot = -1; /* the parent's */
    if (stream->want & REVISIT_WANT_CHILDREN && is_known_to_analyzer()) {
        start_process(parent);
        put(REVISIT_RECORD(REVISIT_THREAD, thread[tid].number));
    } else {
        if (stream->want & REVISIT_WANT_CHILDREN) out_of_reach(1); /* a PID namespace without /proc */
        stream = NULL;
        use(unread, REVISIT_SLOT_WORDS);
    }
    __atomic_sub_fetch(forks, 1, __ATOMIC_SEQ_CST);
}

/* The core reads lines and call frames of every file that the program maps, in each process again: a
   third of what a short one takes where the C library's debug information is installed. They only name
   places in the core's messages about a crash; names of functions are read elsewhere. The linker puts
   these in their place. */
void __wrap_vgModuleLocal_read_debuginfo_dwarf3(void);
void __wrap_vgModuleLocal_read_callframe_info_dwarf3(void);
void __wrap_vgModuleLocal_read_debuginfo_dwarf3(void) {}
void __wrap_vgModuleLocal_read_callframe_info_dwarf3(void) {}

/* Of the core's own headers, which the package does not have: where its messages go. */
extern struct {
    Int fd;
} VG_(log_output_sink);

/* The log file is /dev/null, so that a process that cannot see the analyzer runs all the same. */
static void send_messages(const HChar* path) {
    Int fd = RV_(inherited)(messages_file, path, VKI_O_WRONLY | VKI_O_APPEND);
    if (fd < 0) return;
    VG_(log_output_sink).fd = fd;
    RV_(hand_down)(fd, "--messages-file=");
}

static Bool option(const HChar* argument) {
    const HChar* name;
    if (VG_STR_CLO(argument, "--stream", stream_path)) {
    } else if (VG_STR_CLO(argument, "--messages", messages_path)) {
    } else if (VG_INT_CLO(argument, "--stream-file", stream_file)) {
    } else if (VG_INT_CLO(argument, "--messages-file", messages_file)) {
    } else if (VG_STR_CLO(argument, "--called", called)) {
    } else if (VG_STR_CLO(argument, "--function", name)) {
        VG_(addToXA)(chosen_functions, &name);
    } else
        return False;
    return True;
}
static void usage(void) {
    VG_(printf)(
        "    --stream=PATH     shared memory made by revisit\n"
        "    --messages=PATH   a file to append the core's messages to\n"
        "    --stream-file=N, --messages-file=N   the same, opened before\n"
        "    --called=NAME     what the program finds as its own name\n"
        "    --function=NAME   mark what happens inside a function\n");
}
static void usage_debug(void) {}

static void options_read(void) {
    SysRes mapped;
    RV_(programs_begin)();
    if (messages_path) send_messages(messages_path);
    use(unread, REVISIT_SLOT_WORDS);
    thread = VG_(calloc)("revisit.threads", VG_N_THREADS, sizeof *thread);
    if (!stream_path) {
        VG_(fmsg)("the revisit tool is run by `revisit profile --via valgrind`\n");
        VG_(exit)(2);
    }
    stream_file = RV_(inherited)(stream_file, stream_path, VKI_O_RDWR);
    if (stream_file < 0) return; /* the analyzer is gone, or this user may not see it: run unrecorded */
    RV_(hand_down)(stream_file, "--stream-file=");
    mapped = VG_(am_shared_mmap_file_float_valgrind)(REVISIT_STREAM_BYTES,
                                                     VKI_PROT_READ | VKI_PROT_WRITE, stream_file, 0);
    if (sr_isError(mapped)) return;
    stream = (revisit_stream*)sr_Res(mapped);
    if (!revisit_stream_valid(stream)) {
        stream = NULL;
        return;
    }
    /* Entries, calls and returns are seen only where superblocks end at them. */
    if (stream->want &
        (REVISIT_WANT_CALLS | REVISIT_WANT_OBJECTS | REVISIT_WANT_REGIONS | REVISIT_WANT_ORDER))
        VG_(clo_vex_control).guest_chase = False;
    /* Threads are merged a superblock at a time: several rounds of a loop in one would not be mixed. */
    if (wants_order()) VG_(clo_vex_control).iropt_unroll_thresh = 0;
    start_process(REVISIT_NO_PARENT);
    VG_(atfork)(before_fork, NULL, after_fork_in_child);
}

static void finished(Int status) {
    if (slot < 0) return;
    RV_(need)(2);
    put(REVISIT_RECORD(REVISIT_END, 0));
    put(0);
    close_slot();
}

static void before_options(void) {
    VG_(details_name)("revisit");
    VG_(details_version)(NULL);
    VG_(details_description)("streams every memory access to revisit's analyzer");
    VG_(details_copyright_author)("GPL-2.0-or-later; valgrind's core is its authors'.");
    VG_(details_bug_reports_to)("the revisit project");
    VG_(details_avg_translation_sizeB)(500);
    VG_(basic_tool_funcs)(options_read, RV_(instrument), finished);
    VG_(needs_command_line_options)(option, usage, usage_debug);
    VG_(needs_syscall_wrapper)(before_syscall, after_syscall);
    VG_(track_new_mem_startup)(memory_at_start);
    VG_(track_new_mem_mmap)(memory_mapped);
    VG_(track_die_mem_munmap)(memory_unmapped);
    VG_(track_post_mem_write)(kernel_wrote);
    VG_(track_start_client_code)(thread_runs);
    VG_(track_pre_thread_ll_create)(thread_created);
    VG_(track_pre_thread_first_insn)(thread_begins);
    VG_(track_pre_thread_ll_exit)(thread_ended);
    chosen_functions = VG_(newXA)(VG_(malloc), "revisit.functions", VG_(free), sizeof(const HChar*));
}

VG_DETERMINE_INTERFACE_VERSION(before_options)
