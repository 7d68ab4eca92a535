// Profiling by sampling: a program runs as it is, with a library in it that samples its accesses and
// watches for their reuse. See docs/watch.md.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "record/run.h"
#include "record/sinks.h"
#include "watch/estimate/estimate.h"
#include "watch/preload/settings.h"

namespace revisit::watch {

struct WatchOptions {
    Settings settings;  // of the sampler
    EstimateOptions estimate;
};

// The sampler's library; an Error that says what is missing where it cannot be used here.
Result<std::string> find_sampler();
// Whether samples can be taken here and watchpoints catch their reuse.
bool works_here();
// Whether the program can have it loaded.
Result<void> check_program(const record::Program& program);
// What the linker is told so that a static program has the sampler in it.
Result<std::string> static_link_line();
std::string settings_text(const Settings& settings);
std::uint64_t own_filters();  // on the system calls of this process (seccomp)

// Runs the program under valgrind, its input and output at /dev/null, and counts the blocks that each
// function accesses.
Result<FunctionCounts> count_accesses(record::RunOptions run, std::uint64_t granularity);

// Gathers a process's samples; `take` gets the explained profile when the process has ended.
std::unique_ptr<record::ProcessSink> make_watch_sink(const EstimateOptions& options,
                                                     const FunctionCounts* counts,
                                                     record::TakeProfile take);

}  // namespace revisit::watch
