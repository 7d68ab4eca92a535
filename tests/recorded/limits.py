#!/usr/bin/env python3
"""An endless program, ended in every way there is: each leaves a profile or one line, and nothing that runs on.

    limits.py BUILD RECORDER
"""
import json, os, pathlib, pty, signal, subprocess, sys, tempfile, time

build, recorder = pathlib.Path(sys.argv[1]).resolve(), sys.argv[2]
PATIENCE = 120
scratch = tempfile.TemporaryDirectory()
folder = pathlib.Path(scratch.name)
failures = []

SOURCE = """
#include <signal.h>
#include <string.h>
#include <unistd.h>
int main(int count, char** word) {
    volatile int x = 0;
    if (count > 1 && !strcmp(word[1], "deaf")) signal(SIGTERM, SIG_IGN);
    if (count > 1 && !strcmp(word[1], "parent")) fork();
    for (;;) x++;
}
"""


def check(what, seen, expected):
    if seen != expected:
        failures.append(f"{what}: {seen!r}, expected {expected!r}")


def left_behind():
    """Processes that still run in our folder."""
    found = []
    for process in pathlib.Path("/proc").iterdir():
        if process.name.isdigit():
            try:
                if os.readlink(process / "cwd") == str(folder) and (process / "stat").read_text().split(")")[-1].split()[0] != "Z":
                    found.append(int(process.name))
            except OSError:
                pass
    return found


def start(*words, command="profile", **options):
    return subprocess.Popen([build / "revisit", command, "--quiet", "--via", recorder, *words], cwd=folder, text=True,
                            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options)


def seconds_used(pid):
    words = pathlib.Path(f"/proc/{pid}/stat").read_text().split(")")[-1].split()
    return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")


def program_of(revisit, longer=1):
    """The recorded program, once it has run a while and its accesses are being counted: by their own clocks, the machine
    may be busy.

    Counting takes longer than running, so that the program waits for it from then on. What it ran by its own clock
    says little: half a second under valgrind was six of counting."""
    until, since = time.monotonic() + PATIENCE, {}
    while time.monotonic() < until:
        for pid in left_behind():
            if pid != revisit.pid and os.path.exists(f"/proc/{pid}/maps"):
                if "revisit-stream" in pathlib.Path(f"/proc/{pid}/maps").read_text():
                    counted = seconds_used(revisit.pid) - since.setdefault(pid, seconds_used(revisit.pid))
                    if counted >= longer * 0.6:
                        return pid
        time.sleep(0.02)
    sys.exit("the program was never started")


def end(what, revisit, expected, profiled=True, has_begun=True):
    try:
        out, err = revisit.communicate(timeout=PATIENCE)
    except subprocess.TimeoutExpired:
        for pid in left_behind():
            os.kill(pid, signal.SIGKILL)
        sys.exit(f"{what}: still runs after {PATIENCE} s")
    check(f"{what}: status", revisit.returncode, expected)
    until = time.monotonic() + PATIENCE / 4
    while left_behind() and time.monotonic() < until:
        time.sleep(0.02)
    check(f"{what}: left behind", left_behind(), [])
    for pid in left_behind():
        os.kill(pid, signal.SIGKILL)
    if profiled:
        result = json.loads((folder / "p.json").read_text())
        (folder / "p.json").unlink()
        if has_begun:
            check(f"{what}: has accesses", result["accesses"] > 0, True)
        return result
    check(f"{what}: files", sorted(path.name for path in folder.iterdir()), ["loop", "loop.c"])
    return err


def ended_by(what, end_it, expected):
    """A run that is ended once it has run a while. Time that the host of a virtual machine takes counts as the
    program's, so that it may not have begun by then: the next tries wait longer."""
    for longer, is_last in (1, False), (6, False), (30, True):
        revisit = start("-o", "p.json", "--", "./loop")
        end_it(revisit, program_of(revisit, longer))
        if end(what, revisit, expected, has_begun=is_last)["accesses"] > 0:
            return


(folder / "loop.c").write_text(SOURCE)
compiler = str(build / "revisit-clang") if recorder == "clang" else "cc"
subprocess.run([compiler, "-O1", "-g", "loop.c", "-o", "loop"], cwd=folder, check=True)
if recorder == "valgrind":
    tried = subprocess.run([build / "revisit", "profile", "--via", "valgrind", "--quiet", "-o", "p.json", "--", "/bin/true"], cwd=folder,
                           capture_output=True, text=True)
    if tried.returncode:
        print(tried.stderr)
        sys.exit(77)
    (folder / "p.json").unlink()

result = end("--max-accesses", start("--max-accesses", "1M", "-o", "p.json", "--", "./loop"), 0)
# An access that spans two lines counts in each.
check("--max-accesses: accesses", 1000000 <= result["accesses"] < 1001000, True)
for deaf in (), ("deaf",):
    # On a busy machine the program may take longer than this to start under its recorder.
    for duration, is_last in ("500ms", False), ("3s", False), ("20s", True):
        result = end(" ".join(("--duration", *deaf)), start("--duration", duration, "-o", "p.json", "--", "./loop", *deaf), 0, has_begun=is_last)
        if result["accesses"] > 0:
            break
end("--max-accesses, two processes",
    start("--follow", "--max-accesses", "1M", "-o", "p.json", "--", "./loop", "parent"), 0)

for number, status in (signal.SIGINT, 130), (signal.SIGTERM, 143):
    ended_by(f"signal {number} to revisit", lambda revisit, program: revisit.send_signal(number), status)

ended_by("program killed", lambda revisit, program: os.kill(program, signal.SIGKILL), 137)

revisit = start("--max-accesses", "1e15", "-o", "p.json", "--", "./loop")
program_of(revisit)
revisit.kill()
end("analyzer killed, limit set", revisit, -9, profiled=False)

revisit = start("-o", "p.json", "--", "./loop")
program = program_of(revisit)
revisit.kill()
time.sleep(0.5)
check("analyzer killed: the program runs on", left_behind(), [program])
os.kill(program, signal.SIGTERM)
end("analyzer killed", revisit, -9, profiled=False)

for limit in ("--max-accesses", "1e15"), ("--duration", "2s"):
    error = end(f"disk full, {limit[0]}", start(*limit, "-o", "/dev/full", "--", "./loop", command="record"), 2, profiled=False)
    check("disk full: lines", (error.count("\n"), "No space left" in error), (1, True))

# Ctrl-C in a terminal reaches both. Where no terminal can be opened, the group gets what one would send.
command = ["revisit", "profile", "--quiet", "--via", recorder, "-o", "p.json", "--", "./loop"]


class OnTerminal:
    returncode = None

    def __init__(self):
        try:
            self.pid, self.terminal = pty.fork()
        except OSError:
            self.pid, self.terminal = os.fork(), None
            if self.pid == 0:
                os.setsid()
        if self.pid == 0:
            os.chdir(folder)
            os.execv(build / "revisit", command)

    def interrupt(self):
        if self.terminal is None:
            os.killpg(self.pid, signal.SIGINT)
        else:
            os.write(self.terminal, b"\x03")

    def communicate(self, timeout):
        until = time.monotonic() + timeout
        while time.monotonic() < until:
            done, status = os.waitpid(self.pid, os.WNOHANG)
            if done:
                self.returncode = os.waitstatus_to_exitcode(status)
                return "", ""
            time.sleep(0.02)
        raise subprocess.TimeoutExpired("revisit", timeout)


revisit = OnTerminal()
program_of(revisit)
revisit.interrupt()
end("Ctrl-C", revisit, 130)

print("\n".join(failures) or "all ended")
sys.exit(bool(failures))
