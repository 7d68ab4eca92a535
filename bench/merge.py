#!/usr/bin/env python3
"""Merges 10^5 profiles of a service, as docs/fleet.md does, and fails beyond 60 s by the clock or 200 MB.

    bench/merge.py BUILD [COUNT]

The profiles are copies of 40 different runs, each with 25 sites and their pairs, in files of their own; reading them is
part of the time. They are removed afterwards.
"""
import json, pathlib, random, resource, subprocess, sys, tempfile, time

revisit = str(pathlib.Path(sys.argv[1]).resolve() / "revisit")
count = int(sys.argv[2]) if len(sys.argv) > 2 else 100_000
KINDS, SECONDS, MEGABYTES = 40, 60, 200

with tempfile.TemporaryDirectory() as folder:
    folder = pathlib.Path(folder)
    texts = []
    for kind in range(KINDS):
        chance = random.Random(kind)
        rows = ["address,site"]
        for i in range(6000):  # 25 sites; some walk, some jump
            site = i % 25
            block = i // 25 * 3 + site if site < 20 else chance.randrange(20000)
            rows.append(f"{block % 30000 * 64},{site + 1}")
        (folder / "trace.csv").write_text("\n".join(rows) + "\n")
        made = subprocess.run([revisit, "analyze", "--sites", "--pairs", "--json", "--quiet", folder / "trace.csv"],
                              capture_output=True, text=True, check=True).stdout
        texts.append(made)
    for i in range(count):
        (folder / f"{i}.json").write_text(texts[i % KINDS])
    names = "".join(f"{folder}/{i}.json\n" for i in range(count))
    began = time.monotonic()
    subprocess.run([revisit, "merge", "--runs", "--list", "-", "-o", folder / "sum.json", "--quiet"], input=names, text=True, check=True)
    seconds = time.monotonic() - began
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    merged = json.loads((folder / "sum.json").read_text())
    expected = sum(json.loads(texts[i])["accesses"] * len(range(i, count, KINDS)) for i in range(min(KINDS, count)))
    if merged["accesses"] != expected:
        sys.exit(f"{merged['accesses']} accesses, expected {expected}")
    size = sum(map(len, texts)) / KINDS
    megabytes = used.ru_maxrss / 1024
    print(f"{count} profiles of {size / 1000:.0f} KB, {len(merged['sites'])} sites, {len(merged['pairs'])} pairs: "
          f"{seconds:.1f} s by the clock, {megabytes:.0f} MB at most")
    sys.exit(seconds > SECONDS * count / 100_000 or megabytes > MEGABYTES)
