#!/usr/bin/env python3
"""What recording costs: ratios to the native run, all of one run of this script.

    record.py BUILD [RUNS] [NAME…]

Table 1 appends only, by each of the three ways (after Shen and Shaw's table 1, which compares the first
two): the buffer is used again as soon as it is full. `stream` hands it over to another process instead, which gives
it back unread: the same with the traffic between two cores. Times are CPU seconds of the program, best of RUNS, so
that a busy machine counts less. Table 2 is the whole way to a profile; table 3 the same for programs as they are,
under valgrind, sites and pairs included; table 4 what the analyzer needs at its peak, and how much of that is the
engine's by what bench_engines measures for a block (sites, pairs and objects count as beyond it).
"""
import json, math, os, pathlib, resource, subprocess, sys, tempfile, time

build = pathlib.Path(sys.argv[1]).resolve()
runs = int(sys.argv[2]) if len(sys.argv) > 2 else 3
only = sys.argv[3:]
examples = pathlib.Path(__file__).resolve().parent.parent / "examples"
SCHEMES = ("call", "mmu", "pointer")
# Sizes at which a native run takes some hundredths of a second or more.
PROGRAMS = ("matmul ijk 400", "matmul ikj 500", "matmul jki 300", "matmul tiled 500", "list list 200000 20",
            "list array 1000000 200", "particles aos 200000 40", "particles soa 200000 200",
            "join plain 1000000 2000000", "join partitioned 1000000 2000000", "quicksort 3000000",
            "stencil plain 1000 80", "stencil blocked 1000 80", "spmv random 200000 20", "spmv banded 200000 40",
            "threads shared 40000000 2", "threads padded 40000000 2")
PROFILED = ("matmul ijk 400", "matmul tiled 500", "quicksort 3000000", "spmv random 200000 20", "stencil plain 1000 80")

ENGINE_BYTES_A_BLOCK = 24
# Where nothing is recorded a program runs the body that only counts; to time appending it must have but one.
ONE_BODY = ("-Xclang", "-mllvm", "-Xclang", "-revisit-copies=false")
# Program, the same of no length, goal.
VALGRIND = (("quicksort 3000000", "10", 40), ("matmul ijk 600", "ijk 2", 60))


def cpu_seconds(command):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    start = time.monotonic()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    wall = time.monotonic() - start
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime, wall


def discard(command, *options):
    done = subprocess.run([build / "bench_discard", *options, *command], check=True, stdout=subprocess.DEVNULL,
                          stderr=subprocess.PIPE, text=True)
    return json.loads(done.stderr.splitlines()[-1])


def geometric_mean(values):
    return math.exp(sum(map(math.log, values)) / len(values))


def build_all(folder):
    for name in sorted({program.split()[0] for program in PROGRAMS}):
        source = examples / (name + ".cpp" if (examples / (name + ".cpp")).exists() else name + ".c")
        wrapper = build / ("revisit-clang++" if source.suffix == ".cpp" else "revisit-clang")
        common = [wrapper, "-O2", source, "-lpthread"]
        subprocess.run([*common, "-fno-revisit", "-o", folder / f"{name}.native"], check=True)
        for scheme in SCHEMES:
            subprocess.run([*common, f"-frevisit-append={scheme}", "-o", folder / f"{name}.{scheme}"], check=True)
        subprocess.run([*common, *ONE_BODY, "-o", folder / f"{name}.writing"], check=True)


def append_only(folder):
    print("Append only: the program's CPU time over native\n")
    print(f"{'program':34}{'native s':>9}{'M acc.':>8}{'call':>8}{'mmu':>8}{'pointer':>9}{'stream':>8}{'G acc./s':>10}"
          f"{'mmu : call':>12}{'pointer : call':>16}")
    ratios = {way: [] for way in (*SCHEMES, "stream", "idle")}
    for program in PROGRAMS:
        name, *arguments = program.split()
        if only and name not in only:
            continue
        native = min(cpu_seconds([folder / f"{name}.native", *arguments])[0] for _ in range(runs))
        accesses = discard([folder / f"{name}.pointer", *arguments], "--count")["accesses"]
        seconds = {scheme: min(cpu_seconds([folder / f"{name}.{scheme}", *arguments])[0] for _ in range(runs))
                   for scheme in SCHEMES}
        seconds["idle"] = seconds["pointer"]
        seconds["pointer"] = min(cpu_seconds([folder / f"{name}.writing", *arguments])[0] for _ in range(runs))
        seconds["stream"] = min(discard([folder / f"{name}.pointer", *arguments])["cpu"] for _ in range(runs))
        for way in ratios:
            ratios[way].append(seconds[way] / native)
        print(f"{program:34}{native:9.3f}{accesses / 1e6:8.1f}"
              f"{ratios['call'][-1]:7.2f}×{ratios['mmu'][-1]:7.2f}×{ratios['pointer'][-1]:8.2f}×{ratios['stream'][-1]:7.2f}×"
              f"{accesses / seconds['pointer'] / 1e9:10.2f}{seconds['call'] / seconds['mmu']:11.2f}×"
              f"{seconds['call'] / seconds['pointer']:15.2f}×", flush=True)
    means = {way: geometric_mean(ratios[way]) for way in ratios}
    print(f"{'geometric mean':51}{means['call']:7.2f}×{means['mmu']:7.2f}×{means['pointer']:8.2f}×{means['stream']:7.2f}×"
          f"{'':10}{means['call'] / means['mmu']:11.2f}×{means['call'] / means['pointer']:15.2f}×")
    print(f"\npointer, geometric mean {means['pointer']:.2f}× native (goal: at most 1.6×); "
          f"as built by default and not recorded {means['idle']:.2f}×\n")


def profiles(folder):
    print("To a profile: accesses a second. `wall` is what the clock said; `analysis` counts CPU time of the analyzer "
          "alone,\nthe rate when both processes have a core to themselves\n")
    print(f"{'program':34}{'M acc.':>8}{'method':>14}{'wall M/s':>10}{'analysis M/s':>14}{'over native':>13}")
    plain = ("--no-sites", "--no-pairs")
    for method, options, goal in ("exact", plain, 60), ("exact", (), None), ("time", plain, 150):
        name_of = method + (", sites" if not options else "")
        rates, clock, ratios = [], [], []
        for program in PROFILED:
            name, *arguments = program.split()
            if only and name not in only:
                continue
            native = min(cpu_seconds([folder / f"{name}.native", *arguments])[1] for _ in range(runs))
            own = min(discard([folder / f"{name}.pointer", *arguments])["cpu"] for _ in range(runs))
            output = folder / "profile.json"
            command = [build / "revisit", "profile", "--via", "clang", "--quiet", "--method", method, *options,
                       "-o", output, "--", folder / f"{name}.pointer", *arguments]
            both, wall = map(min, zip(*(cpu_seconds(command) for _ in range(runs))))
            accesses = json.loads(output.read_text())["accesses"]
            analysis = max(both - own, 1e-3)
            rates.append(accesses / analysis / 1e6)
            clock.append(accesses / wall / 1e6)
            ratios.append(wall / native)
            print(f"{program:34}{accesses / 1e6:8.1f}{name_of:>14}{clock[-1]:10.1f}{rates[-1]:14.1f}"
                  f"{ratios[-1]:12.1f}×", flush=True)
        if rates:
            print(f"{name_of}: geometric mean {geometric_mean(clock):.0f} M accesses/s by the clock"
                  + (f" (goal: {goal})" if goal else "")
                  + f", {geometric_mean(rates):.0f} of analysis alone, {geometric_mean(ratios):.1f}× native\n")


def under_valgrind(folder):
    print("Under valgrind, exact profile with sites and pairs: wall time over native. `start-up` is the same for a run "
          "of no length\n")
    print(f"{'program':34}{'native s':>9}{'M acc.':>8}{'wall s':>8}{'start-up s':>12}{'over native':>13}{'goal':>7}")
    for program, nothing, goal in VALGRIND:
        name, *arguments = program.split()
        if only and name not in only:
            continue
        output = folder / "profile.json"

        def wall(arguments):
            command = [build / "revisit", "profile", "--via", "valgrind", "--quiet", "-o", output, "--",
                       folder / f"{name}.native", *arguments]
            return min(cpu_seconds(command)[1] for _ in range(runs))

        native = min(cpu_seconds([folder / f"{name}.native", *arguments])[1] for _ in range(runs))
        start = wall(nothing.split())
        seconds = wall(arguments)
        accesses = json.loads(output.read_text())["accesses"]
        print(f"{program:34}{native:9.3f}{accesses / 1e6:8.1f}{seconds:8.2f}{start:12.2f}{seconds / native:12.1f}×"
              f"{goal:6}×", flush=True)
    print()


def peak(command):
    """MiB of the command's own process at most, children left out, and how much of what is resident when that is most
    seen are files (program, libraries, debug information) and memory shared with the program (its buffers)."""
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    most = {"VmHWM": 0, "VmRSS": 0, "RssFile": 0, "RssShmem": 0}
    while child.poll() is None:
        status = pathlib.Path(f"/proc/{child.pid}/status").read_text()
        now = {key: int(value.split()[0]) for key, value in
               (line.split(":", 1) for line in status.splitlines()) if key in most}
        high = max(most["VmHWM"], now.get("VmHWM", 0))
        if now.get("VmRSS", 0) > most["VmRSS"]:
            most.update(now)
        most["VmHWM"] = high
        time.sleep(0.002)
    if child.returncode:
        raise subprocess.CalledProcessError(child.returncode, command)
    return [most[key] / 1024 for key in ("VmHWM", "RssFile", "RssShmem")]


def memory(folder):
    print("Memory of the analyzer, MiB at the peak (goal: at most 64 beyond the engine's). Of that, `files` are pages of "
          "the\nprogram and its libraries, and `shared` the buffers that the recorded program fills\n")
    print(f"{'program':34}{'':16}{'profile':>9}{'engine':>9}{'beyond':>8}{'files':>8}{'shared':>8}")
    for options, name_of in ((), "sites, pairs"), (("--no-sites", "--no-pairs"), "neither"):
        beyond = []
        for program in PROFILED:
            name, *arguments = program.split()
            if only and name not in only:
                continue
            output = folder / "profile.json"
            whole, files, shared = peak([build / "revisit", "profile", "--via", "clang", "--quiet", *options, "-o", output,
                                         "--", folder / f"{name}.pointer", *arguments])
            engine = json.loads(output.read_text())["distinct"] * ENGINE_BYTES_A_BLOCK / 2**20
            beyond.append(whole - engine)
            print(f"{program:34}{name_of:16}{whole:9.1f}{engine:9.1f}{beyond[-1]:8.1f}{files:8.1f}{shared:8.1f}", flush=True)
        if beyond:
            print(f"{name_of}: most beyond the engine: {max(beyond):.1f} MiB (goal: 64)\n")


with tempfile.TemporaryDirectory() as scratch:
    build_all(pathlib.Path(scratch))
    append_only(pathlib.Path(scratch))
    profiles(pathlib.Path(scratch))
    under_valgrind(pathlib.Path(scratch))
    memory(pathlib.Path(scratch))
