#!/usr/bin/env python3
"""Builds and runs the examples of docs/library.md and docs/python.md against an installed revisit, as a user has it: C, C++20
and C++23, by CMake, by pkg-config and by the lines of the pages.

    run.py BUILD SOURCE [PYTHON]               installs a build into a scratch folder first
    run.py --installed PREFIX SOURCE [PYTHON]  what is there already, such as /usr after `apt install`

PYTHON is the python3 that the module was built for; without it the module is not tried.
"""
import os, pathlib, re, shutil, sys, tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from checks import expect, run, same

arguments = sys.argv[1:]
installed = arguments[0] == "--installed"
where, source = (pathlib.Path(argument).resolve() for argument in arguments[installed:installed + 2])
python = "".join(arguments[installed + 2:])
scratch = pathlib.Path(tempfile.mkdtemp())
compiler, c_compiler = os.environ.get("CXX", "c++"), os.environ.get("CC", "cc")


def examples(page, language):
    """The programs of a page and the output it shows for them."""
    text = (source / page).read_text()
    return re.findall(rf"^```{language}\n(.*?)^```\n.*?^```text\n(.*?)^```$", text, re.M | re.S)


if installed:
    prefix, environment = where, {}
    library = pathlib.Path(run("pkg-config", "--variable=libdir", "revisit").strip()).resolve()
else:
    prefix = scratch / "prefix"
    run("cmake", "--install", where, "--prefix", prefix)
    library = next(prefix.rglob("librevisit.a")).parent
    environment = {"PKG_CONFIG_PATH": str(library / "pkgconfig"), "CMAKE_PREFIX_PATH": str(prefix), "LD_LIBRARY_PATH": str(library)}
page = (source / "docs/library.md").read_text()
project = scratch / "project"
project.mkdir()

# --- C++ by CMake, the lines of the page's table: the component core needs nothing else, whatever else is missing. ---
(first, first_prints), (second, second_prints) = examples("docs/library.md", "cpp")
[(c_program, c_prints)] = examples("docs/library.md", "c")
[stored] = re.findall(r"^```c\+\+\n(.*?)^```$", page, re.M | re.S)
(project / "first.cpp").write_text(first)
(project / "second.cpp").write_text(second)
(project / "third.cpp").write_text("#include <revisit/revisit.h>\n#include <cstdio>\nint main() {\n" + stored +
                                   "if (!profile) return std::puts(profile.error().sentence().c_str()), 2;\n"
                                   'std::printf("%.0f accesses, %.0f blocks\\n", profile->accesses, profile->distinct);\n}\n')
cmake_lines = re.findall(r"^\| CMake, (\w+) \| `(find_package\(.*?\))`, `(target_link_libraries\(.*?\))` \|$", page, re.M)
expect([kind for kind, _, _ in cmake_lines] == ["static", "shared"], f"the table of docs/library.md has {cmake_lines}")
for kind, find, link in cmake_lines:
    folder = scratch / f"cmake-{kind}"
    folder.mkdir()
    targets = "".join(f"add_executable({name}{standard} {project}/{name}.cpp)\n" + link.replace("(app ", f"({name}{standard} ") + "\n" +
                      f"set_target_properties({name}{standard} PROPERTIES CXX_STANDARD {standard} CXX_EXTENSIONS OFF)\n"
                      for name in ("first", "second", "third") for standard in ((20, 23) if name == "first" else (20,)))
    (folder / "CMakeLists.txt").write_text(f"""cmake_minimum_required(VERSION 3.25)
project(example CXX)
foreach(name MPI nlohmann_json CLI11 LLVM)
  set(CMAKE_DISABLE_FIND_PACKAGE_${{name}} TRUE)
endforeach()
{find}
find_package(revisit QUIET COMPONENTS gui)
if(revisit_FOUND)
  message(FATAL_ERROR "a component that does not exist was found")
endif()
{targets}""")
    run("cmake", "-S", folder, "-B", folder / "build", "-G", "Ninja", "-DCMAKE_CXX_FLAGS=-Wall -Wextra -Werror", environment=environment)
    run("cmake", "--build", folder / "build")
    for standard in (20, 23):
        same(f"first example, CMake, {kind}, C++{standard}", run(folder / f"build/first{standard}"), first_prints)
    same(f"second example, CMake, {kind}", run(folder / "build/second20"), second_prints)
    run(prefix / "bin/revisit", "generate", "--distribution", "zipf:0.9", "--length", "50000", "--distinct", "1000", "-o", folder / "trace.rvt", "--quiet")
    same(f"example of a stored trace, CMake, {kind}", run(folder / "build/third20", cwd=folder), "50000 accesses, 1000 blocks")

# --- pkg-config, the lines of the table. ---
found_prefix = run("pkg-config", "--variable=prefix", "revisit", environment=environment).strip()
expect(pathlib.Path(found_prefix).resolve() == prefix, f"revisit.pc says that it is installed to {found_prefix}")
flags = run("pkg-config", "--cflags", "--libs", "revisit", environment=environment).split()
expect("-lfmt" not in flags, f"the shared library brings fmt along: {flags}")
archives = [name for name in ("fmt", "zstd", "z", "lzma")
            if pathlib.Path(run(compiler, f"-print-file-name=lib{name}.a").strip()).is_absolute()]
(project / "app.c").write_text(c_program)
(project / "app.cpp").write_text(first)
lines = dict(re.findall(r"^\| pkg-config, (.*?) \| `(.*?)`.* \|$", page, re.M))
expect(set(lines) == {"C, shared", "C++, shared", "C++, all static"}, f"the table of docs/library.md has {lines}")
for kind, line in lines.items():
    if kind.endswith("static") and len(archives) < 4:
        print(f"not linked all static: there is no archive of {sorted({'fmt', 'zstd', 'z', 'lzma'} - set(archives))}")
        continue
    tool, rest = line.split(" ", 1)
    run("sh", "-c", f"{ {'cc': c_compiler, 'c++': compiler}[tool] } {rest}", cwd=project, environment=environment)
    same(f"{kind}, pkg-config", run("./a.out", cwd=project, environment=environment), first_prints if "++" in kind else c_prints)
    if kind.endswith("static"):
        expect("NEEDED" not in run("objdump", "-p", project / "a.out"), f"{line} needs shared libraries")
run(compiler, "-std=c++23", project / "second.cpp", "-o", scratch / "second23", *flags)
same("second example, pkg-config, shared, C++23", run(scratch / "second23", environment=environment), second_prints)
# Our archive alone, beside the system's shared libraries: works everywhere.
static = run("pkg-config", "--static", "--cflags", "--libs", "revisit", environment=environment).split()
run(compiler, "-std=c++20", project / "second.cpp", "-o", scratch / "second-static",
    *("-l:librevisit.a" if flag == "-lrevisit" else flag for flag in static))
same("second example, pkg-config, archive", run(scratch / "second-static"), second_prints)

for standard in ("c99", "c17"):
    run(c_compiler, f"-std={standard}", "-Wall", "-Wextra", "-Werror", "-pedantic", project / "app.c", "-o", scratch / "c", *flags)
    same(f"C example, {standard}", run(scratch / "c", environment=environment), c_prints)
run(c_compiler, "-std=gnu11", "-Wall", "-Wextra", "-Werror", source / "examples/c/stream.c", "-o", scratch / "stream", *flags)
same("streaming C client", run(scratch / "stream", environment=environment),
     "131072 accesses to 4096 blocks\ndistance 0 to 0: 114688\ndistance 2048 to 4095: 12288\nL1 hits 87.50 %, L2 hits 96.87 %")

# --- The shared library: its name, what it shows and what it needs. ---
version = re.search(r'VERSION_STRING "(\d+)\.(\d+)\.(\d+)"', (source / "include/revisit/version.h").read_text())
shared = library / f"librevisit.so.{version[1]}.{version[2]}.{version[3]}"
expect(shared.exists(), f"{shared} is missing")
dynamic = run("objdump", "-p", shared)
same("soname", "".join(re.findall(r"SONAME\s+(\S+)", dynamic)), f"librevisit.so.{version[1]}")
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
for name in ("revisit", "revisit-analyze", "revisit-cache"):
    text = (prefix / f"share/man/man1/{name}.1").read_text()
    expect(".SH SEE ALSO\n" in text and "\\-report (1)" in text, f"{name}.1 has no SEE ALSO")
for file in ("bash-completion/completions/revisit", "zsh/site-functions/_revisit", "fish/vendor_completions.d/revisit.fish"):
    expect((prefix / "share" / file).stat().st_size > 0, file)

# --- Python: the page's commands with the installed module. ---
if python:
    modules = {"PATH": f"{pathlib.Path(python).parent}:{os.environ['PATH']}"}
    if not installed:
        modules["PYTHONPATH"] = str(next(prefix.rglob("revisit.*.so")).parent)
    run(python, source / "tests/golden/run.py", prefix / "bin", source / "docs/python.md", environment=modules)
    module = pathlib.Path(run(python, "-c", "import revisit; print(revisit.__file__)", environment=modules, cwd=scratch).strip())
    expect(module.is_relative_to(prefix), f"the module came from {module}")
    expect((module.parent / "revisit-stubs/__init__.pyi").stat().st_size > 0, "the stubs are not installed")

shutil.rmtree(scratch)
print("examples of the installed library built and run by CMake and pkg-config, in C, C++20 and C++23" + (", and in Python" if python else ""))
