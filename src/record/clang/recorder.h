// A function that the pass changes: what it appends, and helpers for each way to append it.
#pragma once

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Module.h>

#include <vector>

#include "record/clang/abi.h"
#include "record/clang/accesses.h"
#include "record/clang/copies.h"
#include "record/clang/derive.h"
#include "record/clang/unit.h"

namespace revisit::clang_recorder {

// One function under instrumentation, whatever the way to append.
class Recorder {
 public:
    Recorder(llvm::Function& function, Unit& unit)
        : function_(function),
          module_(*function.getParent()),
          context_(function.getContext()),
          unit_(unit) {}

    bool run();
    void append_by_pointer();  // pass.cpp has the idea

    // For ways to append.
    llvm::LLVMContext& context() { return context_; }
    llvm::Module& module() { return module_; }
    Unit& unit() { return unit_; }
    auto& steps() { return steps_; }

    // Thread-local state.
    llvm::Value* tls(llvm::IRBuilder<>& at, unsigned offset) {
        auto* variable = llvm::cast<llvm::GlobalVariable>(
            module_.getOrInsertGlobal("__revisit_tls", at.getInt8Ty()));
        variable->setThreadLocalMode(llvm::GlobalValue::InitialExecTLSModel);
        llvm::Value* base = at.CreateThreadLocalAddress(variable);
        return offset == 0 ? base : at.CreateConstInBoundsGEP1_32(at.getInt8Ty(), base, offset);
    }
    llvm::Value* has_bit(llvm::IRBuilder<>& at, llvm::Value* cursor, unsigned bit) {
        return at.CreateICmpNE(at.CreateAnd(at.CreatePtrToInt(cursor, at.getInt64Ty()), 1ull << bit),
                               at.getInt64(0));
    }
    llvm::Value* word_at(llvm::IRBuilder<>& at, llvm::Value* cursor, unsigned i) {
        return i == 0 ? cursor : at.CreateConstInBoundsGEP1_32(at.getInt64Ty(), cursor, i);
    }
    // The word to write for an access: its address, or that its guard was false.
    llvm::Value* address(llvm::IRBuilder<>& at, const Access& access) {
        if (access.lane < 0) return access.pointer;
        llvm::Value* pointer = access.pointer;
        if (pointer->getType()->isVectorTy())
            pointer = at.CreateExtractElement(pointer, static_cast<std::uint64_t>(access.lane));
        else
            pointer =
                at.CreateConstGEP1_64(at.getInt8Ty(), pointer,
                                      std::uint64_t{access.bytes} * static_cast<unsigned>(access.lane));
        llvm::Value* active =
            at.CreateExtractElement(access.mask, static_cast<std::uint64_t>(access.lane));
        return at.CreateSelect(at.CreateTrunc(active, at.getInt1Ty()),
                               at.CreatePtrToInt(pointer, at.getInt64Ty()),
                               at.getInt64(REVISIT_NO_ACCESS));
    }
    // Writes a step's words from `cursor` on; the instruction after the last write. Volatile stores
    // stay single: the machine makes no pairs of them.
    llvm::Instruction* write(const Step& step,
                             llvm::function_ref<llvm::Value*(llvm::IRBuilder<>&)> cursor_at,
                             bool is_volatile = false) {
        auto put = [&](llvm::IRBuilder<>& at, llvm::Value* word, llvm::Value* place) {
            auto* store = at.CreateStore(word, place, is_volatile);
            store->setMetadata(llvm::LLVMContext::MD_alias_scope, unit_.slot_scope());
        };
        if (step.kind == Step::bulk) {
            llvm::IRBuilder<> at(step.extent.at);
            llvm::Value* cursor = cursor_at(at);
            std::uint32_t flags = step.extent.flags | REVISIT_BY_SITE;
            std::uint32_t site = unit_.site(*step.extent.at, flags & REVISIT_WRITE);
            put(at, at.getInt64(REVISIT_RECORD(REVISIT_BULK, flags)), cursor);
            put(at, unit_.site_number(at, site), word_at(at, cursor, 1));
            put(at, step.extent.pointer, word_at(at, cursor, 2));
            put(at, step.extent.bytes, word_at(at, cursor, 3));
            return step.extent.at;
        }
        llvm::IRBuilder<> at(step.run.front().at);
        llvm::Value* cursor = cursor_at(at);
        put(at, unit_.header(at, unit_.block(step.run)), cursor);
        unsigned written = 0;
        for (const Access& access : step.run) {
            if (access.word >= 0) continue;
            at.SetInsertPoint(access.at);
            put(at, address(at, access), word_at(at, cursor, ++written));
        }
        return step.run.back().at;
    }
    // The runtime appends the step, whose length is known at run time only.
    void call_bulk(llvm::IRBuilder<>& at, const Step& step) {
        auto* word = at.getInt64Ty();
        auto bulk =
            module_.getOrInsertFunction("__revisit_bulk", at.getVoidTy(), word, word, word, word);
        std::uint32_t flags = step.extent.flags | REVISIT_BY_SITE;
        std::uint32_t site = unit_.site(*step.extent.at, flags & REVISIT_WRITE);
        at.CreateCall(bulk, {at.getInt64(flags), unit_.site_number(at, site),
                             at.CreatePtrToInt(step.extent.pointer, word), step.extent.bytes});
    }

 private:
    void prepare();
    void keep_apart();
    void mark_calls();
    void drop_promises();
    void find_steps();
    llvm::Instruction* count(const Step& step, llvm::AllocaInst* cursor);
    void check(llvm::Instruction* where, bool leaving, llvm::AllocaInst* cursor);

    llvm::Function& function_;
    llvm::Module& module_;
    llvm::LLVMContext& context_;
    Unit& unit_;
    llvm::MapVector<llvm::BasicBlock*, std::vector<Step>> steps_;
    Copies copies_;
    Addresses addresses_;
    // copies_.counts, and what checks split off from them
    llvm::SmallPtrSet<llvm::BasicBlock*, 16> is_counting_;
};

// papers/: older ways, for comparison.
void append_by_call(Recorder& recorder);
void append_by_mmu(Recorder& recorder);

}  // namespace revisit::clang_recorder
