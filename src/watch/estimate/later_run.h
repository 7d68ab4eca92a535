// A program that ran again, as if it had gone on: its samples and what was timed come after those of
// the runs before, and its threads are the same ones.
#pragma once

#include "watch/samples/samples.h"

namespace revisit::watch {

// What there was before the later run.
struct RunsBefore {
    std::uint32_t threads = 0;  // numbers given out
    std::size_t rates = 0, timed = 0, replays = 0;

    RunsBefore(const Samples& samples, std::uint32_t numbers)
        : threads(numbers),
          rates(samples.rates.size()),
          timed(samples.timed.size()),
          replays(samples.replays.size()) {}
};

// `numbers`: of threads, given out until now. How many are left.
std::uint32_t join_later_run(Samples& samples, const RunsBefore& before, std::uint32_t numbers);

}  // namespace revisit::watch
