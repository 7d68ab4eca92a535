// Whether what a program does depends on where its objects lie.
#pragma once

#include <optional>
#include <string>

#include "predict/run/simulate.h"

namespace revisit::predict {

// A sentence when it does, as far as the beginning of the run shows.
std::optional<std::string> depends_on_layout(const Program& program, const Parameters& parameters,
                                             const Request& request);

}  // namespace revisit::predict
