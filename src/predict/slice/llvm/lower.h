// From LLVM IR to the slice: see predict/slice.h.
#pragma once

#include <string>

#include "predict/slice/slice.h"

namespace llvm {
class Module;
}

namespace revisit::predict {

// The function meant: the given one, or the only one beside main; empty when that is not clear.
std::string chosen_function(const llvm::Module& module, const std::string& given);

// Raises the module to what optimised code does (scalars in registers, invariant loads hoisted) without
// unrolling, vectorising or recognising library calls, so that loops keep the shape of the source.
void optimise(llvm::Module& module, const std::string& function);

Result<Program> lower(llvm::Module& module, const std::string& function);

}  // namespace revisit::predict
