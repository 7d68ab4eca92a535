// What the plug-in collects about one translation unit: its sites, its blocks of accesses, and the
// constant data that describes both to the analyzer when the program starts.
#pragma once

#include <llvm/ADT/DenseMap.h>
#include <llvm/ADT/SmallString.h>
#include <llvm/ADT/SmallVector.h>
#include <llvm/IR/DebugInfoMetadata.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Module.h>

#include <cstdint>
#include <string>
#include <vector>

namespace revisit::clang_recorder {

// One load, store, atomic or constant-size memory intrinsic, as it will be written into a block.
struct Access {
    llvm::Instruction* at;  // recorded right before this instruction
    llvm::Value* pointer;   // the address; with `lane` ≥ 0, a vector of them
    std::uint32_t bytes;
    std::uint32_t flags;          // REVISIT_WRITE, …
    llvm::Value* mask = nullptr;  // of a masked vector access; lane `lane` of it guards this one
    int lane = -1;
    int word = -1;            // not written: this many words after the header lies an address …
    std::int32_t offset = 0;  // … that this one is so many bytes beyond
};

class Unit {
 public:
    // `way`: the runtime's table for how it appends; null: the default.
    Unit(llvm::Module& module, const char* way);

    // Notes which loop each access is in; to be called while the function is as the compiler made it.
    void find_loops(llvm::Function& function);
    std::uint32_t site(const llvm::Instruction& at, bool write);
    std::uint32_t function_site(const llvm::Function& function);
    std::uint32_t block(llvm::ArrayRef<Access> accesses);

    // The first word of a block, and a process-wide site number, as values at run time.
    llvm::Value* header(llvm::IRBuilder<>& at, std::uint32_t block);
    llvm::Value* site_number(llvm::IRBuilder<>& at, std::uint32_t site);

    // Names the memory of slots, which the program's accesses never touch.
    llvm::MDNode* slot_scope() const { return slot_scope_; }

    // Adds the tables and the constructor that registers them; nothing when nothing was recorded.
    void finish();

 private:
    std::uint32_t add_site(const std::string& text);
    void put_text(const std::string& text);

    llvm::Module& module_;
    const char* way_;
    llvm::MDNode* slot_scope_;
    llvm::GlobalVariable* headers_;
    llvm::GlobalVariable* site_base_;
    std::vector<std::uint64_t> header_words_;
    std::vector<std::uint64_t> definitions_;
    llvm::DenseMap<std::pair<const void*, unsigned>, std::uint32_t> sites_;
    llvm::DenseMap<const llvm::DILocation*, const llvm::DILocation*> loops_;
    std::uint32_t site_count_ = 0;
};

}  // namespace revisit::clang_recorder
