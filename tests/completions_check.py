#!/usr/bin/env python3
"""Completions as the shells give them: bash, zsh and fish are run, with the installed scripts.

    completions_check.py BUILD SHELL      status 77: that shell is not installed
"""
import fcntl, os, pathlib, pty, re, select, shutil, struct, subprocess, sys, tempfile, termios, time

build, shell = pathlib.Path(sys.argv[1]).resolve(), sys.argv[2]
if not shutil.which(shell):
    print(f"{shell} is not installed")
    sys.exit(77)
environment = {**os.environ, "PATH": f"{build}:{os.environ['PATH']}", "TERM": "dumb", "HOME": "/nonexistent"}
scripts = {"bash": build / "share/bash-completion/completions/revisit",
           "zsh": build / "share/zsh/site-functions",
           "fish": build / "share/fish/vendor_completions.d/revisit.fish"}
scratch = pathlib.Path(tempfile.mkdtemp())
(scratch / "some-folder").mkdir()
(scratch / "trace.din").write_text("0 10\n")
(scratch / "kernel.c").write_text("#ifdef TILE\n#endif\n#ifndef WIDTH\n#define WIDTH 4\n#endif\nvoid f(void) {}\n")

# What is typed, what must be offered, and what must not.
CASES = [
    ("revisit an", ["analyze"], ["merge"]),
    ("revisit analyze --meth", ["--method"], ["--model"]),
    ("revisit analyze --method ", ["exact", "sample", "shards", "time"], ["watch", "trace.din"]),
    ("revisit profile --method ", ["auto", "watch", "exact"], ["trace.din"]),
    ("revisit predict --method ", ["fit", "simulate"], ["exact"]),
    ("revisit analyze --model ", ["single", "private", "both"], ["exact"]),
    ("revisit convert --to ", ["u64", "csv", "revisit"], ["oracle"]),
    ("revisit report --by ", ["function", "line", "object"], ["trace.din"]),
    ("revisit predict -I ", ["some-folder"], ["trace.din"]),
    ("revisit predict kernel.c -D ", ["TILE=", "WIDTH="], ["trace.din"]),
    ("revisit predict -", ["-D", "-I", "--function"], []),
    ("revisit analyze tr", ["trace.din"], ["--method"]),
]
# A build without LLVM has the command and none of its options. Installed, the program is in bin.
program = build / "revisit" if (build / "revisit").exists() else build / "bin/revisit"
if "is not in this build" in subprocess.run([program, "predict"], capture_output=True, text=True).stderr:
    CASES = [case for case in CASES if "predict" not in case[0]]


def words_of(typed):
    return typed.split(" ")


def bash(typed, _):
    words = words_of(typed)
    quoted = " ".join(f"'{word}'" for word in words)
    script = (f"source {scripts['bash']}; COMP_WORDS=({quoted}); COMP_CWORD={len(words) - 1}; "
              "_revisit; printf '%s\\n' \"${COMPREPLY[@]}\"")
    done = subprocess.run(["bash", "--norc", "-c", script], capture_output=True, text=True, env=environment, cwd=scratch)
    return done.stdout.split("\n")


def fish(typed, _):
    done = subprocess.run(["fish", "--no-config", "-c", f"source {scripts['fish']}; complete -C '{typed}'"],
                          capture_output=True, text=True, env={**environment, "HOME": str(scratch)}, cwd=scratch)
    return [line.split("\t")[0].rstrip("/") for line in done.stdout.splitlines()]


class Zsh:
    """An interactive zsh on a terminal of its own: completion works in no other."""

    def __init__(self):
        child, self.terminal = pty.fork()
        if child == 0:
            os.chdir(scratch)
            os.execvpe("zsh", ["zsh", "-f", "-i"], {**environment, "TERM": "xterm"})
        fcntl.ioctl(self.terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 400, 200, 0, 0))
        self.say("PS1='> '; unset zle_bracketed_paste; LISTMAX=10000; setopt no_beep no_auto_menu auto_list\r")
        self.say(f"fpath=({scripts['zsh']} $fpath); autoload -Uz compinit; compinit -u -D; print ready-$((1+1))\r")
        seen = ""
        for _ in range(60):
            seen += self.read(0.5)
            if "ready-2" in seen:
                return
        sys.exit(f"zsh did not start: {seen[-300:]}")

    def say(self, text):
        os.write(self.terminal, text.encode())

    def read(self, quiet=1.0):
        seen, last = b"", time.monotonic()
        while time.monotonic() - last < quiet:
            if select.select([self.terminal], [], [], 0.1)[0]:
                seen += os.read(self.terminal, 65536)
                last = time.monotonic()
        return seen.decode(errors="replace")

    def complete(self, typed, offered):
        self.say(typed + "\t\t")
        seen = ""
        for _ in range(20):  # a loaded machine takes its time
            seen += self.read(0.5)
            if set(offered) <= set(self.words(typed, seen)):
                break
        self.say("\x15\r")  # throws the line away
        self.read(0.3)
        return self.words(typed, seen)

    @staticmethod
    def words(typed, seen):
        seen = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]|[\r\x07\x08]", "\n", seen).replace(typed, typed + "\n", 1)
        return [word.rstrip("/") for word in re.split(r"\s+", seen)]


complete = {"bash": bash, "fish": fish, "zsh": None}[shell] or Zsh().complete
failures = []
for typed, offered, not_offered in CASES:
    found = complete(typed, offered)
    for word in offered:
        if word not in found:
            failures.append(f"{typed!r} does not offer {word}: {[f for f in found if f][:30]}")
    for word in not_offered:
        if word in found:
            failures.append(f"{typed!r} offers {word}")
shutil.rmtree(scratch)
if failures:
    sys.exit("\n".join(failures))
print(f"{shell}: {len(CASES)} lines completed")
