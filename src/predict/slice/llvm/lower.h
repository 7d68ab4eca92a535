// From LLVM IR to the slice: see predict/slice.h.
#pragma once

#include <string>
#include <vector>

#include "predict/slice/slice.h"

namespace llvm {
class Module;
}

namespace revisit::predict {

// The function meant: the given one, or the only one beside main and functions local to their file;
// empty when that is not clear.
std::string chosen_function(const llvm::Module& module, const std::string& given);

// The functions that a name as people write it fits best, by their mangled names.
std::vector<std::string> functions_named(const llvm::Module& module, const std::string& given);

// The name with its namespaces, without what it takes and returns.
std::string readable_name(const std::string& mangled);

// Raises the module to what optimised code does. Level 1: scalars in registers, invariant loads
// hoisted, without unrolling, vectorising or loops turned into memset, so that loops keep the shape of
// the source. Levels 2, 3 and s: everything clang does there.
// With `in_program` callers are in sight: their constants and what nobody reads count.
void optimise(llvm::Module& module, const std::string& function, char level, bool in_program);

// Sums and products that say whether they overflow become plain ones and comparisons.
void expand_overflow_checks(llvm::Module& module);

// Makes the program note what decides when it runs (instrument.cpp), with kNotes, a C source, linked to
// it. False: no such function.
bool instrument(llvm::Module& module, const std::string& function);
extern const char* const kNotes;

Result<Program> lower(llvm::Module& module, const std::string& function);

}  // namespace revisit::predict
