#!/usr/bin/env python3
"""What the command survives: pipes, Ctrl-C, traces larger than its memory, files that shrink under it.

    survive_check.py BUILD
"""
import json, os, pathlib, random, resource, signal, struct, subprocess, sys, tempfile, time

program = pathlib.Path(sys.argv[1]).resolve() / "revisit"
MIB = 1 << 20


def check(condition, what):
    if not condition:
        sys.exit(f"survive_check: {what}")


def analyze(*arguments, **more):
    return subprocess.run([program, "analyze", "--quiet", "--json", *arguments], capture_output=True, **more)


def profile_of(done, what):
    check(done.returncode == 0, f"{what}: status {done.returncode}: {done.stderr.decode()}")
    return json.loads(done.stdout)


def pipes(folder):
    """A pipe in uneven pieces gives what the file gives, packed or not."""
    plain = folder / "t.u64"
    numbers = random.Random(1)
    plain.write_bytes(struct.pack("<300000Q", *(numbers.randrange(1 << 22) for _ in range(300000))))
    for name in ("t.u64", "t.records", "t.rvt", "t.csv", "t.u64.zst", "t.csv.gz"):
        path = folder / name
        if path != plain and subprocess.run([program, "convert", "--quiet", plain, path],
                                            stdout=subprocess.DEVNULL).returncode != 0:
            continue
        kind = ["--format", name.split(".")[1].replace("rvt", "revisit")]
        expected = profile_of(analyze(*kind, path), name)
        for threads in "1", "2":
            child = subprocess.Popen([program, "analyze", "--quiet", "--json", "--threads", threads, *kind, "-"],
                                     stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            data = path.read_bytes()
            for at in range(0, len(data), 77777):
                child.stdin.write(data[at:at + 77777])
            out, err = child.communicate()
            check(child.returncode == 0, f"{name} through a pipe: {err.decode()}")
            check(json.loads(out)["reuse"] == expected["reuse"], f"{name} through a pipe differs")


def interrupts(folder):
    """Ctrl-C ends it at once, by the signal, and leaves nothing behind."""
    for arguments in (["-"], ["--threads", "2", "-"]):
        place = folder / "interrupted"
        place.mkdir()
        child = subprocess.Popen([program, "analyze", "--quiet", "--format", "u64", "-o", place / "p.json", *arguments],
                                 stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        child.stdin.write(bytes(8 * MIB))  # it has begun, and waits for more
        child.stdin.flush()
        child.send_signal(signal.SIGINT)
        check(child.wait(60) in (-signal.SIGINT, 128 + signal.SIGINT), f"Ctrl-C: status {child.returncode}")
        check(not list(place.iterdir()), "Ctrl-C leaves a file behind")
        place.rmdir()


def larger_than_memory(folder):
    """2 GiB of trace take some MiB of memory."""
    path = folder / "large.u64"
    with open(path, "wb") as file:
        for _ in range(64):
            file.write(struct.pack("<1024Q", *(64 * i for i in range(1024))))
        file.truncate(2 << 30)  # the rest is sparse
    for threads in "1", "2":
        profile = profile_of(analyze("--threads", threads, path), "larger than memory")
        check(profile["accesses"] == 1 << 28 and profile["distinct"] == 1024, "larger than memory: wrong counts")
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss // 1024
    check(peak < 1000, f"larger than memory: {peak} MiB at the peak")


def shrinks(folder):
    """A file that becomes shorter while it is read is status 2 or, if that came too late, the whole profile."""
    path = folder / "shrinks.u64"
    for threads in "1", "2":
        with open(path, "wb") as file:
            file.truncate(512 * MIB)
        child = subprocess.Popen([program, "analyze", "--quiet", "--json", "--threads", threads, path],
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        time.sleep(0.05)
        os.truncate(path, MIB)
        out, err = child.communicate()
        if child.returncode == 0:
            check(json.loads(out)["accesses"] in (64 * MIB, MIB // 8), "shrinks: part of a profile")
        else:
            check(child.returncode == 2, f"shrinks: status {child.returncode}")
            check(len(err.decode().strip().splitlines()) == 1 and str(path) in err.decode(), f"shrinks: {err.decode()}")


with tempfile.TemporaryDirectory() as scratch:
    for test in pipes, interrupts, larger_than_memory, shrinks:
        test(pathlib.Path(scratch))
