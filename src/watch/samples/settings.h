// How the sampler samples.
#pragma once

#include <cstdint>
#include <vector>

#include "revisit/cache_spec.h"

namespace revisit::watch {

// What the kernel may refuse, simulated: each bit is for one kind of event.
enum Refuse : std::uint64_t { kRefuseWatchpoints = 1, kRefuseEvents = 2 };

struct Settings {
    std::uint64_t period = 500000;  // nanoseconds of processor time between samples, at least
    std::uint64_t share = 40;  // thousandths of all threads' time that sampling may take; 0 = no limit
    std::uint64_t window = 1024;    // accesses looked ahead
    std::uint64_t uses = 512;       // of these, the first so many are uses
    std::uint64_t watchpoints = 2;  // for reuses, per thread
    std::uint64_t shift = 3;        // blocks of 1 << shift bytes
    std::uint64_t budget = 8000;    // instructions a look-ahead may take
    std::uint64_t spread = 16;      // fewer than so many accesses are skipped before
    std::uint64_t rates = 3;        // one part in so many goes into how fast accesses go; 0 none
    std::uint64_t seed = 1;
    std::uint64_t check = 0;             // every so many predicted reuses a watchpoint checks; 0 never
    std::uint64_t refuse = 0;            // for tests: bits of Refuse
    std::vector<CacheSpec> caches = {};  // in whose sets lines are counted; with lines of a block
};

}  // namespace revisit::watch
