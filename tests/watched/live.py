#!/usr/bin/env python3
"""Running programs: `revisit top` sees reuses longer than its interval, and what sampling says about sharing holds.
usage: live.py BUILD SOURCE"""
import json, os, subprocess, sys, tempfile

import check as checked
from check import check

build, source = sys.argv[1:3]
revisit = os.path.join(build, "revisit")
directory = tempfile.mkdtemp(prefix="revisit-live-")


def run(command):
    return checked.run(command, cwd=directory)


def load(name):
    return json.load(open(os.path.join(directory, name)))


findings = {f["subject"]: f for f in json.loads(run([revisit, "doctor", "--json"]).stdout)["findings"]}
if not findings["watchpoints"]["works"] or "ptrace is not permitted" in run([revisit, "profile", "--method", "watch", "-o", "p.json", "--", "true"]).stderr:
    print("no sampling here")
    sys.exit(77)

# A pass takes longer than an interval, and all reuses but those of the stack take a pass.
subprocess.run(["cc", "-O1", "-g", os.path.join(source, "tests/watched/top.c"), "-o", "sweep"], cwd=directory, check=True)
running = subprocess.Popen(["./sweep"], cwd=directory)
try:
    got = run([revisit, "top", "--pid", str(running.pid), "--interval", "10ms", "--duration", "3s", "-o", "top.json"])
    check(got.returncode == 0, "top: " + got.stderr)
    check(running.poll() is None and "TracerPid:\t0" in open("/proc/%d/status" % running.pid).read(), "it goes on")
finally:
    running.kill()
    running.wait()
profile = load("top.json")
screens = got.stdout.count("of accesses miss") + got.stdout.count("too few")
check(screens > 2, f"screens: {screens}")
far = sum(count for low, high, count in profile["reuse"]["bins"] if low >= 1 << 20)
check(far > 0.1 * profile["accesses"], f"a pass apart: {far} of {profile['accesses']}, {profile['reuse']}")
check(profile["line_use"]["used_bytes"] / profile["line_use"]["fetches"] < 4, f"one byte of each line: {profile['line_use']}")
got = run([revisit, "top", "--pid", "4194303"])
check(got.returncode == 2 and got.stderr.count("\n") == 1, "no process: " + got.stderr)

# Counters side by side. Whether two threads run at the same moment is the machine's business: what is said must hold
# together, and nobody is accused where every counter has its line.
program = os.path.join(source, "examples/sharing/counters.c")
for name, flags in [("counters", []), ("mended", ["-DMENDED"])]:
    subprocess.run(["cc", "-std=gnu11", "-O1", "-g", "-fopenmp", *flags, program, "-o", name, "-lpthread"], cwd=directory, check=True)
check(run([revisit, "profile", "--method", "watch", "--quiet", "-o", "shared.json", "--", "./counters", "20000000"]).returncode == 0, "counters")
profile = load("shared.json")
for one in profile.get("sharing", []):
    check(one["writer"]["thread"] != one["victim"]["thread"] and one["writer"]["write"], f"both sides: {one}")
check(sum(one["count"] for one in profile.get("sharing", [])) <= profile["accesses"], "no more than all accesses")
check(run([revisit, "profile", "--method", "watch", "--quiet", "-o", "mended.json", "--", "./mended", "10000000"]).returncode == 0, "mended")
text = run([revisit, "report", "mended.json", "--by", "line"]).stdout
check("a cache line of its own" not in text, "nobody is accused in the mended twin: " + text)
print("passed")
