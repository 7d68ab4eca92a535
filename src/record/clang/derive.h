// Which addresses of a block need not be written, because another tells them.
#pragma once

#include <llvm/ADT/DenseMap.h>
#include <llvm/IR/DataLayout.h>

#include <cstdint>
#include <utility>
#include <vector>

#include "record/clang/unit.h"

namespace revisit::clang_recorder {

// What the addresses in a function are made of.
class Addresses {
 public:
    // To be called while the function's values are as the compiler made them: where a body is copied,
    // values that outlive their block are put into memory, and each use has a load of its own.
    void learn(const std::vector<Access>& run, const llvm::DataLayout& layout);
    // Sets `word` and `offset` of accesses that lie a constant away from one that is written before.
    void derive(std::vector<Access>& run) const;

 private:
    // base + Σ value × factor + offset, modulo 2^64: right whatever wraps. Values are known by where
    // they lay, which is not looked at: they may be gone.
    struct Sum {
        const void* base = nullptr;                                     // null: not known
        std::vector<std::pair<const void*, std::uint64_t>> terms = {};  // in the order of their places
        std::uint64_t offset = 0;

        auto key() const { return std::pair(base, terms); }
    };
    using Key = std::pair<const llvm::Instruction*, unsigned>;  // and whether it writes

    static Sum sum_of(const llvm::Value* pointer, const llvm::DataLayout& layout);
    static Key key_of(const Access& access);

    llvm::DenseMap<Key, Sum> sums_;
};

}  // namespace revisit::clang_recorder
