#!/usr/bin/env python3
"""Reads the profiles kept from earlier versions with every command that takes one.

    schema_check.py BUILD

A profile written by version 0.1 must stay readable, with the same numbers, as long as the schema's major
number is 1. tests/golden/data/profiles-VERSION holds what that version wrote; never rewrite these files.
"""
import json, pathlib, subprocess, sys, tempfile

revisit = str(pathlib.Path(sys.argv[1]).resolve() / "revisit")
kept = sorted((pathlib.Path(__file__).resolve().parent / "golden/data").glob("profiles-*/*.json"))
failures = []


def run(*arguments, status=0):
    done = subprocess.run([revisit, *map(str, arguments)], text=True, capture_output=True, timeout=120)
    if done.returncode != status:
        failures.append(f"revisit {' '.join(map(str, arguments))}: status {done.returncode}, expected {status}: {done.stderr.strip()}")
    return done


def numbers(profile):
    """What no later version may read differently."""
    found = {key: profile[key] for key in ("method", "model", "granularity", "accesses", "distinct")}
    for key in ("reuse", "time"):
        if key in profile:
            found[key] = {part: profile[key].get(part) for part in ("cold", "invalidated", "bins")}
    found["sites"] = sorted((site["accesses"], site.get("line", 0)) for site in profile.get("sites", []))
    found["objects"] = sorted(thing["name"] for thing in profile.get("objects", []))
    found["threads"] = len(profile.get("threads", []))
    return found


made = subprocess.run([revisit, "report", kept[0], "-o", "/dev/null"], text=True, capture_output=True)
has_page = "is not in this build" not in made.stderr
assert len(kept) >= 8, "the kept profiles are missing"
with tempfile.TemporaryDirectory() as scratch:
    scratch = pathlib.Path(scratch)
    for file in kept:
        before = json.loads(file.read_text())
        again, page = scratch / "again.json", scratch / "page.html"
        again.unlink(missing_ok=True)
        run("merge", file, "-o", again)
        if again.exists():
            after = json.loads(again.read_text())
            for key, value in numbers(before).items():
                if numbers(after)[key] != value:
                    failures.append(f"{file.name}: {key} was {value}, is {numbers(after)[key]} when read and written again")
        run("report", file)
        if has_page:
            run("report", file, "-o", page)
        run("export", file, "-o", scratch / "out.pb.gz")
        compared = run("diff", file, file, "--json")
        if compared.returncode == 0 and json.loads(compared.stdout)["S"] != 1:
            failures.append(f"{file.name}: S with itself is {json.loads(compared.stdout)['S']}")
        if before["granularity"] == 64:
            run("cache", file, "--cache", "32K:8:64", "--json")

    # Later versions add keys, which earlier ones pass over; they raise the minor number at most.
    later = json.loads(kept[0].read_text())
    later["from a later version"] = {"nested": [1, {"deep": None}], "text": "…"}
    for schema, status in (("revisit/profile@1", 0), ("revisit/profile@1.7", 0), ("revisit/profile@2", 2), ("revisit/profile@10", 2), ("revisit/profile", 2)):
        (scratch / "later.json").write_text(json.dumps(dict({"schema": schema}, **{k: v for k, v in later.items() if k != "schema"})))
        done = run("report", scratch / "later.json", status=status)
        if status and (done.stderr.count("\n") != 1 or schema not in done.stderr):
            failures.append(f"{schema}: expected one line naming it, found: {done.stderr}")

for failure in failures:
    print(failure)
print(f"{len(kept)} kept profiles, {len(failures)} failures")
sys.exit(bool(failures))
