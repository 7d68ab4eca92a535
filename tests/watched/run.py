#!/usr/bin/env python3
"""Programs profiled by watchpoints: they must not notice, and what is said about them must hold together.
usage: run.py BUILD SOURCE"""
import json, os, signal, subprocess, sys, tempfile, time

import check as checked
from check import PATIENCE, check

build, source = sys.argv[1:3]
revisit = os.path.join(build, "revisit")
directory = tempfile.mkdtemp(prefix="revisit-watched-")


def run(command, **more):
    return checked.run(command, cwd=directory, **more)


def build_program(*command):
    """The sources come with the tests: one that does not compile is a failure, not a reason to test less."""
    done = run(list(command))
    check(done.returncode == 0, "%s: %s" % (" ".join(command), done.stderr))


def watch(command, *options):
    got = run([revisit, "profile", "--method", "watch", "--quiet", "-o", "p.json", *options, "--", *command])
    profile = json.load(open(os.path.join(directory, "p.json"))) if got.returncode != 2 else None
    return got, profile


def watch_until(holds, command, *options):
    """Watches until `holds(profile)`, three times at most: how many samples there are, and where, depends on how
    soon a busy machine lets the sampler run. What the program prints must be right each time."""
    plain = run(command)
    for _ in range(3):
        got, profile = watch(command, *options)
        check((got.stdout, got.returncode) == (plain.stdout, plain.returncode),
              "%s: %s %d instead of %s %d, %s" % (command, got.stdout, got.returncode, plain.stdout, plain.returncode, got.stderr))
        if holds(profile):
            break
    return profile


def samples_of(profile):
    return profile["sampled"]["samples"]


def wait_until(holds, what):
    until = time.monotonic() + PATIENCE
    while not holds():
        check(time.monotonic() < until, what)
        time.sleep(0.02)


findings = {f["subject"]: f for f in json.loads(run([revisit, "doctor", "--json"]).stdout)["findings"]}
got, _ = watch(["true"])
if "ptrace is not permitted" in got.stderr:
    check(got.returncode == 2 and got.stderr.count("\n") == 1, "one line and status 2 where it cannot work")
    print("no sampling here:", got.stderr)
    sys.exit(77)
if not findings["watchpoints"]["works"]:
    print("no watchpoints here:", findings["watchpoints"]["detail"])
    sys.exit(77)

# The program's output and status are its own.
example = os.path.join(build, "examples", "quicksort")
plain = run([example, "3000000"])
got, _ = watch([example, "3000000"], "--every", "200us", "--overhead", "30%")
check(got.stdout == plain.stdout and got.stderr == plain.stderr and got.returncode == 0, "output is the program's")
check(watch(["sh", "-c", "exit 7"])[0].returncode == 7, "status is the program's")
check(watch(["sh", "-c", "kill -SEGV $$"])[0].returncode == 139, "a fault stays one")

# A profile whose parts agree.
def with_address(profile):
    words = next(n for n in profile["notes"] if "with an address" in n).split()
    return int(words[3]) / int(words[1])


profile = watch_until(lambda p: samples_of(p) >= 20 and with_address(p) >= 0.98, [example, "3000000"], "--every", "200us", "--overhead", "30%")
check(profile["method"] == "watch" and profile["granularity"] == 64, "method and granularity")
check(samples_of(profile) >= 20, "samples: %g" % samples_of(profile))
total = profile["reuse"]["cold"] + sum(b[2] for b in profile["reuse"]["bins"])
check(abs(total - profile["accesses"]) <= 1e-6 * total, "bins sum to the accesses")
check(abs(sum(s["accesses"] for s in profile["sites"]) - total) <= 1e-3 * total, "sites sum to the accesses")
names = "libdw_FOUND:INTERNAL=1" in open(os.path.join(build, "CMakeCache.txt")).read()
check(not names or any(s.get("frame", s).get("function") == "quicksort" for s in profile["sites"]), "a site is in quicksort")
check("CPU time" in profile["clock"], "the profile has its clock")
check(with_address(profile) >= 0.98, "%g of the samples have an address" % with_address(profile))

# Code that the program makes: named by its own description of it, else after the program.
build_program("cc", "-O2", os.path.join(source, "tests/watched/made_code.c"), "-o", "made_code")
for arguments, expected in ([], ("made_code JIT code", "", 0)), (["map"], ("walk_made", "/srv/app/walk.js", 17)):
    profile = watch_until(lambda p: samples_of(p) >= 10, ["./made_code", *arguments])
    check(samples_of(profile) >= 10, "made code: %g samples" % samples_of(profile))
    most = max(profile["sites"], key=lambda site: site["accesses"])
    found = most.get("function", ""), most.get("file", ""), most.get("line", 0)
    check(found == expected, "made code %s: %s" % (arguments, found))
    for process in profile["processes"]:
        if os.path.exists("/tmp/perf-%d.map" % process["pid"]):
            os.unlink("/tmp/perf-%d.map" % process["pid"])

# Threads, processes, other libraries.
threads = os.path.join(build, "examples", "threads")
check(watch([threads])[0].stdout == run([threads]).stdout, "threads")
script = "import os\nprint(sum(i * i for i in range(300000)))\npid = os.fork()\nif pid == 0: os._exit(3)\nprint(os.waitpid(pid, 0)[1])"
check(watch(["python3", "-c", script])[0].stdout == run(["python3", "-c", script]).stdout, "python and fork")

# Programs that make it hard. What each prints, and its status, must be the same.
c_flags = ["-O1", "-g", "-w"]
hardships = os.path.join(source, "tests/watched/hardships.c")
build_program("cc", *c_flags, hardships, "-o", "hardships", "-lpthread", "-ldl")
open(os.path.join(directory, "later.c"), "w").write(
    "static unsigned t[1 << 14]; unsigned loaded_later(int n) { unsigned s = 0, a = 1; for (int r = 0; r < n; r++)\n"
    "for (int i = 0; i < 10000; i++) { a = a * 1103515245 + 12345; s += t[a >> 18] += a; } return s; }\n")
build_program("cc", *c_flags, "-shared", "-fPIC", "later.c", "-o", "later.so")
for which in ["small-stack", "own-signal-stack", "masks", "masked-thread", "children", "threads", "restricted",
              "restricted-prctl", "filters-a-child", "closes-files", "timers", "loads", "exclusives", "own-watchpoints",
              "traces", "becomes", "stops", "signals"]:
    functions_of = lambda p: [s.get("frame", s).get("function") for s in p["sites"]]
    is_named = lambda p: which != "loads" or not names or "loaded_later" in functions_of(p)
    has_samples = lambda p: which == "filters-a-child" or samples_of(p) > 2
    profile = watch_until(lambda p: has_samples(p) and is_named(p), ["./hardships", which, "./later.so"], "--every", "100us",
                          "--overhead", "40%")
    check(has_samples(profile), "%s: %d samples" % (which, samples_of(profile)))
    check(is_named(profile), "code loaded later has a name: %s" % profile["notes"])

# Blocks of the heap are told by where they were allocated, in C and in C++, whoever brought the allocator.
heap = os.path.join(source, "tests/watched/heap.cpp")
build_program("c++", "-O1", "-g", heap, "-o", "heap")
build_program("c++", "-O1", "-shared", "-fPIC", "-DPLUGIN", heap, "-o", "plugin.so")
for which, makers in {"malloc": ["make_table", "make_vector", "make_larger"], "pages": ["make_pages", "make_larger_pages"],
                      "reuse": ["second_owner"], "many": ["make_one_large"]}.items():
    # A third of the accesses is to each block of "malloc": with 60 samples none is left out but once in 10^10 runs.
    profile = watch_until(lambda p: samples_of(p) >= 60, ["./heap", which], "--every", "200us", "--overhead", "30%")
    blocks = json.dumps([(o["name"], o["accesses"]) for o in profile["objects"] if o.get("kind") == ("mapped" if which == "pages" else "heap")])
    for maker in makers if names else []:
        check(maker in blocks, "%s: %s is missing in %s of %d samples" % (which, maker, blocks, samples_of(profile)))
    nowhere = sum(o["accesses"] for o in profile["objects"] if o.get("kind") == "other")
    check(nowhere < 0.3 * profile["accesses"], "%s: %g accesses to no block that is known" % (which, nowhere))
    # It is told by samples in first_owner itself, which fills the block before it is freed, and by no others.
    first = sum(o["accesses"] for o in profile["objects"] if "first_owner" in o["name"])
    check(first < 0.02 * profile["accesses"], "a freed block is told as its successor's: " + blocks)
# Data of mapped files by the file, also where only a middle part is mapped, and memory that was never in a file by who mapped it.
open(os.path.join(directory, "mapped.c"), "w").write(
    "#include <fcntl.h>\n#include <stdio.h>\n#include <sys/mman.h>\n#include <unistd.h>\nenum { kBytes = 1 << 18 };\n"
    "static unsigned *part(const char *path, int flags, int at) { int file = open(path, O_RDWR | O_CREAT, 0600); ftruncate(file, at + kBytes);\n"
    "return mmap(0, kBytes, PROT_READ | PROT_WRITE, flags, file, at); }\n"
    "__attribute__((noinline)) static unsigned work(unsigned *words) { unsigned sum = 0, at = 1; for (int i = 0; i < 60000000; i++) {\n"
    "at = at * 1103515245 + 12345; sum += words[at >> 16] += at; } return sum; }\n"
    "int main(void) { unsigned *shared = part(\"data.bin\", MAP_SHARED, 0), *own = part(\"own.bin\", MAP_PRIVATE, 1 << 20);\n"
    "unsigned *both = mmap(0, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0); unlink(\"own.bin\");\n"
    "printf(\"%u\\n\", work(shared) + work(own) + work(both)); unlink(\"data.bin\"); return 0; }\n")
build_program("cc", "-O1", "-g", "-w", "mapped.c", "-o", "mapped")


def check_mapped(program, third):
    """A third of the accesses is to each."""
    profile = watch_until(lambda p: samples_of(p) >= 60, [program], "--every", "200us", "--overhead", "30%")
    named = [(o["kind"] + " " + o["name"], o["accesses"] / profile["accesses"]) for o in profile.get("objects", [])]
    for wanted in ["file data.bin", "file own.bin", third]:
        share = sum(share for name, share in named if name.startswith(wanted))
        check(share > 0.15, "%s, %s: %s of %d samples" % (program, wanted, named, samples_of(profile)))


check_mapped("./mapped", "mapped main" if names else "mapped")
# operator new of a library that was loaded for a plug-in alone, in a program in C
open(os.path.join(directory, "loader.c"), "w").write(
    "#include <dlfcn.h>\n#include <stdio.h>\nint main(void) { void* l = dlopen(\"./plugin.so\", RTLD_NOW | RTLD_LOCAL);\n"
    "int (*f)(void) = l ? (int (*)(void))dlsym(l, \"plugged_in\") : 0; printf(\"%d\\n\", f ? f() : -1); return 0; }\n")
build_program("cc", "-O1", "loader.c", "-o", "loader", "-ldl")
check(watch(["./loader"])[0].stdout == run(["./loader"]).stdout == "499500\n", "operator new of a plug-in")

# Threads that end before a period is over: together they are the program.
open(os.path.join(directory, "brief.c"), "w").write(
    "#include <pthread.h>\n#include <stdio.h>\nstatic unsigned t[1 << 14]; static void *brief(void *a) {\n"
    "unsigned s = 1; for (int i = 0; i < 280000; i++) { s = s * 1103515245 + 12345; t[s >> 18] += s; } return a; }\n"
    "int main(void) { for (int i = 0; i < 400; i++) { pthread_t one; pthread_create(&one, 0, brief, 0); pthread_join(one, 0); }\n"
    "printf(\"%u\\n\", t[5]); return 0; }\n")
build_program("cc", "-O1", "-g", "brief.c", "-o", "brief", "-lpthread")
profile = watch_until(lambda p: samples_of(p) >= 20, ["./brief"], "--overhead", "40%")
check(samples_of(profile) >= 20, "threads that end within a period: %d samples" % samples_of(profile))
inside = sum(s["accesses"] for s in profile.get("sites", []) if s.get("frame", s).get("function") == "brief")
check(not names or inside > 0.4 * profile["accesses"], "threads that end within a period: %g of %g" % (inside, profile["accesses"]))
check(1 / 4 < profile["accesses"] / (400 * 560000) < 4, "threads that end within a period: %g accesses" % profile["accesses"])

# With no method named it is watched, and says when that was too little; what samples cannot tell is counted.
got = run([revisit, "profile", "-o", "auto.json", "--", example, "3000", "it's"])
profile = json.load(open(os.path.join(directory, "auto.json")))
check(profile["method"] == "watch" and "every access: revisit profile --method exact -- %s 3000 'it'\\''s'" % example in got.stderr, "auto: " + got.stderr)
if findings["any binary"]["works"]:
    for option in [["--granularity", "256"], ["--via", "valgrind"], ["--max-accesses", "100000"]]:
        run([revisit, "profile", "--quiet", "-o", "auto.json", *option, "--", example, "3000"])
        check(json.load(open(os.path.join(directory, "auto.json")))["method"] == "exact", "auto with " + option[0])
check("watch for all others" in findings["auto"]["detail"], "doctor: " + findings["auto"]["detail"])

# Where the kernel refuses: the best that is left, and the profile says so.
def watch_where(pretended, command, *options):
    got = run([revisit, "profile", "--method", "watch", "--quiet", "-o", "p.json", *options, "--", *command],
              env={**os.environ, "REVISIT_PRETEND": pretended})
    return got, json.load(open(os.path.join(directory, "p.json"))) if got.returncode != 2 else None


plain = run([example, "3000000"])
for pretended, says in {"no-watchpoints": ["no watchpoint could be set"],
                        "no-events": ["no watchpoint could be set", "a 4 ms timer"]}.items():
    for _ in range(3):  # as in watch_until
        got, profile = watch_where(pretended, [example, "3000000"], "--overhead", "30%")
        check((got.stdout, got.returncode) == (plain.stdout, 0), pretended + ": " + got.stdout + got.stderr)
        if samples_of(profile) >= 10 and profile["reuse"]["cold"] > 0:
            break
    notes = " ".join(profile["notes"])
    check(all(what in notes for what in says), pretended + ": " + notes)
    check(samples_of(profile) >= 10 and profile["reuse"]["cold"] > 0, pretended + ": samples")
    check(" by watchpoint" in notes and " 0 by watchpoint" in notes, pretended + ": " + notes)
    got, _ = watch_where(pretended, [threads])
    check(got.stdout == run([threads]).stdout, pretended + ": threads")
    for which in ["masks", "masked-thread", "children", "timers"]:
        got, _ = watch_where(pretended, ["./hardships", which], "--overhead", "30%")
        check(got.stdout == run(["./hardships", which]).stdout, pretended + ", " + which + ": " + got.stdout + got.stderr)
# A static program is sampled like any other, and so is a script whose interpreter is static.
open(os.path.join(directory, "empty.c"), "w").write("int main(void) { return 0; }\n")
if run(["cc", "-static", "empty.c", "-o", "empty"]).returncode != 0:
    print("no static C library here: static programs are not tested")
else:
    build_program("cc", *c_flags, "-static", hardships, "-o", "static", "-lpthread")
    build_program("cc", "-O1", "-g", "-w", "-static", "mapped.c", "-o", "static-mapped")
    check_mapped("./static-mapped", "mapped shared memory")
    for which in ["masks", "masked-thread", "children", "threads", "own-signal-stack", "restricted"]:
        profile = watch_until(lambda p: samples_of(p) > 2, ["./static", which], "--every", "100us", "--overhead", "40%")
        check(samples_of(profile) > 2, "static, %s: %d samples" % (which, samples_of(profile)))
    open(os.path.join(directory, "script"), "w").write("#!%s/static masks\n" % directory)
    os.chmod(os.path.join(directory, "script"), 0o755)
    profile = watch_until(lambda p: samples_of(p) > 2, ["./script"], "--every", "100us", "--overhead", "40%")
    check(samples_of(profile) > 2, "a script whose interpreter is static: %d samples" % samples_of(profile))

# A tree of processes is one file, and what did the work leads.
before = set(os.listdir(directory))
worker_of = lambda p: next(one for one in p["processes"] if one["command"][:1] == [example])
profile = watch_until(lambda p: worker_of(p)["samples"] > 0,
                      ["sh", "-c", "for i in 1 2 3 4 5 6 7 8; do /bin/true; done; env %s 3000000; true" % example])
check(set(os.listdir(directory)) <= before | {"p.json"}, "one file: %s" % (set(os.listdir(directory)) - before))
check(profile["command"][0] == example, "leading: %s" % profile["command"])
names_of = [os.path.basename(p["command"][0]) for p in profile["processes"] if p["command"]]
check("sh" in names_of and names_of.count("true") == 8 and "quicksort" in names_of, "processes: %s" % names_of)
worker = worker_of(profile)
check(worker["samples"] > 0 and worker["seconds"] > 0.05 and worker["accesses"] > 1e6, "worker: %s" % worker)

# Attaching: the program goes on untouched, and what cannot be attached to is one line. It runs until it is killed, and
# nothing is asked of it before it has come to its loop.
open(os.path.join(directory, "endless.c"), "w").write(
    "#include <stdio.h>\n#include <unistd.h>\nstatic unsigned t[1 << 18]; int main(void) { unsigned a = 1; alarm(1200); puts(\"runs\");\n"
    "fflush(stdout); for (;;) { a = a * 1103515245 + 12345; t[a >> 14] += a; } }\n")
build_program("cc", "-O1", "endless.c", "-o", "endless")
running = subprocess.Popen(["./endless"], cwd=directory, stdout=subprocess.PIPE, text=True)
check(running.stdout.readline() == "runs\n", "it has begun")


def tracer():
    status = open("/proc/%d/status" % running.pid).read()
    return int(status.split("TracerPid:")[1].split()[0])


def attach(output, *options):
    attached = subprocess.Popen([revisit, "profile", "--quiet", "-o", output, *options, "--pid", str(running.pid)], cwd=directory)
    wait_until(lambda: tracer() == attached.pid or attached.poll() is not None, "attached")
    return attached


for _ in range(3):  # a busy machine may give the sampler too little of its second
    got = run([revisit, "profile", "--quiet", "-o", "attached.json", "--duration", "1s", "--pid", str(running.pid)])
    check(got.returncode == 0, "attached: " + got.stderr)
    profile = json.load(open(os.path.join(directory, "attached.json")))
    if samples_of(profile) > 5:
        break
check(samples_of(profile) > 5, "attached: %d samples" % samples_of(profile))
check(running.poll() is None and tracer() == 0, "it goes on")
attached = attach("attached.json")
got = run([revisit, "profile", "--quiet", "-o", "other.json", "--pid", str(running.pid)])
check(got.returncode == 2 and "is traced by process %d" % attached.pid in got.stderr and got.stderr.count("\n") == 1, "twice: " + got.stderr)
attached.send_signal(signal.SIGINT)
check(attached.wait(PATIENCE) == 0, "Ctrl-C ends it")
attached = attach("killed.json", "--every", "50us", "--overhead", "90%")
time.sleep(0.5)  # so that it is killed amid samples; any moment will do
attached.kill()
attached.wait()
wait_until(lambda: tracer() == 0, "it is let go when the sampler is killed")
check(running.poll() is None, "it outlives a sampler that was killed")
running.kill()
running.wait()
check(not os.path.exists(os.path.join(directory, "killed.json")), "no half a profile")
got = run([revisit, "profile", "--pid", "4194303"])
check(got.returncode == 2 and "no process has the number" in got.stderr and got.stderr.count("\n") == 1, "no process: " + got.stderr)
got, _ = watch(["true"], "--granularity", "4")
check(got.returncode == 2 and "expected 8, 16, 32, 64 or 128" in got.stderr and got.stderr.count("\n") == 1, "granularity")
for granularity in ["8", "16", "32", "128"]:
    profile = watch_until(lambda p: samples_of(p) > 5, [example, "3000000"], "--granularity", granularity, "--overhead", "30%")
    check(profile["granularity"] == int(granularity) and samples_of(profile) > 5, "granularity " + granularity)
print("passed")
