// Which sizes the periods of a program can reach.
#pragma once

#include <cstdint>
#include <vector>

#include "predict/fit/design.h"
#include "predict/slice/slice.h"

namespace revisit::predict {

// A program at the sizes of interest: all have the target's shape.
struct SizedPrograms {
    const Program& target;
    std::vector<Program> samples;
    std::vector<Program> marked;             // by axis: constants differ that the axis is in
    std::vector<std::int64_t> denominators;  // by axis: of constants that are fractions of it
};

// By axis: the modulus whose residues it has to keep for the periods of steps, divisors, masks and
// factors, those that divide `modulus`. Where nothing is known of a value it is `modulus` itself.
// Blocks have periods of their own, which are not in it.
std::vector<std::int64_t> periods_by_axis(const SizedPrograms& programs, const std::vector<Axis>& axes,
                                          std::uint64_t granularity, std::int64_t modulus);

}  // namespace revisit::predict
