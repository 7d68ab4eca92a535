// Cells at a size: how many accesses at which distance, without walking the iterations.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "predict/fit/bin_edges.h"
#include "predict/fit/cells.h"

namespace revisit::predict {

// Takes a distance (any of its bin) and how many accesses have it.
using Emit = std::function<void(std::uint64_t distance, std::uint64_t count)>;

struct Evaluation {
    bool valid = true;       // every value came out as a whole number in its range
    bool determined = true;  // the sizes lie where the sample points say something
    bool complete = true;    // false: more steps than allowed
    std::uint64_t total = 0;
    std::string why;
    bool too_large = false;  // a number of more than 59 bits
};

Evaluation evaluate(const Cell& cell, std::span<const std::int64_t> size, const BinOf& bin,
                    const Emit& emit, std::uint64_t max_steps = 400'000'000,
                    const Deadline& deadline = {});

}  // namespace revisit::predict
