// Which small sizes to run, for a target.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "predict/machine.h"

namespace revisit::predict {

// One thing that varies: a parameter, or several that keep their differences.
struct Axis {
    std::vector<std::pair<std::string, std::int64_t>> names;  // with offset
    std::int64_t target = 0;
    std::int64_t modulus = 1;
    std::int64_t smallest = 9;
};

struct DesignOptions {
    // Sizes keep the target's residue: one modulus for all, or by name where one needs less.
    std::int64_t modulus = 1;
    std::map<std::string, std::int64_t> moduli;
    std::int64_t smallest = 9;      // where the modulus is small
    std::int64_t rounds = 3;        // smallest size over a large modulus
    bool tie = true;                // parameters equal (or nearly) at the target move together
    std::set<std::string> untied;   // except these
    std::int64_t fixed_below = 13;  // smaller targets are not varied
    std::int64_t spread = 0;        // values an axis takes; 0 = as many as its fits need
    bool proportional = false;      // sizes stand in the target's ratios, up to 3, not just its order
    std::uint64_t seed = 1;
};

struct Design {
    std::vector<Axis> axes;
    Parameters fixed;
    std::vector<std::vector<std::int64_t>> samples;
    std::vector<std::int32_t> anchors;  // numbers of the largest samples
    std::vector<std::int64_t> target;

    Parameters at(const std::vector<std::int64_t>& size) const;
    // Sizes about `factor` times the samples', in the target's order and residue classes: for checking.
    std::vector<std::int64_t> held_out(double factor) const;
    // The same in the target's proportions, `scale` of it, but no axis within the samples.
    std::vector<std::int64_t> proportional(double scale) const;
    // The target with all sizes shrunk alike, residues kept.
    std::vector<std::int64_t> reduced(double factor) const;
};

Design plan_samples(const Parameters& target, const DesignOptions& options);

}  // namespace revisit::predict
