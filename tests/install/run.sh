#!/bin/sh
# Installs revisit into a scratch folder and compiles the library page's example against it, once through
# find_package and once through pkg-config.
set -eu
build=$1
source=$2
python=${3-}  # the python3 the module was built for; empty where it was not
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cmake --install "$build" --prefix "$scratch/prefix" >/dev/null

mkdir "$scratch/example"
sed -n '/^```cpp$/,/^```$/p' "$source/docs/library.md" | sed '/^```/d' >"$scratch/example/main.cpp"
cat >"$scratch/example/CMakeLists.txt" <<'END'
cmake_minimum_required(VERSION 3.25)
project(example CXX)
find_package(revisit REQUIRED)
add_executable(example main.cpp)
target_link_libraries(example revisit::revisit)
END
cmake -S "$scratch/example" -B "$scratch/build" -G Ninja -DCMAKE_PREFIX_PATH="$scratch/prefix" >/dev/null
cmake --build "$scratch/build" >/dev/null
expected='L1 hits 0.0 %, L2 hits 99.5 %'
[ "$("$scratch/build/example")" = "$expected" ]

pc=$(dirname "$(find "$scratch/prefix" -name revisit.pc)")
flags=$(PKG_CONFIG_PATH="$pc" pkg-config --define-prefix --cflags --libs revisit)
c++ -std=c++23 "$scratch/example/main.cpp" -o "$scratch/by-pkg-config" $flags
[ "$("$scratch/by-pkg-config")" = "$expected" ]

"$scratch/prefix/bin/revisit" --version
for page in revisit revisit-analyze revisit-cache; do
    [ -s "$scratch/prefix/share/man/man1/$page.1" ]
done
[ -s "$scratch/prefix/share/bash-completion/completions/revisit" ]
bash -n "$scratch/prefix/share/bash-completion/completions/revisit"
if [ -n "$python" ]; then
    module=$(find "$scratch/prefix" -name 'revisit.*.so')
    [ "$(PYTHONPATH=$(dirname "$module") "$python" -c 'import revisit; print(revisit.analyze([0, 64, 0]).reuse.finite)')" = 1.0 ]
fi
echo "installed, found by CMake and pkg-config"
