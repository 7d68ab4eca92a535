#!/usr/bin/env python3
"""Programs we did not build, under the valgrind recorder: they do what they always do.

    strangers.py BUILD
"""
import json, pathlib, platform, shutil, subprocess, sys, tempfile

build = pathlib.Path(sys.argv[1]).resolve()
scratch = tempfile.TemporaryDirectory()
folder = pathlib.Path(scratch.name)
failures = []


def run(command):
    return subprocess.run(command, cwd=folder, shell=True, capture_output=True, timeout=300,
                          env={"PATH": "/usr/bin:/bin", "LC_ALL": "C", "R": str(build / "revisit")})


tried = run("$R profile --method exact --quiet -o p.json -- /bin/true")
if tried.returncode:
    print(tried.stderr.decode())
    sys.exit(77)

(folder / "words").write_text("".join(f"{i * 7919 % 2003} word {i % 17}\n" for i in range(2000)))
COMMANDS = (
    "gzip -c words",
    "sort -n words",
    "python3 -S -c 'print(sum(i * i for i in range(999)), sorted(\"reuse distance\"))'",
    "sqlite3 :memory: 'create table t(a, b); insert into t values (1, 2), (3, 4); select sum(a * b) from t;'",
    "xz -T2 --block-size=8KiB -0 -c words",
)
for command in COMMANDS:
    name = command.split()[0]
    if not shutil.which(name, path="/usr/bin:/bin"):
        print(f"{name} is not here")
        continue
    alone = run(command)
    recorded = run(f"$R profile --via valgrind --quiet --method time -o p.json -- {command}")
    seen = (recorded.returncode, recorded.stdout, recorded.stderr)
    if seen != (alone.returncode, alone.stdout, alone.stderr):
        failures.append(f"{command}: ended with {recorded.returncode}, {len(recorded.stdout)} bytes of output instead of "
                        f"{len(alone.stdout)}, and said {recorded.stderr.decode()}")
        continue
    profile = json.loads((folder / "p.json").read_text())
    counted = profile["reuse"]["cold"] + profile["reuse"].get("invalidated", 0) + sum(b[2] for b in profile["reuse"]["bins"])
    if profile["accesses"] < 100000 or abs(counted - profile["accesses"]) > 1e-6 * counted:
        failures.append(f"{command}: {profile['accesses']} accesses, {counted} in bins")

# Without symbols there are still places: module and offset.
(folder / "bare.c").write_text("volatile int data[65536]; int main(void) { for (int i = 0; i < 65536; i++) data[i] = i; return 5; }\n")
made = run("cc -O1 bare.c -o bare && strip bare && $R profile --method exact --quiet -o p.json -- ./bare")
profile = json.loads((folder / "p.json").read_text())
stores = [site for site in profile["sites"] if site.get("module", "").endswith("/bare") and site["accesses"] == 65536]
if made.returncode != 5 or len(stores) != 1 or not stores[0].get("offset") or "file" in stores[0]:
    failures.append(f"a stripped program: status {made.returncode}, sites {stores}")
told = run("$R report --cache 32K:8:64 p.json").stdout.decode()
if "bare+0x" not in told:
    failures.append(f"a stripped program is reported as\n{told}")

# A repeated string instruction moves words, whatever its elements, and as many as there are: not one more in a page beside.
(folder / "strings.c").write_text("""
#include <stdlib.h>
__attribute__((noinline)) static void fill(char* to, long n) { __asm__ volatile("rep stosb" : "+D"(to), "+c"(n) : "a"(1) : "memory"); }
__attribute__((noinline)) static void copy(int* to, int* from, long n) { __asm__ volatile("rep movsl" : "+D"(to), "+S"(from), "+c"(n)::"memory"); }
__attribute__((noinline)) static void copy_wide(long* to, long* from, long n) { __asm__ volatile("rep movsq" : "+D"(to), "+S"(from), "+c"(n)::"memory"); }
int main(void) {
    char *one = aligned_alloc(64, 65536), *two = aligned_alloc(64, 65536);
    fill(one, 65536);
    fill(one + 3, 2);
    copy((int*)two, (int*)one, 16384);
    copy_wide((long*)one, (long*)two, 8192);
    return one[65535] != 1;
}
""")
if platform.machine() == "x86_64" and shutil.which("cc"):
    made = run("cc -O1 -g strings.c -o strings && $R profile --method exact --quiet -o p.json -- ./strings")
    counts = {}
    for site in json.loads((folder / "p.json").read_text())["sites"]:
        counts[site.get("function")] = counts.get(site.get("function"), 0) + site["accesses"]
    # The first element of each is beside the words, and the call's own stack.
    for function, words in (("fill", 8192), ("copy", 16384), ("copy_wide", 16384)):
        if not words <= counts.get(function, 0) <= words + 16:
            failures.append(f"string instructions: {counts.get(function)} accesses in {function}, {words} words")

# Data of mapped files by the file; what is mapped again at the same place is another's.
(folder / "mapped.c").write_text("""
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>
static void walk(const char* path, int flags, int at, int times) {
    int file = open(path, O_RDWR | O_CREAT, 0600);
    ftruncate(file, at + 65536);
    volatile int* words = mmap(0, 65536, PROT_READ | PROT_WRITE, flags, file, at);
    for (int i = 0; i < 16384 * times; i++) words[i % 16384] = i;
    munmap((void*)words, 65536);
    close(file);
    unlink(path);
}
int main(void) {
    walk("data.bin", MAP_SHARED, 0, 1);
    walk("own.bin", MAP_PRIVATE, 65536, 2);
    return 0;
}
""")
made = run("cc -O1 -w mapped.c -o mapped && $R profile --method exact --quiet -o p.json -- ./mapped")
seen = {f"{o['kind']} {o['name']}": o["accesses"] for o in json.loads((folder / "p.json").read_text()).get("objects", [])}
if made.returncode or {name: seen.get(name) for name in ("file data.bin", "file own.bin")} != {"file data.bin": 16384, "file own.bin": 32768}:
    failures.append(f"mapped files: status {made.returncode}, {seen}")

# One profile per run, wherever it goes, of the program that did the work; the processes are in it.
before = set(folder.iterdir())
made = run("$R profile --method exact --quiet -o /dev/null -- sh -c '/bin/true; exit 3'")
if made.returncode != 3 or set(folder.iterdir()) != before or list(pathlib.Path("/dev").glob("null?*")):
    failures.append(f"profiles to /dev/null: status {made.returncode}")
made = run("$R profile --method exact --quiet -o - -- sh -c 'env ./bare; exit 3' > p.json")
profile = json.loads((folder / "p.json").read_text())
names = [pathlib.Path(process["command"][0]).name for process in profile.get("processes", [])]
if made.returncode != 3 or set(folder.iterdir()) != before or not {"sh", "env", "bare"} <= set(names) or not profile["command"][0].endswith("bare"):
    failures.append(f"a profile to standard output: status {made.returncode}, processes {names}, of {profile['command']}")

# Programs find the name that they were called by: messages are the same, and a login shell is one.
(folder / "names.sh").write_text("""wc /nowhere; sh -c 'echo $0'; env ls /nowhere
bash -c 'exec -a -sh sh -c "echo \\$0"'; bash -c 'exec -a a/longer/name/than/the/path sh -c "echo \\$0"'; bash -c 'exec -a "" sh -c "echo \\$0."'
./script.sh; exit 3
""")
(folder / "script.sh").write_text("#!/bin/sh\necho $0; cat /nowhere\n")
(folder / "script.sh").chmod(0o755)
alone, made = run("sh names.sh"), run("$R profile --method exact --quiet -o /dev/null -- sh names.sh")
if (alone.returncode, alone.stdout, alone.stderr) != (made.returncode, made.stdout, made.stderr):
    failures.append(f"names of programs: {alone} and {made}")

# A program that starts itself again is recorded; one that forbids what valgrind does, or does what valgrind cannot, says so.
(folder / "odd.c").write_text("""
#define _GNU_SOURCE
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
static int child(void* of) { return of != NULL; }
int main(int count, char** words) {
    if (words[1][0] == 'a') { /* again, after another path that is not there */
        char* next[] = {"itself", "work", NULL};
        if (fork() == 0) execv(execv("/nowhere/itself", next) < 0 ? "/proc/self/exe" : "", next);
        int status = 0;
        wait(&status);
        printf("%d %s\\n", status, words[0]);
        fflush(stdout);
        return execv("/proc/self/exe", next);
    } else if (words[1][0] == 'f') { /* only write and exit */
        struct sock_filter filter[] = {
            BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)), BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_write, 2, 0),
            BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit_group, 1, 0), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
            BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
        struct sock_fprog program = {5, filter};
        prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
        if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program)) return 1;
        for (volatile int i = 0; i < 10000000; i++) continue;
        _exit(0);
    } else if (words[1][0] == 'c') { /* a process in the same memory */
        char* stack = malloc(1 << 16);
        int status = 0;
        return waitpid(clone(child, stack + (1 << 16), CLONE_VM | SIGCHLD, NULL), &status, 0) < 0;
    }
    return printf("%s %s of %d\\n", words[0], words[1], count) < 0;
}
""")
if run("cc -w odd.c -o odd").returncode == 0:
    alone, made = run("./odd again"), run("$R profile --method exact --quiet -o p.json -- ./odd again")
    profile = json.loads((folder / "p.json").read_text())
    commands = [process["command"] for process in profile.get("processes", [])]
    if (alone.returncode, alone.stdout, alone.stderr) != (made.returncode, made.stdout, made.stderr) or \
            commands.count([str(folder / "odd"), "work"]) != 2:
        failures.append(f"a program that starts itself: {alone} and {made}, processes {commands}")
    if run("./odd filter").returncode == 0:
        run("$R profile --method exact --quiet -o p.json -- ./odd filter")
        notes = json.loads((folder / "p.json").read_text())["notes"]
        if not any("seccomp" in note for note in notes):
            failures.append(f"a program with a filter: {notes}")

# What valgrind does not know is an illegal instruction only under valgrind; the program's own ones are its end.
(folder / "illegal.c").write_text("""
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>
static sigjmp_buf back;
static void jump_back(int number) { siglongjmp(back, number); }
static void unknown(void) { __asm__ volatile(".byte 0x62,0xf2,0x7d,0x48,0x1e,0xc0"); } /* vpabsd zmm0, zmm0 */
int main(int count, char** words) {
    int status = 0;
    if (words[1][0] == 'o') __builtin_trap();
    if (words[1][0] == 'h') {
        signal(SIGILL, jump_back);
        if (sigsetjmp(back, 1) == 0) unknown();
    } else if (words[1][0] == 'c') {
        if (fork() == 0) unknown();
        wait(&status);
    } else {
        unknown();
    }
    return printf("%d\\n", count) < 0;
}
""")
knows = platform.machine() == "x86_64" and run("cc -w illegal.c -o illegal").returncode == 0
if knows:
    for how, status, noted in (("own", 132, False), ("handled", 0, False), ("child", 0, True)):
        made = run(f"$R profile --method exact --quiet -o p.json -- ./illegal {how}")
        notes = json.loads((folder / "p.json").read_text()).get("notes", [])
        if made.returncode != status or any("unhandled instruction" in note for note in notes) != noted:
            failures.append(f"illegal instructions, {how}: status {made.returncode}, {notes}")

# One clear line each, status 2, and no profile.
for command, message in (
        ("$R profile -- ./missing", "program not found"),
        ("$R profile -- ./words", "is not executable"),
        ("$R profile --via clang -- ./bare", "was not built with the compiler plug-in"),
        ("$R profile --method exact -- ./odd clone", "Valgrind does not support general clone()"),
        *((("$R profile --method exact -o none.json -- ./illegal unknown; s=$?; test -e none.json && s=0; exit $s",
            "unhandled instruction"),) if knows else ()),
        ("PATH=/nowhere $R profile --method exact -- ./bare", "valgrind is not installed"),
        ("cp bare foreign; printf '\\003\\000' | dd of=foreign bs=1 seek=18 conv=notrunc status=none; $R profile -- ./foreign",
         "is a program for"),
        ("$R profile --quiet -o /dev/full -- ./bare", "No space left"),
        ("$R record --quiet -o /dev/full -- ./bare", "No space left")):
    done = run(command)
    said = done.stderr.decode()
    if done.returncode != 2 or message not in said or said.count("\n") != 1:
        failures.append(f"{command}: status {done.returncode}\n{said}")

print("\n".join(failures) or "all as ever")
sys.exit(bool(failures))
