// What make_engine hands out: an engine that looks at what it is given before it counts.
#pragma once

#include <memory>

#include "revisit/engine.h"

namespace revisit {

std::unique_ptr<Engine> make_checked(std::unique_ptr<Engine> engine);

}  // namespace revisit
