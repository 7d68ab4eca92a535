// Which addresses of a block need not be written, because another tells them.
#pragma once

#include <llvm/IR/DataLayout.h>

#include <vector>

#include "record/clang/unit.h"

namespace revisit::clang_recorder {

// Sets `word` and `offset` of accesses that lie a constant away from one that is written before them.
void derive_addresses(std::vector<Access>& run, const llvm::DataLayout& layout);

}  // namespace revisit::clang_recorder
