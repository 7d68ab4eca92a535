// Which families of sizes to sample, in which order.
#pragma once

#include <cstdint>
#include <vector>

#include "predict/fit/sampling.h"

namespace revisit::predict {

struct Attempt {
    std::int64_t modulus = 1;   // sizes keep the target's residues
    bool proportional = false;  // and its ratios
    std::int64_t shift = 0;     // and are larger than indices are apart
    Pinned pinned = {};         // tiles stay as they are
    bool parted = false;        // or are varied
};

std::vector<Attempt> attempts(const Session& session);

// Iterations after which the position in a block repeats, for the smallest elements accessed in
// loops.
std::int64_t block_period(const Session& session);

}  // namespace revisit::predict
