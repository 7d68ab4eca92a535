// Where locals and heap blocks lie: what nobody but the code generator and the allocator knows.
#pragma once

#include <llvm/ADT/ArrayRef.h>

#include <vector>

#include "predict/slice/doubt.h"

namespace llvm {
class Function;
}

namespace revisit::predict {

// Objects that may come to lie where others were.
std::vector<Doubt> shared_places(llvm::ArrayRef<llvm::Function*> functions);

}  // namespace revisit::predict
