/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Programs that the recorded one starts by exec: how they find the stream, and which run as they are.
 *
 * The stream is a file of the analyzer's, opened by a path in /proc. A process in another user
 * namespace may not open it, though it may use one that it has. So each process keeps the files open,
 * above the numbers that the program can use, and hands them down to a program that valgrind runs, with
 * their numbers among valgrind's arguments.
 *
 * Where the tool itself or /proc is not to be seen (bwrap, chroot), valgrind would end instead of the
 * program's beginning. Nor can valgrind run what changes its user. All these run as they are; the
 * analyzer is told how many.
 */
#include "pub_tool_aspacemgr.h"
#include "pub_tool_clientstate.h"
#include "pub_tool_libcbase.h"
#include "pub_tool_libcfile.h"
#include "pub_tool_libcprint.h"
#include "pub_tool_mallocfree.h"
#include "pub_tool_vki.h"
#include "pub_tool_xarray.h"
#include "tool.h"

/* Of the core's own headers, which the package does not have. */
extern Int VG_(safe_fd)(Int fd);
extern Int VG_(fcntl)(Int fd, Int command, Addr argument);
extern Int VG_(access)(const HChar* path, Bool read, Bool write, Bool execute);
extern Int VG_(cl_exec_fd);
extern Bool VG_(clo_trace_children);
extern const HChar* VG_(name_of_launcher);

enum { MOST_FILES = 2, SET_USER = 04000, SET_GROUP = 02000 };
#if defined(VGA_arm64)
enum { SYSCALL_GETXATTR = 8, SYSCALL_MPROTECT = 226 };
#else
enum { SYSCALL_GETXATTR = 191, SYSCALL_MPROTECT = 10 };
#endif
static Int files[MOST_FILES];
static UInt files_kept;
static HChar tool_path[4096];
static Bool traces_children;

/* The path by which the program was started, where the kernel keeps it: valgrind's own is there. A
   program that is one file with many names, as coreutils of Ubuntu since 25.10, asks for it
   (PR_GET_AUXV) to know which one it is. */
static void take_its_name(void) {
    enum { ENTRIES = 64, EXECUTABLE = 31 }; /* AT_EXECFN */
    UWord vector[2 * ENTRIES];
    const HChar* name = VG_(args_the_exename);
    Int file = VG_(fd_open)("/proc/self/auxv", VKI_O_RDONLY, 0);
    if (file < 0 || !name) return;
    Int bytes = VG_(read)(file, vector, sizeof vector);
    VG_(close)(file);
    for (Int i = 0; 2 * (i + 1) * (Int)sizeof *vector <= bytes; i++) {
        if (vector[2 * i] != EXECUTABLE) continue;
        HChar* own = (HChar*)vector[2 * i + 1];
        while (name &&
               VG_(strlen)(name) > VG_(strlen)(own)) /* as much of its end as there is room for */
            if ((name = VG_(strchr)(name, '/'))) name++;
        if (name) VG_(strcpy)(own, name);
    }
}

static HChar own_path[4096];

const HChar* RV_(program_path)(void) {
    return own_path[0] ? own_path : VG_(args_the_exename);
}

void RV_(programs_begin)(void) {
    const HChar* name = VG_(args_the_exename);
    if (name && VG_(strncmp)(name, "/dev/fd/", 8) == 0) /* see start_itself */
        VG_(readlink)(name, own_path, sizeof own_path - 1);
    take_its_name();
    SSizeT length = VG_(readlink)("/proc/self/exe", tool_path, sizeof tool_path - 1);
    tool_path[length > 0 ? length : 0] = 0;
    traces_children = VG_(clo_trace_children);
}

Int RV_(inherited)(Int handed_down, const HChar* path, Int flags) {
    SysRes opened;
    if (handed_down >= 0 && VG_(fcntl)(handed_down, VKI_F_GETFD, 0) >= 0)
        return VG_(safe_fd)(handed_down);
    opened = VG_(open)(path, flags, 0);
    return sr_isError(opened) ? -1 : VG_(safe_fd)(sr_Res(opened));
}

/* Gives an option of ours to the programs that are started from now on, instead of what it was. */
static void set_option(const HChar* option, const HChar* value) {
    XArray* arguments = VG_(args_for_valgrind);
    const UInt length = VG_(strlen)(option);
    HChar* text = VG_(malloc)("revisit.argument", length + VG_(strlen)(value) + 1);
    Word i;
    VG_(strcpy)(text, option);
    VG_(strcpy)(text + length, value);
    for (i = 0; i < VG_(sizeXA)(arguments); i++) {
        HChar** argument = VG_(indexXA)(arguments, i);
        if (VG_(strncmp)(*argument, option, length) != 0) continue;
        *argument = text;
        return;
    }
    VG_(addToXA)(arguments, &text);
}

void RV_(hand_down)(Int fd, const HChar* option) {
    HChar number[16];
    if (files_kept == MOST_FILES) return;
    files[files_kept++] = fd;
    VG_(sprintf)(number, "%d", fd);
    set_option(option, number);
}

/* Valgrind starts a program by its path and forgets by what name it was called: `wc` would say
   "/usr/bin/wc: No such file", and a shell called -sh would not know that it is a login shell. */
static void hand_down_name(HChar** arguments) {
    static HChar name[REVISIT_TEXT_MAX];
    UInt i = 0;
    if (!VG_(am_is_valid_for_client)((Addr)arguments, sizeof *arguments, VKI_PROT_READ)) return;
    for (; arguments[0] && i < sizeof name - 1; i++) {
        if (!VG_(am_is_valid_for_client)((Addr)arguments[0] + i, 1, VKI_PROT_READ)) return;
        if (!arguments[0][i]) break;
        name[i] = arguments[0][i];
    }
    name[i] = 0;
    set_option("--called=", name);
}

/* At the first instruction. Of a script, the first argument is the interpreter. The name goes to the end
   of where the path was, beside the next argument: programs that change their title expect them so. */
void RV_(take_called)(Addr stack, const HChar* called) {
    HChar** arguments = (HChar**)(stack + sizeof(UWord));
    const HChar* path = VG_(args_the_exename);
    if (!called || !path || !*(UWord*)stack || !VG_STREQ(arguments[0], path)) return;
    const UInt room = VG_(strlen)(path), length = VG_(strlen)(called);
    if (length > room)
        arguments[0] = VG_(strdup)("revisit.name", called);
    else
        VG_(strcpy)(arguments[0] += room - length, called);
}

/* A program that starts itself again (/proc/self/exe) would start valgrind. Its path has room for the
   number of the file that valgrind has open, which is above those that the program can use. */
static const HChar itself[] = "/proc/self/exe";
static HChar* renamed; /* the path that was replaced, in the program's memory */

static Bool write_path(HChar* path, const HChar* text) {
    enum { PAGE = 4096 };
    const Addr first = (Addr)path & ~(Addr)(PAGE - 1), last = (Addr)path + sizeof itself - 1;
    const SizeT bytes = (last - first) / PAGE * PAGE + PAGE;
    NSegment const* segment = VG_(am_find_nsegment)((Addr)path);
    const UInt was = segment ? (segment->hasR ? VKI_PROT_READ : 0) | (segment->hasW ? VKI_PROT_WRITE : 0) |
                                   (segment->hasX ? VKI_PROT_EXEC : 0)
                             : 0;
    if (!segment || last > segment->end) return False;
    if (!segment->hasW &&
        revisit_syscall(SYSCALL_MPROTECT, first, bytes, VKI_PROT_READ | VKI_PROT_WRITE, 0) != 0)
        return False;
    VG_(strcpy)(path, text);
    if (!segment->hasW) revisit_syscall(SYSCALL_MPROTECT, first, bytes, was, 0);
    return True;
}

static void start_itself(HChar* path) {
    HChar name[32];
    if (!VG_(am_is_valid_for_client)((Addr)path, sizeof itself, VKI_PROT_READ) ||
        !VG_STREQ(path, itself))
        return;
    VG_(sprintf)(name, "/dev/fd/%d", VG_(cl_exec_fd));
    if (VG_(strlen)(name) >= sizeof itself || VG_(access)(name, True, False, True) != 0) return;
    if (!write_path(path, name)) return;
    renamed = path;
    VG_(fcntl)(VG_(cl_exec_fd), VKI_F_SETFD, 0);
}

static Bool changes_user(const HChar* path) {
    struct vg_stat status;
    if (!path || sr_isError(VG_(stat)(path, &status))) return False;
    return status.mode & (SET_USER | SET_GROUP) ||
           revisit_syscall(SYSCALL_GETXATTR, (long)path, (long)"security.capability", 0, 0) > 0;
}

static void keep_at_exec(Bool keeps) {
    UInt i;
    for (i = 0; i < files_kept; i++) VG_(fcntl)(files[i], VKI_F_SETFD, keeps ? 0 : VKI_FD_CLOEXEC);
}

Bool RV_(before_exec)(HChar* path, HChar** arguments, Bool is_recorded) {
    start_itself(path);
    if (!traces_children) return True;
    hand_down_name(arguments);
    VG_(clo_trace_children) = is_recorded && VG_(access)(tool_path, True, False, True) == 0 &&
                              VG_(access)(VG_(name_of_launcher), True, False, True) == 0 &&
                              VG_(access)("/proc/self/maps", True, False, False) == 0 &&
                              !changes_user(path);
    keep_at_exec(VG_(clo_trace_children));
    return VG_(clo_trace_children);
}

void RV_(after_failed_exec)(void) {
    if (renamed) {
        write_path(renamed, itself);
        VG_(fcntl)(VG_(cl_exec_fd), VKI_F_SETFD, VKI_FD_CLOEXEC);
        renamed = NULL;
    }
    VG_(clo_trace_children) = traces_children;
    keep_at_exec(False);
}
