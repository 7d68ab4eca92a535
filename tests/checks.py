"""What checks that run programs as a user does have in common: the first thing that is wrong ends them, with a reason."""
import os, subprocess, sys


def run(*command, status=0, environment=None, **options):
    """The standard output of a command that ends with that status."""
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, env={**os.environ, **(environment or {})}, **options)
    if done.returncode != status:
        sys.exit(f"{' '.join(map(str, command))}: status {done.returncode}, expected {status}\n{done.stdout[-2000:]}{done.stderr[-3000:]}")
    return done.stdout


def expect(good, what):
    if not good:
        sys.exit(what)


def same(what, found, expected):
    expect(found.strip() == expected.strip(), f"{what}: expected {expected!r}, found {found!r}")
