// Whether formulas that fit the samples must hold beyond them.
#pragma once

#include <vector>

#include "predict/slice/doubt.h"
#include "predict/slice/slice.h"

namespace revisit::predict {

// What a proof lacks; nothing = every branch condition and every address is a Presburger function of
// loop counters and sizes (proof.cpp has the argument). `other` is the same program at other sizes: a
// constant that differs there is a size, one that does not is a number of the source. `modulus`: sizes
// of all samples have the target's residues by it.
std::vector<Doubt> unproven(const Program& target, const Program& other, std::int64_t modulus);

}  // namespace revisit::predict
