// Profiling by sampling: a program runs as it is; its threads are stopped now and then to see what they
// access next, and watchpoints catch the reuse. See docs/watch.md.
#pragma once

#include "record/run.h"
#include "watch/estimate/estimate.h"
#include "watch/samples/settings.h"

namespace revisit::watch {

struct WatchOptions {
    Settings settings;  // of the sampler
    EstimateOptions estimate;
};

// Whether threads can be sampled here and watchpoints catch their reuse.
bool works_here();
// Whether blocks of so many bytes can be watched for: 8, 16, 32, 64 or 128.
bool can_watch(std::uint64_t granularity);
// Whether the program can be sampled.
Result<void> check_program(const record::Program& program);
// The library that knows blocks of the heap; empty where it is not installed.
std::string heap_library();
// What has it loaded.
record::Environment heap_environment(const std::string& library);

// Runs the program under valgrind, its input and output at /dev/null, and counts the blocks that each
// function accesses.
Result<FunctionCounts> count_accesses(record::RunOptions run, std::uint64_t granularity);

}  // namespace revisit::watch
