#!/bin/sh
# Everything that needs a GPU, in one go: build, unit tests, sanitizers on small inputs, the table of
# docs/benchmarks.md. usage: bench/gpu_check.sh [BUILD_DIRECTORY [LOG2_ACCESSES [LOG2_CHECKED]]]
set -eu
cd "$(dirname "$0")/.."
build=${1:-build-gpu}
cmake -S . -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=RelWithDebInfo -DCMAKE_CXX_FLAGS_RELWITHDEBINFO="-O3 -g1 -DNDEBUG" \
      >"$build.log" 2>&1 || { cat "$build.log"; exit 1; }
cmake --build "$build" -j "$(nproc)" --target revisit_gpu_tests bench_gpu >>"$build.log" 2>&1 || { tail -60 "$build.log"; exit 1; }
"$build/revisit_gpu_tests" --gtest_brief=1
if command -v compute-sanitizer >/dev/null; then
    for tool in memcheck racecheck; do
        compute-sanitizer --tool "$tool" --error-exitcode 9 "$build/revisit_gpu_tests" --gtest_brief=1 \
            --gtest_filter='*sanitizers*' | tail -4
    done
fi
"$build/bench_gpu" "${2:-29}" "${3:-26}"
