// What a reader of a sampled profile should know, as sentences.
#pragma once

#include <string>
#include <vector>

#include "symbols/origins.h"
#include "watch/samples/samples.h"

namespace revisit::watch {

void add_notes(const Samples& samples, const Origins& origins, std::vector<std::string>& to);

}  // namespace revisit::watch
