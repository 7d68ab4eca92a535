// The threads of a tree of processes, seized by ptrace: which there are, what stops them, and going on.
//
// Problem. A thread is sampled while it stands still, and the program must not notice. Idea. All
// threads are seized (PTRACE_SEIZE): nothing is sent to them, and if this process dies the kernel lets
// them go. Events of the kernel name new threads and processes; signals stop at us and are passed on as
// they came, stops of job control are left as they are (PTRACE_LISTEN). When a thread's timer fires
// (events.h) and it runs, it is interrupted, sampled and goes on. A process that forks often is let go
// between samples (unseized.h). A thread that waits in the kernel is never interrupted: some system
// calls would return EINTR. The timer fires in user code alone, and whether it has blocked since is
// asked before.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "record/launch.h"
#include "watch/outside/sampler.h"

namespace revisit::watch::outside {

struct Outcome;

struct RunOptions {
    Settings settings;
    bool objects = true;
    record::Program program;  // to be started, or
    pid_t attach = 0;         // one that runs
    record::LaunchOptions launch;
    record::Environment environment;
    std::string preloaded;  // the library that LD_PRELOAD begins with there; empty = none
    bool children = true;   // processes that it starts are sampled too
    std::optional<std::chrono::milliseconds> duration;
    // Called every so often with what was sampled so far, on a thread of its own: sampling goes on. A
    // call that takes longer delays the next.
    std::function<void(Outcome so_far)> look = {};
    std::chrono::milliseconds look_every{1000};
};

struct Outcome {
    int exit_status = 0;  // as a shell reports it: 128 + signal for a program ended by one
    int signal = 0;       // that signal, or 0
    bool limit_reached = false;
    unsigned runs = 1;             // of the program; processes and programs are of all of them
    bool ended_otherwise = false;  // the last run, than the first
    bool detached = false;         // the program goes on
    bool attached = false;         // it had run before
    std::size_t outlived = 0;      // children that go on when it has ended
    std::vector<std::unique_ptr<Process>> processes;  // in the order in which they began
    std::vector<std::unique_ptr<Program>> programs;   // that they run
};

// Runs the program, or attaches to one, until it or the time given ends. Samples of programs that are
// known from an earlier run are added to theirs, as further threads.
Result<Outcome> run(const RunOptions& options, std::vector<std::unique_ptr<Program>> known = {});

}  // namespace revisit::watch::outside
