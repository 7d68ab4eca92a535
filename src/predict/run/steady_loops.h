// Loops whose iterations all do the same, by the text of the program.
#pragma once

#include <cstdint>
#include <vector>

#include "predict/run/interpret.h"

namespace revisit::predict {

struct SteadyLoop {
    std::int32_t loop = -1;  // of the entry function
    std::int64_t iterations = 0;
    std::vector<Advance> registers;  // of its header: what a step of the loop adds to each
};

// Outermost loops of the entry function of which every iteration makes the accesses of the first, in
// the same order, each reference moved by a constant per iteration. Loops where the text does not show
// it, or that take more than `most` iterations, are left out.
std::vector<SteadyLoop> steady_loops(const Program& program, const Parameters& parameters,
                                     std::int64_t most);

}  // namespace revisit::predict
