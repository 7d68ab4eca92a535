// Affine loops of x86_64: see machine/loops.h.
#pragma once

#include "machine/loops.h"
#include "machine/x64/ahead.h"

namespace revisit::machine {

using X64Loops = Loops<X64>;

}  // namespace revisit::machine
