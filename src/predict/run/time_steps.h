// Loops whose iterations all do the same, by the text of the program.
#pragma once

#include <cstdint>
#include <optional>

#include "predict/run/interpret.h"

namespace revisit::predict {

struct TimeSteps {
    std::int32_t loop = -1;  // of the entry function
    std::int64_t iterations = 0;
};

// An outermost loop of the entry function, the last thing it does, of which every iteration makes the
// same accesses in the same order; nothing where the text does not show it, or the loop takes more than
// `most` iterations.
std::optional<TimeSteps> time_steps(const Program& program, const Parameters& parameters,
                                    std::int64_t most);

}  // namespace revisit::predict
