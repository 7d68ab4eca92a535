// Which small sizes to run, for a target.
#pragma once

#include <cstdint>
#include <vector>

#include "predict/machine.h"

namespace revisit::predict {

// One thing that varies: a parameter, or several that keep their differences.
struct Axis {
    std::vector<std::pair<std::string, std::int64_t>> names;  // with offset
    std::int64_t target = 0;
};

struct DesignOptions {
    std::int64_t modulus = 1;  // sizes keep the target's residue
    std::int64_t smallest = 9;
    bool tie = true;                // parameters equal (or nearly) at the target move together
    std::int64_t fixed_below = 13;  // smaller targets are not varied
    std::int64_t spread = 0;        // values an axis takes; 0 = as many as its fits need
    std::uint64_t seed = 1;
};

struct Design {
    std::vector<Axis> axes;
    Parameters fixed;
    std::vector<std::vector<std::int64_t>> samples;
    std::vector<std::int32_t> anchors;  // numbers of the largest samples
    std::vector<std::int64_t> target;

    Parameters at(const std::vector<std::int64_t>& size) const;
    // Sizes about `factor` times the samples', in the same order and residue classes: for checking.
    std::vector<std::int64_t> held_out(double factor, std::int64_t modulus) const;
};

Design plan_samples(const Parameters& target, const DesignOptions& options);

}  // namespace revisit::predict
