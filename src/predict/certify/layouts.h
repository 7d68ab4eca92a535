// Whether what a program does depends on where its objects lie.
#pragma once

#include <optional>
#include <string>

#include "predict/run/simulate.h"

namespace revisit::predict {

// How alike the profile is when the stack, the heap and found arrays start elsewhere within a block;
// nothing where that takes long.
std::optional<double> accuracy_by_place(const Program& program, const Parameters& parameters,
                                        const Request& request, const Profile& profile);

// A sentence when it does, as far as the beginning of the run shows.
std::optional<std::string> depends_on_layout(const Program& program, const Parameters& parameters,
                                             const Request& request);

}  // namespace revisit::predict
