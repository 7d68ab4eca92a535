// Sizes that the user gives.
#pragma once

#include "predict/fit/sampling.h"

namespace revisit::predict {

// What main makes numbers of, from --argv.
Result<void> take_command_line(Session& session);

// What is given must be there, and fit.
Result<void> check_parameters(const Session& session);

}  // namespace revisit::predict
