// A cache's sets, mapped for real where the addresses are known.
#pragma once

#include <string>
#include <vector>

#include "predict/run/interpret.h"
#include "revisit/cache.h"

namespace revisit::predict {

struct Conflicts {
    CacheSpec cache;
    double accesses = 0;
    double misses = 0;
    double conflicts = 0;   // of the misses: a fully associative cache of the size would have hit
    bool complete = false;  // the whole run, or what the time allowed
    struct Culprit {
        std::string expression;
        std::uint32_t line = 0;
        double misses = 0, conflicts = 0;
        std::int64_t stride = 0;      // bytes, the commonest; 0 = none
        std::uint64_t sets_used = 0;  // by that stride; 0 = all
    };
    std::vector<Culprit> culprits;  // references with a tenth of the conflicts or more, worst first
};

Result<Conflicts> map_sets(const Program& program, const Parameters& parameters, const CacheSpec& cache,
                           const Deadline& deadline);

// In a sentence or two.
std::string text_of(const Conflicts& conflicts);

}  // namespace revisit::predict
