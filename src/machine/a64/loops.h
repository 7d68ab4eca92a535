// Affine loops of aarch64: see machine/loops.h.
#pragma once

#include "machine/a64/a64.h"
#include "machine/loops.h"

namespace revisit::machine {

using A64Loops = Loops<A64>;

}  // namespace revisit::machine
