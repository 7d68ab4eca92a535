#!/usr/bin/env python3
"""Many profiles: merged from a list, pushed to a collector over HTTP, compared with their noise.

    fleet_check.py BUILD SOURCE
"""
import gzip, http.server, json, os, pathlib, random, shutil, subprocess, sys, tempfile, threading, urllib.parse

import checks
from checks import expect

build, source = (pathlib.Path(argument).resolve() for argument in sys.argv[1:3])
environment = {**os.environ, "PATH": f"{build}:{os.environ['PATH']}"}
scratch = pathlib.Path(tempfile.mkdtemp())


def run(*command, **options):
    return checks.run(*command, environment=environment, cwd=scratch, **options)


def write_runs(folder, near, chance):
    """Runs of a service: a share of the reuses is near, and differs a little from run to run."""
    folder.mkdir()
    for i in range(60):
        share = near + chance.gauss(0, 0.02)
        close = round(9000 * share)
        profile = {"schema": "revisit/profile@1", "method": "exact", "model": "single", "granularity": 64,
                   "accesses": 10000, "distinct": 1000,
                   "reuse": {"cold": 1000, "invalidated": 0, "bins": [[64, 128, close], [65536, 131072, 9000 - close]]}}
        (folder / f"{i}.json").write_text(json.dumps(profile))


chance = random.Random(11)
for name, near in {"one": 0.7, "same": 0.7, "worse": 0.6}.items():
    write_runs(scratch / name, near, chance)
    names = "".join(f"{path}\n" for path in sorted((scratch / name).iterdir()))
    run("revisit", "merge", "--runs", "--list", "-", "-o", f"{name}.json", "--quiet", input=names)
    merged = json.loads((scratch / f"{name}.json").read_text())
    expect(merged["accesses"] == 600000 and len(merged["runs"]) == 16 and sum(r["runs"] for r in merged["runs"]) == 60,
           f"{name}: {merged['accesses']} accesses")
gate = ["--cache", "LLC=1M:full:64", "--fail-if", "llc.miss_rate > +1%"]
same = json.loads(run("revisit", "diff", "one.json", "same.json", "--json", *gate))
run("revisit", "diff", "one.json", "worse.json", *gate, status=1)
text = run("revisit", "diff", "one.json", "same.json", *gate)
expect("60 runs" in text or "60" in json.dumps(same), text)
(scratch / "empty").write_text("")
run("revisit", "merge", "--list", "empty", "-o", "none.json", status=2)
expect(not (scratch / "none.json").exists(), "something was written")

if not shutil.which("curl"):
    print("merged and compared; curl is not installed, nothing was pushed")
    sys.exit(0)

received = []


class Collector(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        received.append((self.path, self.headers["Content-Type"], body))
        self.send_response(200 if self.path.startswith("/ingest?") else 404)
        self.end_headers()

    def log_message(self, *_):
        pass


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Collector)
threading.Thread(target=server.serve_forever, daemon=True).start()
url = f"http://127.0.0.1:{server.server_port}"
environment["no_proxy"] = "127.0.0.1"
run("sh", source / "examples/fleet/push.sh", source / "tests/golden/data/base.json", "service", url)
[(path, kind, body)] = received
query = urllib.parse.parse_qs(urllib.parse.urlparse(path).query)
expect(query["name"] == ["service"] and query["format"] == ["pprof"] and int(query["until"][0]) - int(query["from"][0]) == 5, path)
expect(kind.startswith("multipart/form-data"), kind)
part = body.split(b"\r\n\r\n", 1)[1].rsplit(b"\r\n--", 1)[0]
profile = gzip.decompress(part)
for word in (b"accesses", json.loads((source / "tests/golden/data/base.json").read_text())["sites"][0]["function"].encode()):
    expect(word in profile, f"{word} is not in the profile that arrived")
# A collector that refuses, and one that is not there, are failures.
done = subprocess.run(["sh", source / "examples/fleet/push.sh", source / "tests/golden/data/base.json", "service", url + "/wrong"],
                      capture_output=True, env=environment)
expect(done.returncode != 0, "a refused push went unnoticed")

# The whole recipe, where this machine can sample a process.
doctor = json.loads(run("revisit", "doctor", "--json"))
pushed = len(received)
busy = subprocess.Popen([sys.executable, "-c", "a = list(range(300000))\nwhile True: sum(a[::7])"])
try:
    done = subprocess.run(["sh", source / "examples/fleet/sample.sh", str(busy.pid), "busy", url, scratch / "kept", "1", "1", "1"],
                          capture_output=True, text=True, env=environment, timeout=120)
finally:
    busy.kill()
if len(list((scratch / "kept").glob("*.json"))) == 1:
    expect(len(received) == pushed + 1, done.stderr)
    print("merged, compared, pushed; a process was sampled and pushed")
else:
    print(f"merged, compared, pushed; this machine could not sample a process: {done.stderr.strip()}")
shutil.rmtree(scratch)
