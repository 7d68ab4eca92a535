"""Makes a wheel of the built module, for the python3 that runs this and machines like this one.

    wheel.py MODULE VERSION FOLDER
"""
import base64, hashlib, pathlib, sys, sysconfig, zipfile

module, version, folder = pathlib.Path(sys.argv[1]), sys.argv[2], pathlib.Path(sys.argv[3])
python = f"cp{sys.version_info.major}{sys.version_info.minor}"
tag = f"{python}-{python}-{sysconfig.get_platform().replace('-', '_').replace('.', '_')}"
info = f"revisit-{version}.dist-info"
files = {
    module.name: module.read_bytes(),
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
path = folder / f"revisit-{version}-{tag}.whl"
with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as wheel:
    for name, content in files.items():
        entry = zipfile.ZipInfo(name, date_time=(1980, 1, 1, 0, 0, 0))
        entry.external_attr, entry.compress_type = 0o644 << 16, zipfile.ZIP_DEFLATED
        wheel.writestr(entry, content)
print(path)
