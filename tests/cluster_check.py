#!/usr/bin/env python3
"""The cluster engine as a user runs it: any number of ranks gives the profile of one process.

    cluster_check.py BUILD      status 77: there is no MPI here
"""
import ctypes, fcntl, json, os, pathlib, random, shutil, socket, struct, subprocess, sys, tempfile

revisit = pathlib.Path(sys.argv[1]).resolve() / "revisit"
doctor = json.loads(subprocess.run([revisit, "doctor", "--json"], capture_output=True, check=True).stdout)
cluster = next(f for f in doctor["findings"] if f["subject"] == "cluster")
if not cluster["works"] or not shutil.which("mpirun"):
    print("skipped: mpirun is missing" if cluster["works"] else "skipped: " + cluster["detail"])
    sys.exit(77)


def raise_loopback():
    """Open MPI's launcher wants a network interface that is up. Where none is, as in a container without a network,
    the test gets a network of its own that has the loopback."""
    def flags(of, new=None):
        request = struct.pack("16sH14x", of.encode(), new or 0)
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
            return struct.unpack("16sH14x", fcntl.ioctl(any_socket, 0x8914 if new else 0x8913, request))[1]

    if any(flags(name) & 1 for _, name in socket.if_nameindex()):
        return
    kNewUser, kNewNet = 0x10000000, 0x40000000
    libc, user, group = ctypes.CDLL(None, use_errno=True), os.getuid(), os.getgid()
    if libc.unshare(kNewNet if user == 0 else kNewUser | kNewNet) != 0:
        print("skipped: no network interface is up (ip link set lo up), which Open MPI's mpirun wants")
        sys.exit(77)
    if user != 0:
        pathlib.Path("/proc/self/setgroups").write_text("deny")
        pathlib.Path("/proc/self/uid_map").write_text(f"{user} {user} 1")
        pathlib.Path("/proc/self/gid_map").write_text(f"{group} {group} 1")
    flags("lo", flags("lo") | 1)


raise_loopback()
# All ranks are on this machine: they talk through memory, and Open MPI need not look for a way through the network. Looking
# with libfabric (ofi) sleeps for a second in every run. Looking for GPUs with an X server (gl) resolves localhost, which a root
# without /etc/hosts asks the network for: up to five seconds more.
os.environ["OMPI_MCA_btl"] = "^tcp,ofi"
os.environ["HWLOC_COMPONENTS"] = "-gl"


def ranks(n, *arguments):
    return subprocess.run(["mpirun", "--allow-run-as-root", "--oversubscribe", "-n", str(n), revisit, "analyze",
                           "--cluster", "--quiet", *arguments], capture_output=True, text=True, timeout=120)


def profile(text):
    value = json.loads(text)
    value.pop("notes", None)
    return value


def expect(condition, what):
    if not condition:
        print("failed:", what)
        sys.exit(1)


with tempfile.TemporaryDirectory() as folder:
    folder = pathlib.Path(folder)
    chance = random.Random(5)
    near = [chance.randrange(3000) if chance.random() < 0.7 else chance.randrange(90000) for _ in range(60000)]
    traces = {
        "near.u64": near,
        "cold.u64": list(range(5000)),
        "few.u64": [7, 7, 8],
        "none.u64": [],
        "scan.csv": [i % 900 * 64 for i in range(4000)],
    }
    for name, addresses in traces.items():
        path = folder / name
        if name.endswith(".csv"):
            path.write_text("address\n" + "".join(f"{a}\n" for a in addresses))
        else:
            path.write_bytes(struct.pack(f"<{len(addresses)}Q", *addresses))
        options = ["--json", "--bins", "exact", str(path)] + (["--granularity", "1"] if name == "near.u64" else [])
        alone = subprocess.run([revisit, "analyze", *options], capture_output=True, text=True, check=True)
        for n, threads in {"near.u64": [(2, 1), (2, 3), (4, 1)], "few.u64": [(2, 4)]}.get(name, [(2, 1)]):
            together = ranks(n, "--threads", str(threads), *options)
            what = f"{name} on {n} ranks of {threads} threads"
            expect(together.returncode == 0, f"{what}: {together.stderr}")
            expect(profile(together.stdout) == profile(alone.stdout), f"{what} differs")
            # The volume docs/cluster.md promises: 8 bytes for every block of a rank's part and the parts after it.
            if name == "near.u64" and n == 2:
                note, volume = json.loads(together.stdout)["notes"][0], 8 * len(set(near[len(near) // 2:]))
                expect(f" {volume} bytes" in note, f"volume: {note}, expected {volume}")

    # A GPU a rank, where there is one; two ranks may share it.
    gpu = next(f for f in doctor["findings"] if f["subject"] == "gpu")
    options = ["--json", "--granularity", "1", str(folder / "near.u64")]
    together = ranks(2, "--device", "gpu", *options)
    if gpu["works"]:
        alone = subprocess.run([revisit, "analyze", *options], capture_output=True, text=True, check=True)
        expect(profile(together.stdout) == profile(alone.stdout), "near.u64 on 2 ranks with a GPU differs")
    else:
        expect(together.returncode == 2 and together.stderr.count("CUDA") == 1 and together.stdout == "",
               f"no GPU: status {together.returncode}, {together.stderr}")

    missing = ranks(2, str(folder / "missing.u64"))
    expect(missing.returncode == 2 and missing.stderr.count("missing.u64: cannot open") == 1, missing.stderr)
    (folder / "torn.u64").write_bytes(bytes(8 * 1000 + 3))
    torn = ranks(2, str(folder / "torn.u64"))
    expect(torn.returncode == 2 and "torn.u64: byte 8000" in torn.stderr and torn.stdout == "", torn.stderr)

    # Ranks that see different files under one name: another length, and other content of the same length.
    for name, other in {"longer": near + [1], "other": near[:-1] + [near[-1] + 1]}.items():
        seen = folder / name
        seen.mkdir()
        (seen / "seen.u64").write_bytes(struct.pack(f"<{len(other)}Q", *other))
        (folder / "seen.u64").write_bytes(struct.pack(f"<{len(near)}Q", *near))
        script = folder / f"{name}.sh"
        script.write_text(f'#!/bin/sh\ncd {folder}; [ "$OMPI_COMM_WORLD_RANK" = 1 ] && cd {name}\n'
                          f'exec {revisit} analyze --cluster --json seen.u64\n')
        script.chmod(0o755)
        ended = subprocess.run(["mpirun", "--allow-run-as-root", "--oversubscribe", "-n", "2", script],
                               capture_output=True, text=True, timeout=120)
        expect(ended.returncode == 2 and ended.stdout == "" and "same file on all ranks" in ended.stderr,
               f"{name} file on rank 1: status {ended.returncode}, {ended.stdout}{ended.stderr}")
    cut = ranks(2, "--phases", "4", "--json", str(folder / "near.u64"))
    expect(cut.returncode == 2 and "--cluster does not cut a run into phases" in cut.stderr, cut.stderr)

    # A rank that is lost takes the job with it: no result, and a line that says which rank.
    endless = folder / "endless.u64"
    with endless.open("wb") as file:
        file.truncate(1 << 35)  # a hole: hours of zeros, no disk
    lost = folder / "lost"
    lost.write_text('#!/bin/sh\nif [ "$OMPI_COMM_WORLD_RANK" = 1 ]; then (sleep 0.5; kill -9 $$) & fi\n'
                    f'exec {revisit} analyze --cluster --json {endless}\n')
    lost.chmod(0o755)
    ended = subprocess.run(["mpirun", "--allow-run-as-root", "--oversubscribe", "-n", "2", lost],
                           capture_output=True, text=True, timeout=120)
    # The line is mpirun's own; Ubuntu 26.04's lacks the file with its texts, and says so instead.
    told = "rank 1" in ended.stderr or "couldn't open the help file" in ended.stderr
    expect(ended.returncode != 0 and ended.stdout == "" and told,
           f"a lost rank: status {ended.returncode}, {ended.stdout}{ended.stderr}")
print("alike")
