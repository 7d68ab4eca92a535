// Sums that say whether they overflow, as plain sums.
//
// Rust's ranges of signed numbers, checked arithmetic and __builtin_add_overflow count with
// llvm.sadd.with.overflow and its like: a number and a bit in one structure. A slice has no structures,
// so that a loop counted in this way would be one that only data ends. Here the number becomes an
// addition, and the bit a comparison: a sum overflows if it is not on the side of the first number that
// the second one's sign says. Products are compared with those in twice the width, up to 32 bits.
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/Module.h>

#include <vector>

#include "predict/slice/llvm/lower.h"

namespace revisit::predict {
namespace {

// Whether a + b or a - b, which is `result`, left the width.
llvm::Value* leaves(llvm::IRBuilder<>& at, const llvm::WithOverflowInst& i, llvm::Value* result) {
    auto *a = i.getLHS(), *b = i.getRHS();
    const bool adds = i.getBinaryOp() == llvm::Instruction::Add;
    if (!i.isSigned()) return adds ? at.CreateICmpULT(result, a) : at.CreateICmpULT(a, b);
    auto* below = at.CreateICmpSLT(result, a);
    auto* above = at.CreateICmpSGT(result, a);
    auto* zero = llvm::ConstantInt::get(b->getType(), 0);
    return at.CreateSelect(at.CreateICmpSLT(b, zero), adds ? above : below, adds ? below : above);
}

bool expand(llvm::WithOverflowInst& i) {
    auto* type = llvm::dyn_cast<llvm::IntegerType>(i.getLHS()->getType());
    const bool product = i.getBinaryOp() == llvm::Instruction::Mul;
    if (!type || type->getBitWidth() > (product ? 32 : 64)) return false;
    std::vector<llvm::ExtractValueInst*> parts;
    for (auto* user : i.users()) {
        auto* part = llvm::dyn_cast<llvm::ExtractValueInst>(user);
        if (!part) return false;
        parts.push_back(part);
    }
    llvm::IRBuilder<> at(&i);
    auto* result = at.CreateBinOp(i.getBinaryOp(), i.getLHS(), i.getRHS());
    llvm::Value* over = nullptr;
    if (product) {
        auto* wide = at.getIntNTy(2 * type->getBitWidth());
        const auto widened = [&](llvm::Value* v) {
            return i.isSigned() ? at.CreateSExt(v, wide) : at.CreateZExt(v, wide);
        };
        over = at.CreateICmpNE(at.CreateMul(widened(i.getLHS()), widened(i.getRHS())), widened(result));
    } else {
        over = leaves(at, i, result);
    }
    for (auto* part : parts) {
        part->replaceAllUsesWith(part->getIndices().front() == 0 ? result : over);
        part->eraseFromParent();
    }
    i.eraseFromParent();
    return true;
}

}  // namespace

void expand_overflow_checks(llvm::Module& module) {
    for (auto& f : module) {
        std::vector<llvm::WithOverflowInst*> found;
        for (auto& i : llvm::instructions(f))
            if (auto* with = llvm::dyn_cast<llvm::WithOverflowInst>(&i)) found.push_back(with);
        for (auto* i : found) expand(*i);
    }
}

}  // namespace revisit::predict
