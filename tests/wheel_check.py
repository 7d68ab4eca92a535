#!/usr/bin/env python3
"""The wheel that pip gets of a checkout: its name tells the truth, it is whole, and it works from where pip puts it.

    wheel_check.py BUILD SOURCE      run by the python3 the module was built for
"""
import base64, hashlib, os, pathlib, re, subprocess, sys, tempfile, zipfile

build, source = (pathlib.Path(argument).resolve() for argument in sys.argv[1:3])
os.environ["REVISIT_BUILD"] = str(build)
sys.path.insert(0, str(source / "python"))
sys.dont_write_bytecode = True
import backend


def expect(good, what):
    if not good:
        sys.exit(what)


with tempfile.TemporaryDirectory() as folder:
    folder = pathlib.Path(folder)
    name = backend.build_wheel(folder)
    version = re.search(r'VERSION_STRING "([0-9.]+)"', (source / "include/revisit/version.h").read_text())[1]
    python = f"cp{sys.version_info.major}{sys.version_info.minor}"
    machine = os.uname().machine
    expect(re.fullmatch(rf"revisit-{re.escape(version)}-{python}-{python}-(manylinux_2_\d+|linux)_{machine}\.whl", name), name)
    installed = folder / "installed"
    with zipfile.ZipFile(folder / name) as wheel:
        wheel.extractall(installed)
        record = wheel.read(f"revisit-{version}.dist-info/RECORD").decode().splitlines()
        tags = re.findall(r"^Tag: (.*)$", wheel.read(f"revisit-{version}.dist-info/WHEEL").decode(), re.M)
        expect({line.split(",")[0] for line in record} == set(wheel.namelist()), f"RECORD lists {record}")
        for line in record:
            file, digest, _ = line.split(",")
            if digest:
                found = base64.urlsafe_b64encode(hashlib.sha256(wheel.read(file)).digest()).rstrip(b"=").decode()
                expect(digest == f"sha256={found}", f"RECORD has another hash of {file}")
    expect(tags == [name.removesuffix(".whl").split("-", 2)[2]], f"{name} has tags {tags}")

    module = next(installed.glob("revisit.*.so"))
    dump = subprocess.run(["objdump", "-p", "-T", module], capture_output=True, text=True, check=True).stdout
    needed = re.findall(r"NEEDED\s+(\S+)", dump)
    foreign = [lib for lib in needed if not re.match(r"(libc|libm|libpthread|libdl|librt|ld-linux)[.-]", lib)]
    if "manylinux" in name:
        expect(not foreign, f"{name} needs {foreign}")
        glibc = max(int(minor) for minor in re.findall(r"GLIBC_2\.(\d+)", dump))
        expect(f"manylinux_2_{glibc}_" in name, f"{name} needs version 2.{glibc} of the C library")
    else:
        expect(foreign, f"{name} needs nothing of the system and is not called manylinux")
        for lib in foreign:  # what has an archive belongs into the module
            archive = subprocess.run(["c++", f"-print-file-name={lib.split('.so')[0]}.a"], capture_output=True, text=True).stdout.strip()
            expect(not os.path.isabs(archive), f"{name} needs {lib}, though there is {archive}")
    done = subprocess.run([sys.executable, "-c", "import revisit; print(revisit.__file__, revisit.analyze([0, 64, 0]).reuse.finite)"],
                          capture_output=True, text=True, env={**os.environ, "PYTHONPATH": str(installed)}, cwd=folder)
    expect(done.stdout == f"{module} 1.0\n", done.stdout + done.stderr)

    # pip itself, where it is: what it would do with `pip install .`, without a network.
    if subprocess.run([sys.executable, "-m", "pip", "--version"], capture_output=True).returncode == 0:
        done = subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", "--target",
                               folder / "by-pip", source], capture_output=True, text=True, cwd=folder)
        expect(done.returncode == 0 and list((folder / "by-pip").glob("revisit.*.so")), done.stdout + done.stderr)
print(name)
