"""Makes a wheel of the built module, for the python3 that runs this.

    wheel.py MODULE VERSION FOLDER

The platform in its name is the truth: manylinux_X_Y where the module needs nothing but a C library of version X.Y
or later (PEP 600), and linux, which means machines like this one, where it needs other libraries of the system.
"""
import base64, hashlib, pathlib, re, shutil, subprocess, sys, sysconfig, tempfile, zipfile

module, version, folder = pathlib.Path(sys.argv[1]), sys.argv[2], pathlib.Path(sys.argv[3])
stubs = pathlib.Path(__file__).with_name("revisit.pyi")
# What a manylinux wheel may need; the C++ library is in the module.
ALLOWED = re.compile(r"(libc|libm|libdl|librt|libpthread|ld-linux-[a-z0-9_-]+|libgcc_s|libstdc\+\+)\.so\.\d+$")


def platform():
    machine = sysconfig.get_platform().replace("-", "_").replace(".", "_").removeprefix("linux_")
    dump = subprocess.run(["objdump", "-p", "-T", module], capture_output=True, text=True, check=True).stdout
    needed = re.findall(r"^\s+NEEDED\s+(\S+)", dump, re.M)
    foreign = [name for name in needed if not ALLOWED.match(name)]
    if foreign:
        print(f"wheel: needs {', '.join(foreign)} of the system", file=sys.stderr)
        return f"linux_{machine}"
    if any(name.startswith("libstdc++") for name in needed):  # whose version manylinux bounds too
        return f"linux_{machine}"
    glibc = max(tuple(map(int, found)) for found in re.findall(r"GLIBC_(\d+)\.(\d+)", dump))
    return f"manylinux_{glibc[0]}_{glibc[1]}_{machine}"


def without_debug_information():
    if not shutil.which("strip"):
        return module.read_bytes()
    with tempfile.NamedTemporaryFile() as stripped:
        subprocess.run(["strip", "--strip-unneeded", "-o", stripped.name, module], check=True)
        return pathlib.Path(stripped.name).read_bytes()


python = f"cp{sys.version_info.major}{sys.version_info.minor}"
tag = f"{python}-{python}-{platform()}"
info = f"revisit-{version}.dist-info"
files = {
    module.name: without_debug_information(),
    "revisit-stubs/__init__.pyi": stubs.read_bytes(),
    f"{info}/METADATA": f"""Metadata-Version: 2.1
Name: revisit
Version: {version}
Summary: How programs reuse memory: reuse distance, measured, modelled and explained
Requires-Python: =={sys.version_info.major}.{sys.version_info.minor}.*
Requires-Dist: numpy
""".encode(),
    f"{info}/WHEEL": f"Wheel-Version: 1.0\nGenerator: revisit\nRoot-Is-Purelib: false\nTag: {tag}\n".encode(),
}
record = ""
for name, content in files.items():
    digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
    record += f"{name},sha256={digest},{len(content)}\n"
files[f"{info}/RECORD"] = (record + f"{info}/RECORD,,\n").encode()

folder.mkdir(parents=True, exist_ok=True)
for old in folder.glob("revisit-*.whl"):
    old.unlink()
path = folder / f"revisit-{version}-{tag}.whl"
with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as wheel:
    for name, content in files.items():
        entry = zipfile.ZipInfo(name, date_time=(1980, 1, 1, 0, 0, 0))
        entry.external_attr, entry.compress_type = 0o644 << 16, zipfile.ZIP_DEFLATED
        wheel.writestr(entry, content)
print(path)
