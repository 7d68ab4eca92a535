// Copies a function's body, so that a program that is not recorded right now need not write addresses.
//
// Problem. While no sample is near, a sampling program needs a count of its accesses and nothing else,
// and one that nobody profiles needs not even that; but appending an address costs a store each. Idea.
// Two copies of every body. One appends; the other adds to the cursor what the block's accesses are. At
// entry, and where a loop closes, a bit of the cursor that is tested there anyway says when to go
// over to the other one. Cost. Twice the code; one more test and branch a call.
//
// An edge from one copy into the middle of the other has to carry every value that is alive there. So
// values that live longer than their block are put into memory first, with loads and stores at every
// use; both copies use the same memory; and promoting it to registers again at the end makes the phis
// that the new edges need. Loops stay natural, for copies are entered at loop heads only.
#include "record/clang/copies.h"

#include <llvm/ADT/PostOrderIterator.h>
#include <llvm/Transforms/Utils/BasicBlockUtils.h>
#include <llvm/Transforms/Utils/Cloning.h>
#include <llvm/Transforms/Utils/Local.h>
#include <llvm/Transforms/Utils/ValueMapper.h>

namespace revisit::clang_recorder {
namespace {

using namespace llvm;

// Larger ones are rare, and machine-made; twice the time to compile them would be felt.
constexpr std::size_t kMostInstructions = 20000;

bool can_be_copied(const Function& function) {
    std::size_t instructions = 0;
    for (const BasicBlock& block : function) {
        if (block.hasAddressTaken() || isa<IndirectBrInst, CallBrInst>(block.getTerminator()))
            return false;
        for (const Instruction& instruction : block) {
            if (++instructions > kMostInstructions || instruction.getType()->isTokenTy()) return false;
            const auto* call = dyn_cast<CallBase>(&instruction);
            if (call && (call->hasFnAttr(Attribute::ReturnsTwice) || call->cannotDuplicate() ||
                         call->isMustTailCall()))
                return false;
            if (isa<FuncletPadInst, CatchSwitchInst>(instruction)) return false;
        }
    }
    return true;
}

// Every edge that closes a loop gets a block of its own.
void split_backward_edges(Function& function, Copies& copies) {
    DenseMap<BasicBlock*, unsigned> order;
    for (BasicBlock* block : ReversePostOrderTraversal<Function*>(&function))
        order.try_emplace(block, order.size());
    SmallVector<std::pair<BasicBlock*, BasicBlock*>, 16> backward;
    for (auto& [block, place] : order) {
        if (!isa<BranchInst, SwitchInst>(block->getTerminator())) continue;
        for (BasicBlock* after : successors(block))
            if (order.lookup(after) <= place) backward.emplace_back(block, after);
    }
    llvm::sort(backward, [&](auto& a, auto& b) {
        return std::pair(order.lookup(a.first), order.lookup(a.second)) <
               std::pair(order.lookup(b.first), order.lookup(b.second));
    });
    for (auto& [from, to] : backward) copies.backward.insert(SplitEdge(from, to));
}

void put_values_into_memory(Function& function, Copies& copies) {
    BasicBlock& entry = function.getEntryBlock();
    SmallVector<Instruction*, 64> values;
    SmallVector<PHINode*, 64> joins;
    for (BasicBlock& block : function) {
        if (&block == &entry) continue;
        for (Instruction& instruction : block) {
            auto* join = dyn_cast<PHINode>(&instruction);
            if (join) joins.push_back(join);
            if (any_of(instruction.users(), [&](User* user) {
                    return isa<PHINode>(user) || cast<Instruction>(user)->getParent() != &block;
                }))
                values.push_back(&instruction);
        }
    }
    auto here = [&] { return std::optional(entry.begin()); };
    for (Instruction* value : values)
        if (AllocaInst* place = DemoteRegToStack(*value, false, here())) copies.values.push_back(place);
    for (PHINode* join : joins)
        if (AllocaInst* place = DemotePHIToStack(join, here())) copies.values.push_back(place);
}

}  // namespace

Copies copy_body(Function& function) {
    Copies copies;
    if (!can_be_copied(function)) return copies;
    BasicBlock& entry = function.getEntryBlock();
    split_backward_edges(function, copies);
    copies.recording = SplitBlock(&entry, entry.getFirstNonPHIOrDbgOrAlloca());
    put_values_into_memory(function, copies);

    ValueToValueMapTy map;
    SmallVector<BasicBlock*, 64> blocks, made;
    for (BasicBlock& block : function)
        if (&block != &entry) blocks.push_back(&block);
    for (BasicBlock* block : blocks) {
        BasicBlock* copy = CloneBasicBlock(block, map, ".count", &function);
        map[block] = copy;
        made.push_back(copy);
        copies.counts.insert(copy);
        copies.other[block] = copy;
        copies.other[copy] = block;
        if (copies.backward.contains(block)) copies.backward.insert(copy);
    }
    const RemapFlags flags = RF_NoModuleLevelChanges | RF_IgnoreMissingLocals;
    for (BasicBlock* block : made)
        for (Instruction& instruction : *block) {
            RemapDbgRecordRange(function.getParent(), instruction.getDbgRecordRange(), map, flags);
            RemapInstruction(&instruction, map, flags);
        }
    copies.counting = copies.other[copies.recording];
    return copies;
}

}  // namespace revisit::clang_recorder
