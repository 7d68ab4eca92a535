// What a prediction takes for granted, and what of the layout it cannot know.
#pragma once

#include <string>
#include <vector>

#include "predict/fit/sampling.h"

namespace revisit::predict {

// Why the blocks of the target's objects are not known; local arrays apart.
std::vector<Doubt> layout_doubts(const Session& session);

// Arrays on the stack: at which place of a line they start differs from run to run.
bool has_local_arrays(const Program& program);

// What the source does not show: exact means exact under these.
std::vector<std::string> assumptions(const Session& session);

}  // namespace revisit::predict
