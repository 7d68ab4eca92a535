#!/usr/bin/env python3
"""Programs whose sharing is hard to record: thousands of threads, ids that are used again, atomics alone, memory
shared by processes, writes by the kernel. They must not notice, and what is said about them must hold together.
usage: sharing.py BUILD SOURCE"""
import json, os, subprocess, sys, tempfile

build, source = sys.argv[1:3]
revisit = os.path.join(build, "revisit")
directory = tempfile.mkdtemp(prefix="revisit-sharing-")
subprocess.run(["cc", "-O1", "-g", "-pthread", os.path.join(source, "tests/recorded/sharing.c"), "-o", "sharing"],
               cwd=directory, check=True)


def check(condition, what):
    if not condition:
        print("failed:", what)
        sys.exit(1)


def profiled(which, *options):
    plain = subprocess.run(["./sharing", which], cwd=directory, capture_output=True, text=True, timeout=60)
    check(plain.returncode == 0, which + " runs")
    got = subprocess.run([revisit, "profile", "--method", "exact", "--via", "valgrind", "--model", "both", "--quiet", *options,
                          "-o", "p.json", "--", "./sharing", which], cwd=directory, capture_output=True, text=True, timeout=120)
    if "valgrind" in got.stderr and got.returncode == 2:
        print(got.stderr)
        sys.exit(77)
    check((got.stdout, got.returncode) == (plain.stdout, 0), f"{which}: {got.stdout}{got.stderr}")
    profile = json.load(open(os.path.join(directory, "p.json")))
    totals = profile["sharing_totals"]
    listed = sum(record["count"] for record in profile.get("sharing", []))
    check(listed + totals["unlisted"] == totals["invalidated"] == profile["reuse"]["invalidated"],
          f"{which}: records sum to the total: {listed}, {totals}, {profile['reuse']['invalidated']}")
    return profile


def of_counters(profile):
    return [record for record in profile.get("sharing", []) if "counters" in record.get("object", "")]


profile = profiled("thousand", "--no-contexts", "--no-pairs")
check(len(profile["threads"]) == 1001, f"a thousand threads: {len(profile['threads'])}")
check(sum(record["count"] for record in of_counters(profile) if record["false_sharing"]) > 1000, "eight threads to a line")

profile = profiled("again")
check(len(profile["threads"]) == 61, f"ids that are used again are new threads: {len(profile['threads'])}")
# Each ends before the next begins: it takes the line once.
taken = sum(record["count"] for record in of_counters(profile))
check(taken <= 200, f"threads that were joined do not run on: {taken} invalidated")

profile = profiled("atomics")
records = of_counters(profile)
check(sum(record["count"] for record in records if record["false_sharing"]) > 1000, "atomics: neighbours are taken")
# At the end main reads what the threads wrote.
check({record["victim"]["function"] for record in records if record["victim"]["thread"] != 0} == {"count_atomically"},
      "atomics: by the line that does it")

profile = profiled("processes")
check(not of_counters(profile), "what another process writes is not another thread's")

profile = profiled("kernel")
by_kernel = [record for record in profile["sharing"] if "mixed" in record.get("object", "") and
             record["victim"].get("function") == "hit" and record["false_sharing"]]
check(sum(record["count"] for record in by_kernel) > 500, "kernel: reading into a buffer takes the line of its neighbour")
check({(b, e) for record in by_kernel for b, e in record["writer"]["bytes"]} == {(0, 32)}, "kernel: all of the buffer is written")
# Counters in one line and a line for each, by both recorders. How often they meet on real cores depends on the machine's load;
# that they do, hundreds of times as often as padded ones, does not.
def counters(kind, via, compiler):
    program = "threads-" + via
    subprocess.run([*compiler, "-O2", "-g", os.path.join(source, "examples/threads.c"), "-o", program, "-pthread"], cwd=directory, check=True)
    got = subprocess.run([revisit, "profile", "--method", "exact", "--via", via, "--model", "both", "--quiet", "-o", "p.json", "--",
                          "./" + program, kind], cwd=directory, capture_output=True, text=True, timeout=120)
    check(got.returncode == 0, f"threads {kind} by {via}: {got.stderr}")
    return json.load(open(os.path.join(directory, "p.json")))["sharing_totals"]["invalidated"]


compilers = {"valgrind": ["cc"]}
if os.path.exists(os.path.join(build, "lib/revisit/revisit-clang.so")):
    compilers["clang"] = [os.path.join(build, "revisit-clang")]
for via, compiler in compilers.items():
    shared, padded = counters("shared", via, compiler), counters("padded", via, compiler)
    check(shared >= 100 * max(padded, 1), f"by {via}: {shared} invalidated where counters share a line, {padded} where they do not")
print("passed")
