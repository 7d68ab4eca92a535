#!/usr/bin/env python3
"""Sampled against full analysis of the threaded examples: accuracy, choice of sites, speed.

    bench/multicore.py BUILD [PROGRAM…]

Each program is recorded once, so that both analyses see the same interleaving, and analyzed in the
private and the shared model with 10 bins a power of two. Printed beside the means of Schuff, Kulkarni
and Pai (PACT 2010, tables 1 and 2), whose programs and machine were others: theirs ran while the
program did, these read its trace, so slowdowns do not compare and are not printed.
"""
import json, os, pathlib, resource, subprocess, sys, tempfile

PROGRAMS = "jacobi conjugate fft multigrid mesh bank anneal pipeline".split()
TARGET = "0.5%"  # of every bin: 38 416 samples or up to twice as many
COVERAGES = "75%,80%,90%,95%"


def cpu_seconds():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def evaluate(revisit, program, folder):
    def call(*arguments):
        return subprocess.run([revisit, *arguments], check=True, capture_output=True, text=True).stdout

    trace = str(folder / "trace")
    environment = dict(os.environ, OMP_NUM_THREADS="4")
    subprocess.run([revisit, "record", "--via", "clang", "--quiet", "-o", trace, "--", program], check=True,
                   env=environment, stdout=subprocess.DEVNULL)
    row = {}
    began = cpu_seconds()
    both = json.loads(call("analyze", "--json", "--no-sites", "--model", "both", trace))
    row["accesses"], row["rate"] = both["accesses"], both["accesses"] / (cpu_seconds() - began)
    for model in ("private", "shared"):
        full, sampled = str(folder / "full.json"), str(folder / "sampled.json")
        common = ["--quiet", "--model", model, "--bins", "log2:10", trace, "-o"]
        call("analyze", *common, full)
        call("analyze", "--method", "sample", "--target-error", TARGET, *common, sampled)
        row["S", model] = json.loads(call("diff", "--json", full, sampled))["S"]
        matches = json.loads(call("diff", "--json", "--weight-match", "--miss-coverage", COVERAGES, full, sampled))
        row["match", model] = [m["match"] for m in matches["weight_match"]]
        row["samples"] = json.loads(pathlib.Path(sampled).read_text())["sampled"]["samples"]
    return row


def main():
    build = pathlib.Path(sys.argv[1]).resolve()
    names = sys.argv[2:] or PROGRAMS
    head = ["program", "accesses", "samples", "private S", "shared S", "private match 75/80/90/95", "shared match", "both models"]
    widths = [11, 10, 9, 10, 10, 26, 26, 12]
    show = lambda cells: print("  ".join(str(c).rjust(w) for c, w in zip(cells, widths)), flush=True)
    show(head)
    rows = []
    for name in names:
        program = build / "examples" / "recorded" / "multicore" / name
        if not program.exists():
            print(f"{name}: not built for recording (needs clang 19 and, for some, libomp)")
            continue
        with tempfile.TemporaryDirectory() as folder:
            rows.append(evaluate(str(build / "revisit"), str(program), pathlib.Path(folder)))
        row = rows[-1]
        shares = lambda values: "/".join(f"{100 * v:.1f}" for v in values)
        show([name, f"{row['accesses'] / 1e6:.2f} M", f"{row['samples']:.0f}", f"{100 * row['S', 'private']:.1f} %",
              f"{100 * row['S', 'shared']:.1f} %", shares(row["match", "private"]), shares(row["match", "shared"]),
              f"{row['rate'] / 1e6:.1f} M/s"])
    if not rows:
        sys.exit(1)
    mean = lambda key, pick=lambda v: v: sum(pick(r[key]) for r in rows) / len(rows)
    matches = lambda model: "/".join(f"{100 * mean(('match', model), lambda v, i=i: v[i]):.1f}" for i in range(4))
    show(["mean", "", "", f"{100 * mean(('S', 'private')):.1f} %", f"{100 * mean(('S', 'shared')):.1f} %", matches("private"),
          matches("shared"), f"{mean('rate') / 1e6:.1f} M/s"])
    show(["published", "", "", "95.6 %", "74.1 % (88.9 % sequential)", "91.1/91.6/91.8/92.0", "92.1/91.7/92.2/91.6", ""])


main()
