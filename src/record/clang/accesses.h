// What a function does with memory, instruction by instruction.
#pragma once

#include <llvm/Analysis/TargetLibraryInfo.h>

#include <vector>

#include "record/clang/unit.h"

namespace revisit::clang_recorder {

// A memory intrinsic whose length is known only at run time.
struct Bulk {
    llvm::Instruction* at;
    llvm::Value* pointer;
    llvm::Value* bytes;  // i64
    std::uint32_t flags;
};

// A stretch of one basic block, in order: accesses that one header word covers, a bulk access, or an
// instruction at which the cursor must lie in thread-local memory (a call, a return).
struct Step {
    enum Kind { accesses, bulk, call, exit } kind;
    std::vector<Access> run;
    Bulk extent{};
    llvm::Instruction* at = nullptr;  // call, exit

    // Words it appends.
    unsigned words() const {
        if (kind != accesses) return kind == bulk ? 4 : 0;
        return 1 + static_cast<unsigned>(
                       llvm::count_if(run, [](const Access& access) { return access.word < 0; }));
    }
};

// False for functions that must stay as they are: resolvers that run before relocation, naked ones,
// own versions of libc routines that callers assume not to append.
bool may_record(const llvm::Function& function);

// Puts calls to the runtime next to calls that allocate, free or synchronise. Run before `steps_of`.
void add_events(llvm::Function& function, Unit& unit);

// At most `block_max` accesses a header.
std::vector<Step> steps_of(llvm::BasicBlock& block, unsigned block_max);

}  // namespace revisit::clang_recorder
