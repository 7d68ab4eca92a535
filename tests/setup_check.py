#!/usr/bin/env python3
"""Setting up where nothing can be installed: what is missing is listed, and the build goes on with what is there.

    setup_check.py SOURCE

scripts/install-dependencies is run with a path that holds only the tools named, so that dpkg, apt-get and compilers
are missing as they are on other distributions.
"""
import os, pathlib, shutil, subprocess, sys, tempfile

from checks import expect

source = pathlib.Path(sys.argv[1]).resolve()
BASICS = ["sh", "dirname", "sed", "tr", "id", "mktemp", "rm", "tail", "awk", "python3", "echo", "printf", "cat", "ls"]
BUILDING = ["c++", "cmake", "ninja", "pkg-config"]


def set_up(tools, *arguments, **environment):
    with tempfile.TemporaryDirectory() as folder:
        for tool in tools:
            found = shutil.which(tool)
            if found:
                os.symlink(found, pathlib.Path(folder) / tool)
        if "c++" in tools and not shutil.which("c++"):
            sys.exit("c++ is not in the path")
        return subprocess.run([shutil.which("sh"), source / "scripts/install-dependencies", *arguments], capture_output=True, text=True,
                              env={"PATH": folder, **environment})


# Without dpkg and apt, what is there is found by headers and commands.
done = set_up(BASICS + BUILDING)
expect(done.returncode == 0, f"without apt: status {done.returncode}: {done.stderr}")
expect("no apt-get; missing:" in done.stderr and done.stderr.rstrip().endswith("building with what is there"), f"without apt: {done.stderr}")
expect(" zsh" in done.stderr, f"the missing zsh is not listed: {done.stderr}")
expect(" cmake" not in done.stderr and " libfmt-dev" not in done.stderr, f"what is there is listed as missing: {done.stderr}")
listed = set_up(BASICS + BUILDING, "--list").stdout.split()
expect("zsh" in listed and "cmake" not in listed and listed == done.stderr.splitlines()[0].split("missing:")[1].split(), f"--list: {listed}")
# Without a compiler nothing can be built, and that is the last line.
done = set_up(BASICS)
expect(done.returncode == 1 and done.stderr.rstrip().endswith("nothing can be built without c++"), f"without a compiler: {done.stderr}")
# SETUP=no does not ask apt, even where it is.
done = set_up(BASICS + BUILDING + ["apt-get", "apt-cache"], SETUP="no")
expect(done.returncode == 0 and "SETUP=no" in done.stderr, f"SETUP=no: {done.stderr}")
print("what is missing is listed, and the build goes on with what is there")
