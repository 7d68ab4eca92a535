#!/usr/bin/env python3
"""What docs/platforms.md says about containers, tried with what containers are made of: capabilities, seccomp filters and
PID namespaces.

    restricted_check.py BUILD      status 77: neither setpriv nor unshare is installed
"""
import ctypes, json, os, pathlib, shutil, struct, subprocess, sys, tempfile, time

from checks import expect

build = pathlib.Path(sys.argv[1]).resolve()
revisit = build / "revisit"
if not shutil.which("setpriv") or not shutil.which("unshare"):
    print("skipped: setpriv and unshare (util-linux) are not installed")
    sys.exit(77)
CALLS = {"aarch64": {"perf_event_open": 241, "ptrace": 117}, "x86_64": {"perf_event_open": 298, "ptrace": 101}}.get(os.uname().machine)
if not CALLS:
    print(f"skipped: the system calls of {os.uname().machine} are not known here")
    sys.exit(77)
scratch = pathlib.Path(tempfile.mkdtemp())


def forbid(*names):
    """Runs in the child: these system calls fail with EPERM, as in Docker's and Podman's default profiles."""
    def statement(code, value, yes=0, no=0):
        return struct.pack("HBBI", code, yes, no, value)

    program = statement(0x20, 0)  # load the number of the call
    for name in names:
        program += statement(0x15, CALLS[name], 0, 1) + statement(0x06, 0x00050001)  # equal: return ERRNO | EPERM
    program += statement(0x06, 0x7FFF0000)  # allow
    kept = ctypes.create_string_buffer(program, len(program))

    class Filter(ctypes.Structure):
        _fields_ = [("length", ctypes.c_ushort), ("program", ctypes.c_void_p)]

    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(38, 1, 0, 0, 0) != 0 or libc.prctl(22, 2, ctypes.byref(Filter(len(program) // 8, ctypes.addressof(kept))), 0, 0) != 0:
        os._exit(99)


def run(*command, forbidden=(), status=0):
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, cwd=scratch, timeout=120,
                          preexec_fn=(lambda: forbid(*forbidden)) if forbidden else None)
    if done.returncode == 99 and forbidden:
        print("skipped: this kernel takes no seccomp filter")
        sys.exit(77)
    expect(status is None or done.returncode == status, f"{command}: status {done.returncode}, expected {status}\n{done.stdout}{done.stderr}")
    return done


def doctor(*prefix, **options):
    found = json.loads(run(*prefix, revisit, "doctor", "--json", **options).stdout)["findings"]
    return {finding["subject"]: finding for finding in found}


# --- No capability at all: ordinary users set watchpoints on their own programs. ---
bare = ["setpriv", "--no-new-privs", *(["--bounding-set", "-all", "--inh-caps", "-all"] if os.getuid() == 0 else [])]
paranoid = int(pathlib.Path("/proc/sys/kernel/perf_event_paranoid").read_text())
here, without = doctor(), doctor(*bare)
if here["watchpoints"]["works"] and paranoid <= 2:
    expect(without["watchpoints"]["works"], f"without capabilities: {without['watchpoints']['detail']}")
expect(without["any binary"]["works"] == here["any binary"]["works"], f"without capabilities: {without['any binary']['detail']}")

# --- perf_event_open forbidden: doctor reports it, profile works under valgrind and by a timer. ---
closed = doctor(*bare, forbidden=["perf_event_open"])
expect(not closed["watchpoints"]["works"] and "not permitted" in closed["watchpoints"]["detail"], f"seccomp: {closed['watchpoints']}")
expect("timer only" in closed["sampling"]["detail"], f"seccomp: {closed['sampling']}")
tried = ["forbidden perf_event_open is reported"]
if here["any binary"]["works"]:
    expect("exact under valgrind for all others" in closed["auto"]["detail"], f"seccomp: {closed['auto']}")
    run(*bare, revisit, "profile", "--quiet", "-o", "p.json", "--", "/bin/true", forbidden=["perf_event_open"])
    method = json.loads((scratch / "p.json").read_text())["method"]
    expect(method == "exact", f"where perf events are forbidden, profile took the method {method}")
    tried.append("profile falls back to valgrind")

# --- Exact: a program that goes on as another user or in another user or PID namespace is recorded. Where the recorder is out of reach
# (a file system without it or without /proc, set-user-ID) the program runs as it is, and the profile says so. ---
namespace = ["unshare", "--user", "--map-root-user"]
if here["any binary"]["works"] and run(*namespace, "true", status=None).returncode == 0:
    tool = build / "libexec/revisit/valgrind"
    cases = [([*namespace, "/bin/echo", "said"], True), (["env", "/bin/echo", "said"], True), ([*namespace, "--pid", "--fork", "/bin/echo", "said"], True),
             ([*namespace, "--pid", "--fork", "--mount-proc", "sh", "-c", "(exit 0); /bin/echo said; exit 0"], True),
             ([*namespace, "--pid", "--fork", "--mount", "sh", "-c", "mount -t tmpfs none /proc; /bin/echo said"], False)]
    if tool.is_dir():
        cases.append(([*namespace, "--mount", "sh", "-c", f"mount -t tmpfs none {tool} && exec /bin/echo said"], False))
    if os.getuid() == 0:
        cases.append((["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "/bin/echo", "said"], True))
        copy = scratch / "echo-as-owner"
        shutil.copy("/bin/echo", copy)
        copy.chmod(0o4755)
        cases.append((["env", copy, "said"], False))
        done = run(revisit, "profile", "--quiet", "--method", "exact", "-o", "s.json", "--", copy, "said", status=2)
        expect(done.stdout == "" and done.stderr.count("\n") == 1 and "rights of another user" in done.stderr, f"set-user-ID: {done}")
    for command, is_seen in cases:
        if run(*command, status=None).returncode != 0:
            tried.append(f"not tried: {' '.join(map(str, command))}")
            continue
        done = run(revisit, "profile", "--quiet", "--method", "exact", "-o", "n.json", "--", *command)
        profile = json.loads((scratch / "n.json").read_text())
        programs = [process["command"][0] for process in profile.get("processes", [])] + profile["command"][:1]
        notes = profile.get("notes", [])
        expect(done.stdout == "said\n" and done.stderr == "", f"{command}: {done}")
        expect(any(name.endswith("echo") for name in programs) == is_seen, f"{command}: {programs}")
        expect(any("ran unrecorded" in note for note in notes) != is_seen, f"{command}: {notes}")
    # Neither side has a number for the other there, but the program goes on when the analyzer is killed.
    command = [*namespace, "--pid", "--fork", "sh", "-c", "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done; echo done > went-on"]
    if run(*namespace, "--pid", "--fork", "true", status=None).returncode == 0:
        analyzer = subprocess.Popen([revisit, "profile", "--quiet", "--method", "exact", "-o", "k.json", "--", *command], cwd=scratch, stderr=subprocess.DEVNULL)
        time.sleep(1.5)
        analyzer.kill()
        analyzer.wait()
        until = time.monotonic() + 60
        while not (scratch / "went-on").exists() and time.monotonic() < until:
            time.sleep(0.1)
        expect((scratch / "went-on").exists(), "a program in another PID namespace stopped when the analyzer was killed")
    tried.append("exact sees other users and user namespaces, and notes what is out of its reach")

# --- Names of a program that is deleted, or in a file system of its own, when its symbols are read. ---
example = build / "examples/matmul"
if here["sampling"]["works"] and example.exists():
    kept = scratch / "kept"
    kept.mkdir()
    shutil.copy(example, kept / "program")
    cases = [("deleted", ["sh", "-c", "cp kept/program gone && ./gone ijk 300 && rm gone"])]
    if run(*namespace, "--mount", "true", status=None).returncode == 0:
        cases.append(("elsewhere", [*namespace, "--mount", "sh", "-c", f"mount --bind {kept} /mnt && exec /mnt/program ijk 300"]))
    for name, command in cases:
        run(revisit, "profile", "--quiet", "-o", "g.json", "--", *command)
        functions = {site.get("function", "") for site in json.loads((scratch / "g.json").read_text())["sites"]}
        expect(any("ijk" in one or "multiply" in one or one == "main" for one in functions), f"{name}: {functions}")
    tried.append("names of programs that are gone or elsewhere")

# --- A full disk is found before the program starts. ---
disk = scratch / "disk"
disk.mkdir()
if os.getuid() == 0 and run("mount", "-t", "tmpfs", "-o", "size=16k", "none", disk, status=None).returncode == 0:
    try:
        (disk / "rest").write_bytes(bytes(16 << 10))
        done = run(revisit, "profile", "--quiet", "-o", disk / "p.json", "--", "echo", "said", status=2)
        expect(done.stdout == "" and "No space left" in done.stderr and os.listdir(disk) == ["rest"], f"full disk: {done}, {os.listdir(disk)}")
        tried.append(f"a full disk: {done.stderr.strip()}")
    finally:
        run("umount", disk)

# --- Attaching: the same user needs no capability; ptrace forbidden, or a process of another namespace, is one clear line. ---
sleeper = subprocess.Popen(["sleep", "60"])
try:
    for name, prefix, forbidden in (("ptrace forbidden", bare, ["ptrace"]),
                                    ("another PID namespace", ["unshare", *(["--user", "--map-root-user"] if os.getuid() else []), "--pid", "--fork", "--mount-proc"], [])):
        # A small number may be that of a process in the new namespace as well.
        if name.startswith("another") and (sleeper.pid < 100 or run(*prefix, "true", status=None).returncode != 0):
            tried.append("no namespaces tried")
            continue
        done = run(*prefix, revisit, "profile", "--pid", sleeper.pid, "--duration", "0.2s", "-o", "a.json", forbidden=forbidden, status=2)
        expect(done.stderr.count("\n") == 1, f"{name}: {done.stderr!r}")
        expect(not (scratch / "a.json").exists(), f"{name}: a profile was written")
        tried.append(f"{name}: {done.stderr.strip()}")
finally:
    sleeper.kill()
shutil.rmtree(scratch)
print("\n".join(tried))
