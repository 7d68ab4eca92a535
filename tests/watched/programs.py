#!/usr/bin/env python3
"""What surrounds a sampled program: short runs that are repeated, outputs, other roots, debug information elsewhere.
usage: programs.py BUILD"""
import json, os, shutil, socket, subprocess, sys, tempfile, time

from check import check, run

build = os.path.abspath(sys.argv[1])
revisit = os.path.join(build, "revisit")
directory = tempfile.mkdtemp(prefix="revisit-programs-")
os.chdir(directory)


def profile(command, *options, **more):
    if os.path.exists("p.json"):
        os.unlink("p.json")
    got = run([revisit, "profile", "--method", "watch", "--quiet", "-o", "p.json", *options, "--", *command], **more)
    return got, json.load(open("p.json")) if os.path.exists("p.json") else None


got, _ = profile(["true"])
findings = {f["subject"]: f for f in json.loads(run([revisit, "doctor", "--json"]).stdout)["findings"]}
if "ptrace is not permitted" in got.stderr or not findings["watchpoints"]["works"]:
    print("no sampling here:", got.stderr)
    sys.exit(77)

with open("short.c", "w") as source:
    source.write("""#include <stdio.h>
static unsigned table[1 << 16];
__attribute__((noinline)) static unsigned walk(int n) {
    unsigned sum = 0, at = 1;
    for (int i = 0; i < n; i++) {
        at = at * 1103515245 + 12345;
        sum += table[at >> 16] += at;
    }
    return sum;
}
int main(int count, char** words) {
    char line[80] = "";
    if (!fgets(line, sizeof line, stdin)) return 4;
    if (count > 1) {  /* another status from the third run on */
        FILE* runs = fopen(words[1], "a+");
        fputc('x', runs);
        if (ftell(runs) > 2) return 5;
        fclose(runs);
    }
    printf("%u %s", walk(10000000), line);
    return 3;
}
""")
check(run(["cc", "-O1", "-g", "short.c", "-o", "short"]).returncode == 0, "cc")
with open("input", "w") as file:
    file.write("the input\n")

# The first thread ends and another goes on, as in a server that has started its workers. /proc shows nothing by the number of the process then.
with open("headless.c", "w") as source:
    source.write("""#include <pthread.h>
#include <stdio.h>
#include <unistd.h>
static unsigned table[1 << 16];
static void* walk(void* of) {
    unsigned sum = 0, at = 1;
    usleep(50000);
    for (int i = 0; i < 100000000; i++) {
        at = at * 1103515245 + 12345;
        sum += table[at >> 16] += at;
    }
    printf("%u\\n", sum);
    return of;
}
int main(void) {
    pthread_t thread;
    pthread_create(&thread, NULL, walk, NULL);
    pthread_exit(NULL);
}
""")
check(run(["cc", "-O1", "-g", "-pthread", "headless.c", "-o", "headless"]).returncode == 0, "cc -pthread")
plain = run(["./headless"])
got, made = profile(["./headless"])
found = sum(site["accesses"] for site in made["sites"] if site.get("function") == "walk")
check(got.stdout == plain.stdout and got.returncode == plain.returncode, f"a first thread that ends: {got}")
check(made["accesses"] > 5e7 and found > 0.9 * made["accesses"], f"a first thread that ends: {made['accesses']} accesses, {found} in walk")
headless = subprocess.Popen(["./headless"], stdout=subprocess.DEVNULL)
time.sleep(0.04)
got = run([revisit, "profile", "--pid", str(headless.pid), "--duration", "0.1s", "-o", "a.json"])
check(got.returncode == 2 and got.stderr.count("\n") == 1 and "first thread of process" in got.stderr, f"attached to one whose first thread has ended: {got}")
headless.wait()

# Run again until there are samples enough, or as often as allowed: one output, one status, the counts of one run. 20 million accesses,
# by a clock that may be off by half. On a busy machine many runs end before their timer is noticed.
often = ["--every", "100us", "--overhead", "50%"]
with open("input") as file:
    plain = run(["./short"], stdin=file)
with open("input") as file:
    got, result = profile(["./short"], "--repeat=60", *often, stdin=file)
check((got.returncode, got.stdout) == (3, plain.stdout), "repeated: %d %s %s" % (got.returncode, got.stdout, got.stderr))
runs = next((int(note.split()[4]) for note in result["notes"] if "runs of the program, the counts of one" in note), 1)
samples = result["sampled"]["samples"]
check(samples >= 400 or runs == 60, "%g samples in %d runs: %s" % (samples, runs, result["notes"]))
check(runs > 1 or samples >= 400, "again")
check(samples < 50 or 1e7 < result["accesses"] < 4e7, "accesses of one run: %g" % result["accesses"])
check(len(result["processes"]) == 1 and not result.get("threads"), "one process of one thread: %s" % result["processes"])
total = result["reuse"]["cold"] + sum(b[2] for b in result["reuse"]["bins"])
check(abs(total - result["accesses"]) < 1e-6 * total, "bins sum to the accesses")
with open("input") as file:
    got, result = profile(["./short", "runs"], "--repeat", stdin=file)
check(got.returncode == 3 and os.path.getsize("runs") == 3, "it ends where the status changes: %d" % os.path.getsize("runs"))
check(any("another status" in note for note in result["notes"]), result["notes"])
got, _ = profile(["./short", "more"], "--repeat=1", stdin=subprocess.DEVNULL)
check(got.returncode == 4 and not os.path.exists("more"), "--repeat=1 is one run, and input that is none stays so")
got = run([revisit, "profile", "--repeat", "--pid", str(os.getpid())])
check(got.returncode == 2 and "not with --pid" in got.stderr, got.stderr)

# A process knows who started it.
got, result = profile(["sh", "-c", "./short <input; true"])
short = [process for process in result["processes"] if process["command"] == ["./short"]]
shells = [process["pid"] for process in result["processes"] if process["command"][0] == "sh"]
check(len(short) == 1 and short[0].get("parent") in shells and short[0]["parent"] != short[0]["pid"], "the tree of processes: %s" % result["processes"])

# A process that forks often is let go between samples. Its children are found all the same, and those that live on are sampled; so is what it
# runs itself afterwards. One or two children may be counted twice or not at all: they begin while it is let go or seized.
with open("server.c", "w") as source:
    source.write("""#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
static unsigned table[1 << 16];
__attribute__((noinline)) static void* walk(void* n) {
    unsigned at = 1;
    for (long i = 0; i < (long)n; i++) {
        at = at * 1103515245 + 12345;
        table[at >> 16] += at;
    }
    return 0;
}
int main(int count, char** words) {
    const char* then = words[1];
    int failed = 0, status = 0;
    pthread_t thread;
    for (int i = 0; i < 100 && strcmp(then, "again"); i++) {
        if (fork() == 0) {
            walk((void*)300000);
            _exit(3);
        }
        wait(&status);
        failed += WEXITSTATUS(status) != 3;
    }
    printf("%d\\n", failed);
    fflush(stdout);
    if (!strcmp(then, "exec")) execl(words[0], words[0], "again", NULL);
    if (!strcmp(then, "again")) walk((void*)400000000);
    if (!strcmp(then, "thread") && pthread_create(&thread, 0, walk, (void*)400000000) == 0) pthread_join(thread, 0);
    if (!strcmp(then, "child") || !strcmp(then, "grandchild")) {
        if (fork() == 0) {
            if (then[0] == 'c' || fork() == 0) walk((void*)400000000);
            wait(0);
            _exit(0);
        }
        wait(0);
    }
    return 5;
}
""")
check(run(["cc", "-O1", "-g", "server.c", "-o", "server", "-lpthread"]).returncode == 0, "cc")
for then, more in ("child", 1), ("grandchild", 2), ("exec", 1), ("thread", 0):
    plain_server = run(["./server", then])
    got, result = profile(["./server", then])
    check((got.returncode, got.stdout) == (5, plain_server.stdout), "a server, then %s: %d %s %s" % (then, got.returncode, got.stdout, got.stderr))
    processes, server = result["processes"], result["processes"][0]["pid"]
    check(abs(len(processes) - 101 - more) <= 2, "a server, then %s: %d processes" % (then, len(processes)))
    check(sum(p.get("parent") == server and p["pid"] != server for p in processes) >= 98, "children of the server")
    check(max(p["seconds"] for p in processes) > 0.1, "a server, then %s: %s" % (then, sorted(p["seconds"] for p in processes)[-3:]))

# A job that is stopped, at any moment, and goes on: also before it has become the program.
import signal
for delay in 0, 0, 0, 0, 0.002, 0.005, 0.01, 0.05:
    with open("input") as file:
        sampler = subprocess.Popen([revisit, "profile", "--method", "watch", "--quiet", "-o", "p.json", "--", "./short"], stdin=file, stdout=subprocess.PIPE, text=True)
    children = ""
    while not children and sampler.poll() is None:
        children = open("/proc/%d/task/%d/children" % (sampler.pid, sampler.pid)).read()
    time.sleep(delay)
    for which in (signal.SIGSTOP, signal.SIGCONT) * 2:
        if sampler.poll() is None and children:
            try:
                os.kill(int(children.split()[0]), which)
            except ProcessLookupError:
                pass
            time.sleep(0.01)
    check(sampler.communicate(timeout=60)[0] == plain.stdout and sampler.returncode == 3, "stopped after %g s" % delay)

# Blocks too small to be noted one by one are named by where some of their neighbours were allocated, and no more memory is touched for the first time than was resident. The
# list is gone through so often that building it, for which few samples speak, is a tenth of the run: what is waited for in vain at the
# end has been touched before.
with open("list.c", "w") as source:
    source.write("""#include <stdio.h>
#include <stdlib.h>
struct node { struct node* next; long value; };
int main(void) {
    struct node* first = 0;
    long sum = 0;
    for (int i = 0; i < 500000; i++) {
        struct node* one = malloc(sizeof *one);
        one->value = i;
        one->next = first;
        first = one;
    }
    for (int k = 0; k < 240; k++)
        for (struct node* one = first; one; one = one->next) sum += one->value;
    printf("%ld\\n", sum);
}
""")
check(run(["cc", "-O1", "-g", "list.c", "-o", "list"]).returncode == 0, "cc")
for _ in range(5):  # on a busy machine few samples are taken
    got, listed = profile(["./list"], "--every", "200us", "--overhead", "30%")
    check(got.returncode == 0 and listed["reuse"]["cold"] <= listed["distinct"] + 1 <= (200 << 20) / 64, "first touches of a list")
    if listed["sampled"]["samples"] >= 30:
        break
names = {o["name"]: o["accesses"] for o in listed["objects"] if o["kind"] == "heap"}
nodes = 500000 * 32 / 64  # in lines
check(listed["sampled"]["distinct_low"] <= 1.1 * nodes and 0.8 * nodes < listed["distinct"] < 1.5 * nodes < 1.5 * listed["sampled"]["distinct_high"],
      "blocks of a list: %s, %s" % (listed["distinct"], listed["sampled"]))
check(listed["sampled"]["samples"] < 30 or names.get("main (list.c:8)", 0) > 0.5 * listed["accesses"], "small blocks: %s of %g" % (names, listed["accesses"]))

# An output that cannot be written is found before the program starts.
for options in ["-o", "/nowhere/p.json"], ["-o", directory]:
    for command in "profile", "record":
        got = run([revisit, command, *options, "--", "touch", "started"])
        check(got.returncode == 2 and got.stderr.count("\n") == 1 and not os.path.exists("started"), "%s %s: %s" % (command, options, got.stderr))

# Nor do the program's output and status suffer where messages cannot be written.
with open("/dev/full", "w") as full:
    for command, status in ([revisit, "profile", "-o", "p.json", "--", "sh", "-c", "echo written; exit 3"], 3), ([revisit, "report", "missing.json"], 2), ([revisit, "nothing"], 2):
        got = subprocess.run(command, stdout=subprocess.PIPE, stderr=full, text=True)
        check((got.returncode, got.stdout) == (status, "written\n" if status == 3 else ""), "messages on a full disk: %s" % got)

# Debug information beside the program, of its build id, in .gnu_debugdata, from a server.
names = "libdw_FOUND:INTERNAL=1" in open(os.path.join(build, "CMakeCache.txt")).read()
if names and shutil.which("objcopy") and shutil.which("xz"):
    def places(program, **more):
        for _ in range(5):  # on a busy machine few samples are taken, and those of the beginning weigh as much
            with open("input") as file:
                _, result = profile([program], "--repeat=4", *often, stdin=file, **more)
            if result["sampled"]["samples"] >= 20:
                break
        return {(s.get("function"), s.get("line", 0) > 0) for s in result["sites"] if s["accesses"] > 0.2 * result["accesses"]}

    os.makedirs("store")
    os.makedirs("elsewhere")
    for command in (["objcopy", "--only-keep-debug", "short", "store/short.debug"], ["objcopy", "--strip-all", "short", "stripped"],
                    ["objcopy", "--add-gnu-debuglink=store/short.debug", "stripped", "elsewhere/linked"],
                    ["objcopy", "--strip-debug", "--keep-symbol=walk", "--keep-symbol=main", "store/short.debug", "mini"], ["xz", "mini"],
                    ["objcopy", "--add-section", ".gnu_debugdata=mini.xz", "stripped", "with-mini"]):
        check(run(command).returncode == 0, " ".join(command))
    found = places("./stripped")
    check(found == {(None, False)}, "stripped: %s" % found)
    shutil.copy("store/short.debug", "elsewhere/")
    found = places("elsewhere/linked")
    check(found == {("walk", True)}, "debug link: %s" % found)
    found = places("./with-mini")
    check(found == {("walk", False)}, ".gnu_debugdata: %s" % found)
    if shutil.which("debuginfod"):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        server = subprocess.Popen(["debuginfod", "-p", str(port), "-d", ":memory:", "-F", "store"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        build_id = run(["readelf", "-n", "stripped"]).stdout.split("Build ID: ")[1].split()[0]
        url = "http://127.0.0.1:%d" % port
        served = False
        for _ in range(60):  # until it has read the folder
            served = run(["debuginfod-find", "debuginfo", build_id], env={**os.environ, "DEBUGINFOD_URLS": url, "DEBUGINFOD_CACHE_PATH": directory + "/probe-%d" % _}).returncode == 0
            if served:
                break
            time.sleep(0.25)
        found = places("./stripped", env={**os.environ, "DEBUGINFOD_URLS": url, "DEBUGINFOD_CACHE_PATH": directory + "/cache"})
        server.kill()
        server.wait()
        check(not served or found == {("walk", True)}, "debuginfod: %s" % found)

# A program in another root, where the heap library is not, has nothing to complain about.
if os.geteuid() == 0 and shutil.which("chroot"):
    libraries = [word for word in run(["ldd", "./short"]).stdout.split() if word.startswith("/")]
    for library in libraries:
        os.makedirs("root" + os.path.dirname(library), exist_ok=True)
        shutil.copy(library, "root" + library)
    shutil.copy("short", "root/short")
    with open("input") as file:
        got, result = profile(["chroot", "root", "/short"], stdin=file)
    check((got.returncode, got.stdout, got.stderr) == (3, plain.stdout, ""), "another root: %s" % got.stderr)
    check(result["command"][0] == "/short", "another root: %s leads" % result["command"])
print("passed")
