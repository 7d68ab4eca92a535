// A program that ends too soon, run again until there are samples enough.
//
// Problem. A run of 20 ms has a handful of samples, which say little. Idea. Samples of several runs are
// samples of one run taken more often: each thread's samples of a later run follow those of the same
// thread in the runs before, as if the program had gone on, and the estimate counts accesses per run.
// What waits for its reuse when a run ends has lost its watchpoint there, as at any end. Places are in
// files, so that runs whose addresses differ share them.
//
// Example. Runs of 6, 5 and 7 samples are one thread of 18; 3·10^6 accesses in all are 10^6 of the
// profile.
#pragma once

#include "watch/outside/tracer.h"

namespace revisit::watch::outside {

struct RepeatOptions {
    unsigned most_runs = 1;
    double samples = 0;  // enough
};

// Runs the program once, and again while samples are too few and it ends as it did first. Later runs
// print nothing, and read the same input where that is a file, else none.
Result<Outcome> run_repeatedly(RunOptions options, const RepeatOptions& repeat);

}  // namespace revisit::watch::outside
