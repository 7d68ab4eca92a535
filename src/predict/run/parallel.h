// OpenMP's parallel loops: which thread does which iterations.
#pragma once

#include <string>
#include <vector>

#include "predict/input/request.h"
#include "predict/run/simulate.h"

namespace revisit::predict {

struct ParallelLoop {
    std::uint32_t function = 0;
    std::int32_t loop = 0;
    std::int64_t chunk = 0;  // iterations at a time; 0: one part a thread
    bool tested = false;     // the header tests first: it is reached once more than the body
};

// The loops under `#pragma omp … for` of the source. Schedules that are not static, and what else
// decides who does what when the program runs, are refused.
Result<std::vector<ParallelLoop>> parallel_loops(const Program& program, const std::string& path,
                                                 const std::string& text);

// The thread that does an iteration, of so many, as libomp and the standard have it.
unsigned thread_of(std::int64_t iteration, std::int64_t trips, std::int64_t chunk, unsigned threads);

// The whole run with a stack for each thread: iterations of parallel loops belong to their threads, all
// else to the first. A write takes the block from other threads' stacks.
Result<Simulation> simulate_threads(const Program& program, const Parameters& parameters,
                                    const Request& request, const std::vector<ParallelLoop>& loops,
                                    std::uint64_t max_accesses);

}  // namespace revisit::predict
