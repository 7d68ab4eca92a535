// A function's body twice: one copy that records, one that only counts. See copies.cpp.
#pragma once

#include <llvm/ADT/DenseMap.h>
#include <llvm/ADT/SmallPtrSet.h>
#include <llvm/ADT/SmallVector.h>
#include <llvm/IR/Function.h>
#include <llvm/IR/Instructions.h>

namespace revisit::clang_recorder {

struct Copies {
    llvm::BasicBlock* recording = nullptr;  // where each copy begins; null: the body was not copied
    llvm::BasicBlock* counting = nullptr;
    llvm::DenseMap<llvm::BasicBlock*, llvm::BasicBlock*> other;  // a block in the other copy
    llvm::SmallPtrSet<llvm::BasicBlock*, 16> counts;             // blocks of the counting copy
    llvm::SmallPtrSet<llvm::BasicBlock*, 16> backward;  // of nothing but an edge that closes a loop
    llvm::SmallVector<llvm::AllocaInst*, 32> values;    // what goes from block to block
};

// The allocas have to be the entry's first instructions. Afterwards the entry block has nothing else
// and leads to `recording`; values are in memory, to be promoted once the copies are connected.
Copies copy_body(llvm::Function& function);

}  // namespace revisit::clang_recorder
