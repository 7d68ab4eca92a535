// Where locals and heap blocks lie: what nobody but the code generator and the allocator knows.
#pragma once

#include <llvm/ADT/ArrayRef.h>

#include <string>
#include <vector>

namespace llvm {
class Function;
}

namespace revisit::predict {

// Sentences about objects that may come to lie where others were.
std::vector<std::string> shared_places(llvm::ArrayRef<llvm::Function*> functions);

}  // namespace revisit::predict
