#!/usr/bin/env python3
"""Runs the program as a user does and compares what the user sees.

    run.py [--update] BUILD FILE…

A .case file is a transcript:

    $ revisit analyze --json t.din     a command, run by sh in a scratch copy of data/
    > …                                its further lines
    …                                  the standard output it must give
    ! revisit analyze: …               a line of standard error
    ? 2                                its exit status, when not 0

In a .md file the same is read from ```console blocks; commands in ```sh blocks must merely succeed.
A command that needs what the program says is not in its build is skipped, and so is one that wants valgrind or clang
where there is none, and one that fails for want of a file that a skipped one was to make; status 77 when all are.
--update writes what was seen back into .case files.
"""
import os, pathlib, re, shutil, subprocess, sys, tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent

MISSING = ["valgrind"] if not shutil.which("valgrind") else []
if not any(shutil.which(f"clang-{version}") for version in (19, 20, 21)):
    MISSING.append("clang")


def steps_of_case(lines):
    steps = []
    for line in lines:
        if line.startswith("$ "):
            steps.append({"command": line[2:], "expected": [], "exact": True})
        elif steps and line.startswith(">") and not steps[-1]["expected"]:
            steps[-1]["command"] += "\n" + line[2:]
        elif steps:
            steps[-1]["expected"].append(line)
    return steps


def steps_of_markdown(lines):
    steps, kind, block = [], None, []
    for line in lines:
        if kind is None and line.startswith("```"):
            kind, block = line[3:].strip(), []
        elif kind is not None and line.startswith("```"):
            if kind == "console":
                steps += steps_of_case(block)
            elif kind == "sh":
                steps.append({"command": "set -e\n" + "\n".join(block), "expected": [], "exact": False})
            kind = None
        elif kind is not None:
            block.append(line)
    return steps


def run_step(step, folder, environment):
    done = subprocess.run(["sh", "-c", step["command"]], cwd=folder, env=environment, text=True, errors="replace",
                          stdin=subprocess.DEVNULL, capture_output=True, timeout=600)
    seen = done.stdout.splitlines() + ["! " + line for line in done.stderr.splitlines()]
    if done.returncode != 0:
        seen.append(f"? {done.returncode}")
    return seen, done.returncode


def lacks(step, seen):
    """Why a step that failed could not have worked here, if so."""
    said = [line for line in seen if line.startswith("! ")]
    # Some commands send their errors through a pipe.
    if any(re.match(r"(! )?revisit[ \w-]*: .*is not in this build", line) for line in seen):
        return "not in this build"
    for tool in MISSING:
        if any(tool in line for line in said + [step["command"]]):
            return f"no {tool} here"
    return None


def made_by(command):
    """Files that a command was to make."""
    return set(re.findall(r"(?:-o|>)\s*([\w./-]+)", command))


def misses(command, files, folder):
    """One of these files that a command names and that is not there."""
    named = set(re.findall(r"[\w./-]+", command))
    return next((name for name in sorted(files) if {name, f"./{name}"} & named and not (folder / name).exists()), None)


def trimmed(lines):
    while lines and not lines[-1].strip():
        lines = lines[:-1]
    return lines


def run_file(path, build, update):
    text = path.read_text().splitlines()
    markdown = path.suffix == ".md"
    steps = steps_of_markdown(text) if markdown else steps_of_case(text)
    environment = dict(os.environ, PATH=f"{build}:{os.environ['PATH']}", NO_COLOR="1", LC_ALL="C.UTF-8", REVISIT_SOURCE=str(ROOT))
    failures, skipped, rewritten = 0, 0, [line for line in text[: next((i for i, l in enumerate(text) if l.startswith("$ ")), len(text))]]
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(scratch) / "data"
        shutil.copytree(HERE / "data", folder)
        for name in ("examples", "docs"):
            if (ROOT / name).is_dir():
                os.symlink(ROOT / name, folder / name)
        lost = set()  # files of commands that were skipped
        for step in steps:
            seen, status = run_step(step, folder, environment)
            rewritten += ["$ " + step["command"].replace("\n", "\n> ")] + seen + [""]
            good = trimmed(seen) == trimmed(step["expected"]) if step["exact"] else status == 0
            missed = None if good else misses(step["command"], lost, folder)
            why = None if good else lacks(step, seen) or (missed and f"{missed} was not made")
            if why:
                lost |= made_by(step["command"])
                skipped += 1
                print(f"{path.name}: skipped ({why}): $ {step['command']}")
            elif not good:
                failures += 1
                print(f"{path}: $ {step['command']}")
                print("  expected:", *trimmed(step["expected"]) if step["exact"] else ["exit status 0"], sep="\n    ")
                print("  seen:", *seen, sep="\n    ")
    if update and not markdown:
        path.write_text("\n".join(rewritten).rstrip() + "\n")
    print(f"{path.name}: {len(steps)} commands, {failures} failed, {skipped} skipped")
    return (failures if steps else 1), skipped == len(steps)


def main():
    arguments = sys.argv[1:]
    update = "--update" in arguments
    arguments = [a for a in arguments if a != "--update"]
    build = pathlib.Path(arguments[0]).resolve()
    ran = [run_file(pathlib.Path(name), build, update) for name in arguments[1:]]
    if any(failures for failures, _ in ran) and not update:
        sys.exit(1)
    sys.exit(77 if all(skipped for _, skipped in ran) else 0)


main()
