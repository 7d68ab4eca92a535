"""What pip calls to make a wheel of this checkout (PEP 517): CMake builds the module, wheel.py packs it."""
import os, pathlib, subprocess, sys

root = pathlib.Path(__file__).resolve().parent.parent


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    build = pathlib.Path(os.environ.get("REVISIT_BUILD", root / "build-wheel"))
    configure = ["cmake", "-S", str(root), "-B", str(build), "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release",
                 f"-DREVISIT_PYTHON={sys.executable}", "-DREVISIT_TESTS=OFF", "-DREVISIT_BENCH=OFF"]
    if not (build / "build.ninja").exists():
        subprocess.run(configure, check=True, stdout=sys.stderr)
    subprocess.run(["cmake", "--build", str(build), "--target", "wheel"], check=True, stdout=sys.stderr)
    made = max((build / "packages").glob("*.whl"), key=lambda path: path.stat().st_mtime)
    target = pathlib.Path(wheel_directory) / made.name
    target.write_bytes(made.read_bytes())
    return made.name


def build_sdist(sdist_directory, config_settings=None):
    """The files of the checkout, as git knows them."""
    import tarfile
    version = [line.split('"')[1] for line in (root / "include/revisit/version.h").read_text().splitlines()
               if "VERSION_STRING" in line and '"' in line][0]
    name = f"revisit-{version}"
    files = subprocess.run(["git", "-C", str(root), "ls-files", "-z"], check=True, capture_output=True).stdout
    info = f"Metadata-Version: 2.1\nName: revisit\nVersion: {version}\n".encode()
    with tarfile.open(pathlib.Path(sdist_directory) / f"{name}.tar.gz", "w:gz") as archive:
        import io
        entry = tarfile.TarInfo(f"{name}/PKG-INFO")
        entry.size = len(info)
        archive.addfile(entry, io.BytesIO(info))
        for file in files.decode().split("\0"):
            if file:
                archive.add(root / file, f"{name}/{file}")
    return f"{name}.tar.gz"
