#!/usr/bin/env python3
"""Installs revisit into a scratch folder, as a user would have it, and builds and runs the examples of
docs/library.md and docs/python.md against it: C, C++20, C++23, by CMake and by pkg-config.

    run.py BUILD SOURCE [PYTHON]     PYTHON: the python3 the module was built for
"""
import os, pathlib, re, shutil, subprocess, sys, tempfile

build, source = (pathlib.Path(argument).resolve() for argument in sys.argv[1:3])
python = sys.argv[3] if len(sys.argv) > 3 else ""
scratch = pathlib.Path(tempfile.mkdtemp())
prefix = scratch / "prefix"
failures = []


def run(*command, environment=None, cwd=None):
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, cwd=cwd,
                          env={**os.environ, **(environment or {})})
    if done.returncode != 0:
        failures.append(f"{' '.join(map(str, command))}: status {done.returncode}\n{done.stdout[-2000:]}{done.stderr[-3000:]}")
    return done.stdout


def expect(good, what):
    if not good:
        failures.append(what)


def same(what, found, expected):
    expect(found.strip() == expected.strip(), f"{what}: expected {expected!r}, found {found!r}")


def examples(page, language):
    """The programs of a page and what it says that they print."""
    text = (source / page).read_text()
    return re.findall(rf"^```{language}\n(.*?)^```\n.*?^```text\n(.*?)^```$", text, re.M | re.S)


run("cmake", "--install", build, "--prefix", prefix)
library = next(prefix.rglob("librevisit.a")).parent
pkg_config = {"PKG_CONFIG_PATH": str(library / "pkgconfig")}
at_run_time = {"LD_LIBRARY_PATH": str(library)}
compiler, c_compiler = os.environ.get("CXX", "c++"), os.environ.get("CC", "cc")

# --- C++ by CMake: the component core asks for nothing else, whatever else is missing. ---
(first, first_prints), (second, second_prints) = examples("docs/library.md", "cpp")
project = scratch / "project"
project.mkdir()
(project / "first.cpp").write_text(first)
(project / "second.cpp").write_text(second)
(project / "CMakeLists.txt").write_text("""cmake_minimum_required(VERSION 3.25)
project(example CXX)
foreach(name MPI nlohmann_json CLI11 LLVM)
  set(CMAKE_DISABLE_FIND_PACKAGE_${name} TRUE)
endforeach()
find_package(revisit REQUIRED COMPONENTS core shared)
find_package(revisit QUIET COMPONENTS gui)
if(revisit_FOUND)
  message(FATAL_ERROR "a component that does not exist was found")
endif()
add_executable(first first.cpp)
target_link_libraries(first revisit::core)
set_target_properties(first PROPERTIES CXX_STANDARD 20 CXX_EXTENSIONS OFF)
add_executable(second second.cpp)
target_link_libraries(second revisit::shared)
set_target_properties(second PROPERTIES CXX_STANDARD 20 CXX_EXTENSIONS OFF)
""")
run("cmake", "-S", project, "-B", scratch / "cmake", "-G", "Ninja", f"-DCMAKE_PREFIX_PATH={prefix}",
    "-DCMAKE_CXX_FLAGS=-Wall -Wextra -Werror")
run("cmake", "--build", scratch / "cmake")
same("first example, CMake, core, C++20", run(scratch / "cmake/first"), first_prints)
same("second example, CMake, shared, C++20", run(scratch / "cmake/second"), second_prints)

# --- C++23 and C by pkg-config. ---
same("prefix of revisit.pc", run("pkg-config", "--variable=prefix", "revisit", environment=pkg_config), str(prefix))
flags = run("pkg-config", "--cflags", "--libs", "revisit", environment=pkg_config).split()
expect("-lfmt" not in flags, f"the shared library brings fmt along: {flags}")
run(compiler, "-std=c++23", project / "first.cpp", "-o", scratch / "first23", *flags)
same("first example, pkg-config, shared, C++23", run(scratch / "first23", environment=at_run_time), first_prints)
static = run("pkg-config", "--static", "--cflags", "--libs", "revisit", environment=pkg_config).split()
archives = [name for name in ("fmt", "zstd", "z", "lzma")
            if pathlib.Path(run(compiler, f"-print-file-name=lib{name}.a").strip()).is_absolute()]
(library / "librevisit.so").rename(library / "librevisit.so.aside")  # -static needs all, this only ours
run(compiler, "-std=c++20", project / "second.cpp", "-o", scratch / "second-static",
    *(["-static"] if len(archives) == 4 else []), *static)
(library / "librevisit.so.aside").rename(library / "librevisit.so")
same("second example, pkg-config, static", run(scratch / "second-static"), second_prints)
if len(archives) < 4:
    print(f"linked with -lrevisit's archive; all static needs archives of {sorted({'fmt', 'zstd', 'z', 'lzma'} - set(archives))} as well")

[(c_program, c_prints)] = examples("docs/library.md", "c")
(project / "example.c").write_text(c_program)
for standard in ("c99", "c17"):
    run(c_compiler, f"-std={standard}", "-Wall", "-Wextra", "-Werror", "-pedantic", project / "example.c", "-o", scratch / "c", *flags)
    same(f"C example, {standard}", run(scratch / "c", environment=at_run_time), c_prints)
run(c_compiler, "-std=gnu11", "-Wall", "-Wextra", "-Werror", source / "examples/c/stream.c", "-o", scratch / "stream", *flags)
same("streaming C client", run(scratch / "stream", environment=at_run_time),
     "131072 accesses to 4096 blocks\ndistance 0 to 0: 114688\ndistance 2048 to 4095: 12288\nL1 hits 87.50 %, L2 hits 96.87 %")

# --- The shared library: its name, what it shows and what it needs. ---
version = re.search(r'VERSION_STRING "(\d+)\.(\d+)\.(\d+)"', (source / "include/revisit/version.h").read_text())
shared = library / f"librevisit.so.{version[1]}.{version[2]}.{version[3]}"
expect(shared.exists(), f"{shared} is missing")
dynamic = run("objdump", "-p", shared)
same("soname", "".join(re.findall(r"SONAME\s+(\S+)", dynamic)), f"librevisit.so.{version[1]}.{version[2]}")
needed = set(re.findall(r"NEEDED\s+(lib[a-z_+]+)", dynamic))
allowed = {"libfmt", "libzstd", "libz", "liblzma", "libstdc++", "libm", "libgcc_s", "libc"}
expect(needed <= allowed, f"the shared library needs {sorted(needed - allowed)}")
shown = [line.split(maxsplit=2)[2] for line in run("nm", "-DC", "--defined-only", shared).splitlines()]
strange = [name for name in shown if not re.match(r"(revisit::|revisit_|REVISIT|vtable for revisit::|typeinfo (name )?for revisit::)", name)]
expect(len(shown) > 50 and not strange, f"the shared library shows {strange[:5]}")
for inner in ("ExactEngine", "JsonReader", "ByteStream", "json_abi", "fmt::"):
    expect(not any(inner in name.split("(")[0] for name in shown), f"the shared library shows {inner}")

# --- The program, its pages and completions. ---
same("version", run(prefix / "bin/revisit", "--version"), f"revisit {version[1]}.{version[2]}.{version[3]}")
for page in ("revisit", "revisit-analyze", "revisit-cache"):
    text = next(prefix.rglob(f"{page}.1")).read_text()
    expect(".SH SEE ALSO\n" in text and "\\-report (1)" in text, f"{page}.1 has no SEE ALSO")
for file in ("bash-completion/completions/revisit", "zsh/site-functions/_revisit", "fish/vendor_completions.d/revisit.fish"):
    expect((prefix / "share" / file).stat().st_size > 0, file)

# --- Python: the page's examples with the installed module. ---
if python:
    modules = {"PYTHONPATH": str(next(prefix.rglob("revisit.*.so")).parent)}
    text = (source / "docs/python.md").read_text()
    for code, prints in re.findall(r"^\$ python3 -c '\n(.*?)^> '\n(.*?)^(?:```|\$)", text, re.M | re.S):
        same("Python example", run(python, "-c", re.sub(r"^> ", "", code, flags=re.M), environment=modules, cwd=scratch), prints)
    expect(next(prefix.rglob("revisit-stubs/__init__.pyi")).stat().st_size > 0, "the stubs are not installed")

shutil.rmtree(scratch)
if failures:
    sys.exit("\n".join(failures))
print("installed; examples built and run by CMake and pkg-config, in C, C++20, C++23 and Python")
