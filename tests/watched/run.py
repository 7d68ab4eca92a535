#!/usr/bin/env python3
"""Programs profiled by watchpoints: they must not notice, and what is said about them must hold together.
usage: run.py BUILD SOURCE"""
import json, os, subprocess, sys, tempfile

build, source = sys.argv[1:3]
revisit = os.path.join(build, "revisit")
directory = tempfile.mkdtemp(prefix="revisit-watched-")


def run(command, **more):
    return subprocess.run(command, capture_output=True, text=True, cwd=directory, timeout=120, **more)


def watch(command, *options):
    got = run([revisit, "profile", "--method", "watch", "--quiet", "-o", "p.json", *options, "--", *command])
    profile = json.load(open(os.path.join(directory, "p.json"))) if got.returncode != 2 else None
    return got, profile


def check(condition, what):
    if not condition:
        print("failed:", what)
        sys.exit(1)


findings = {f["subject"]: f for f in json.loads(run([revisit, "doctor", "--json"]).stdout)["findings"]}
got, _ = watch(["true"])
if "built without its sampler" in got.stderr:
    check(got.returncode == 2 and got.stderr.count("\n") == 1, "one line and status 2 where it cannot work")
    print("no sampler here:", got.stderr)
    sys.exit(77)
if not findings["watchpoints"]["works"]:
    print("no watchpoints here:", findings["watchpoints"]["detail"])
    sys.exit(77)

# The program's output and status are its own.
example = os.path.join(build, "examples", "quicksort")
plain = run([example, "3000000"])
got, profile = watch([example, "3000000"], "--every", "200us", "--overhead", "30%")
check(got.stdout == plain.stdout and got.stderr == plain.stderr and got.returncode == 0, "output is the program's")
check(watch(["sh", "-c", "exit 7"])[0].returncode == 7, "status is the program's")
check(watch(["sh", "-c", "kill -SEGV $$"])[0].returncode == 139, "a fault stays one")

# A profile whose parts agree.
check(profile["method"] == "watch" and profile["granularity"] == 8, "method and granularity")
samples = profile["sampled"]["samples"]
check(samples >= 20, "samples: %g" % samples)
total = profile["reuse"]["cold"] + sum(b[2] for b in profile["reuse"]["bins"])
check(abs(total - profile["accesses"]) <= 1e-6 * total, "bins sum to the accesses")
check(abs(sum(s["accesses"] for s in profile["sites"]) - total) <= 1e-3 * total, "sites sum to the accesses")
names = "libdw_FOUND:INTERNAL=1" in open(os.path.join(build, "CMakeCache.txt")).read()
check(not names or any(s.get("frame", s).get("function") == "quicksort" for s in profile["sites"]), "a site is in quicksort")
check("processor time" in profile["clock"], "the clock is told")
note = next(n for n in profile["notes"] if "with an address" in n)
words = note.split()
check(int(words[3]) >= 0.98 * int(words[1]), note)

# Threads, processes, other libraries.
threads = os.path.join(build, "examples", "threads")
check(watch([threads])[0].stdout == run([threads]).stdout, "threads")
script = "import os\nprint(sum(i * i for i in range(300000)))\npid = os.fork()\nif pid == 0: os._exit(3)\nprint(os.waitpid(pid, 0)[1])"
check(watch(["python3", "-c", script])[0].stdout == run(["python3", "-c", script]).stdout, "python and fork")

# Programs that make it hard. What each prints, and its status, must be the same.
c_flags = ["-O1", "-g", "-w"]
hard = run(["cc", *c_flags, os.path.join(source, "tests/watched/hardships.c"), "-o", "hardships", "-lpthread", "-ldl"])
open(os.path.join(directory, "later.c"), "w").write(
    "static unsigned t[1 << 14]; unsigned loaded_later(int n) { unsigned s = 0, a = 1; for (int r = 0; r < n; r++)\n"
    "for (int i = 0; i < 10000; i++) { a = a * 1103515245 + 12345; s += t[a >> 18] += a; } return s; }\n")
if hard.returncode == 0 and run(["cc", *c_flags, "-shared", "-fPIC", "later.c", "-o", "later.so"]).returncode == 0:
    for which in ["small-stack", "own-signal-stack", "masks", "masked-thread", "children", "threads", "restricted",
                  "restricted-prctl", "closes-files", "timers", "loads"]:
        command = ["./hardships", which, "./later.so"]
        plain = run(command)
        got, profile = watch(command, "--every", "100us", "--overhead", "40%")
        check((got.stdout, got.returncode) == (plain.stdout, plain.returncode),
              "%s: %s %d instead of %s %d, %s" % (which, got.stdout, got.returncode, plain.stdout, plain.returncode, got.stderr))
        notes = " ".join(profile["notes"])
        if which.startswith("restricted"):
            check("(seccomp): sampling ended there" in notes, which + ": " + notes)
        if which == "loads":
            functions = [s.get("frame", s).get("function") for s in profile["sites"]]
            check(not names or "loaded_later" in functions, "code loaded later has a name, not %s; %s" % (functions, notes))

# Blocks of the heap are told by where they were allocated, in C and in C++, whoever brought the allocator.
heap = run(["c++", "-O1", "-g", os.path.join(source, "tests/watched/heap.cpp"), "-o", "heap"])
plugin = run(["c++", "-O1", "-shared", "-fPIC", "-DPLUGIN", os.path.join(source, "tests/watched/heap.cpp"), "-o", "plugin.so"])
if heap.returncode == 0 and plugin.returncode == 0:
    for which, makers in {"malloc": ["make_table", "make_vector", "make_larger"], "pages": ["make_pages", "make_larger_pages"],
                          "reuse": ["second_owner"], "many": ["make_one_large"]}.items():
        plain = run(["./heap", which])
        got, profile = watch(["./heap", which], "--every", "200us", "--overhead", "30%")
        check(got.stdout == plain.stdout, "heap %s: %s%s" % (which, got.stdout, got.stderr))
        blocks = json.dumps([o for o in profile["objects"] if o.get("kind") == "heap"])
        for maker in makers if names else []:
            check(maker in blocks, "%s: %s is missing in %s" % (which, maker, blocks))
        check("first_owner" not in blocks, "a freed block is told as its successor's: " + blocks)
    # operator new of a library that was loaded for a plug-in alone, in a program in C
    open(os.path.join(directory, "loader.c"), "w").write(
        "#include <dlfcn.h>\n#include <stdio.h>\nint main(void) { void* l = dlopen(\"./plugin.so\", RTLD_NOW | RTLD_LOCAL);\n"
        "int (*f)(void) = l ? (int (*)(void))dlsym(l, \"plugged_in\") : 0; printf(\"%d\\n\", f ? f() : -1); return 0; }\n")
    if run(["cc", "-O1", "loader.c", "-o", "loader", "-ldl"]).returncode == 0:
        check(watch(["./loader"])[0].stdout == run(["./loader"]).stdout == "499500\n", "operator new of a plug-in")

# With no method named it is watched, and says when that was too little; what samples cannot tell is counted.
got = run([revisit, "profile", "-o", "auto.json", "--", example, "3000", "it's"])
profile = json.load(open(os.path.join(directory, "auto.json")))
check(profile["method"] == "watch" and "every access: revisit profile --method exact -- %s 3000 'it'\\''s'" % example in got.stderr, "auto: " + got.stderr)
if findings["any binary"]["works"]:
    for option in [["--granularity", "64"], ["--via", "valgrind"], ["--max-accesses", "100000"]]:
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
                        "no-events": ["no watchpoint could be set", "a timer that ticks every 4 ms"]}.items():
    got, profile = watch_where(pretended, [example, "3000000"], "--overhead", "30%")
    check((got.stdout, got.returncode) == (plain.stdout, 0), pretended + ": " + got.stdout + got.stderr)
    notes = " ".join(profile["notes"])
    check(all(what in notes for what in says), pretended + ": " + notes)
    check(profile["sampled"]["samples"] >= 10 and profile["reuse"]["cold"] > 0, pretended + ": samples")
    check(" by watchpoint" in notes and " 0 by watchpoint" in notes, pretended + ": " + notes)
    got, _ = watch_where(pretended, [threads])
    check(got.stdout == run([threads]).stdout, pretended + ": threads")
    for which in ["masks", "masked-thread", "children", "timers"] if hard.returncode == 0 else []:
        got, _ = watch_where(pretended, ["./hardships", which], "--overhead", "30%")
        check(got.stdout == run(["./hardships", which]).stdout, pretended + ", " + which + ": " + got.stdout + got.stderr)
# Samples with an address from the kernel's ring, as precise events would give them: of page faults, which every machine has.
got, profile = watch_where("no-pmu-but-faults", [example, "3000000"], "--overhead", "50%")
check((got.stdout, got.returncode) == (plain.stdout, 0), "faults: " + got.stdout + got.stderr)
note = next(n for n in profile["notes"] if "with an address" in n)
check(int(note.split()[1]) == int(note.split()[3]) >= 20, "faults: " + note)
check(profile["reuse"]["bins"], "faults: " + note)
got, _ = watch(["true"], "--source", "pmu")
if not any(findings[name]["works"] for name in ["Intel PEBS", "AMD IBS", "Arm MEM_ACCESS"]):
    check(got.returncode == 2 and "no precise events work here" in got.stderr and got.stderr.count("\n") == 1, "--source pmu: " + got.stderr)
check(watch(["true"], "--source", "look-ahead")[0].returncode == 0, "--source look-ahead")

# A program that begins under a filter which the analyzer does not have is left alone: nothing is tried that may kill it.
if hard.returncode == 0:
    got, profile = watch(["./hardships", "filters-a-child"])
    check((got.stdout, got.returncode) == (run(["./hardships", "filters-a-child"]).stdout, 0), "filtered child: " + got.stdout + got.stderr)

# What cannot be sampled is told in one line.
open(os.path.join(directory, "static.c"), "w").write("int main(void) { return 0; }\n")
if run(["cc", "-static", "static.c", "-o", "static"]).returncode == 0:
    got, _ = watch(["./static"])
    check(got.returncode == 2 and "linked statically" in got.stderr and got.stderr.count("\n") == 1, "static program")
    line = run([revisit, "doctor", "--static-link"]).stdout.split()
    linked = run(["cc", *c_flags, "-static", os.path.join(source, "tests/watched/hardships.c"), *line, "-o", "linked", "-lpthread"])
    check(linked.returncode == 0, "linking it in: " + linked.stderr)
    for which in ["masks", "masked-thread", "children", "threads", "own-signal-stack", "restricted"]:
        plain = run(["./linked", which])
        got, profile = watch(["./linked", which], "--every", "100us", "--overhead", "40%")
        check((got.stdout, got.returncode) == (plain.stdout, plain.returncode), "static, %s: %s" % (which, got.stdout + got.stderr))
        check(profile["sampled"]["samples"] > 2, "static, %s: %d samples" % (which, profile["sampled"]["samples"]))
    open(os.path.join(directory, "script"), "w").write("#!%s/static\n" % directory)
    os.chmod(os.path.join(directory, "script"), 0o755)
    got, _ = watch(["./script"])
    check(got.returncode == 2 and "static: is linked statically" in got.stderr and got.stderr.count("\n") == 1,
          "a script whose interpreter is static")
if os.geteuid() == 0 and run(["cc", "static.c", "-o", "other"]).returncode == 0:
    os.chown(os.path.join(directory, "other"), 65534, 65534)
    os.chmod(os.path.join(directory, "other"), 0o4755)
    got, _ = watch(["./other"])
    check(got.returncode == 2 and "rights of another user" in got.stderr and got.stderr.count("\n") == 1, "set-user-id")
got = run([revisit, "profile", "--method", "watch", "-p", "1"])
check(got.returncode == 2 and "runs already" in got.stderr and got.stderr.count("\n") == 1, "attaching: " + got.stderr)
got, _ = watch(["true"], "--granularity", "4")
check(got.returncode == 2 and "power of two from 8 up" in got.stderr, "granularity")
print("passed")
