// What the slice needs, from the uses backwards.
//
// Branch conditions, addresses and sizes of allocations are needed, and what flows into them through
// registers, calls and memory. Memory is followed by object: a needed load of a local or a global makes
// the values stored to that object needed; a load through an unknown pointer, all stored integers.
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/IntrinsicInst.h>

#include "predict/slice/llvm/slicer.h"
#include "predict/slice/llvm/values.h"

namespace revisit::predict {

using llvm::cast;
using llvm::dyn_cast;
using llvm::isa;

void Slicer::reach(llvm::Function& f) {
    if (!index_.try_emplace(&f, functions_.size()).second) return;
    functions_.push_back(&f);
    for (auto& i : llvm::instructions(f))
        if (auto* call = dyn_cast<llvm::CallBase>(&i))
            if (auto* callee = call->getCalledFunction(); callee && !callee->isDeclaration()) {
                if (callee->isInterposable() && !index_.count(callee))
                    limit(i,
                          callee->getName().str() + " is weak: another definition may take its place");
                reach(*callee);
            }
}

void Slicer::need(const llvm::Value* v) {
    if (!is_register_type(v->getType())) return;
    if (needed_.insert(v).second) work_.push_back(v);
}

void Slicer::seed(llvm::Function& f) {
    for (auto& i : llvm::instructions(f)) {
        if (auto* b = dyn_cast<llvm::BranchInst>(&i)) {
            if (b->isConditional()) need(b->getCondition());
        } else if (auto* s = dyn_cast<llvm::SwitchInst>(&i)) {
            need(s->getCondition());
        } else if (auto* l = dyn_cast<llvm::LoadInst>(&i)) {
            need(l->getPointerOperand());
        } else if (auto* s = dyn_cast<llvm::StoreInst>(&i)) {
            need(s->getPointerOperand());
        } else if (auto* x = dyn_cast<llvm::AtomicRMWInst>(&i)) {
            need(x->getPointerOperand());
        } else if (auto* x = dyn_cast<llvm::AtomicCmpXchgInst>(&i)) {
            need(x->getPointerOperand());
        } else if (auto* a = dyn_cast<llvm::AllocaInst>(&i)) {
            need(a->getArraySize());
        } else if (const auto bulk = bulk_access(i)) {
            need(bulk->to);
            need(bulk->length);
            if (bulk->from) need(bulk->from);
        } else if (auto* s = dyn_cast<llvm::IntrinsicInst>(&i)) {
            if (s->getIntrinsicID() == llvm::Intrinsic::stackrestore) need(s->getArgOperand(0));
        } else if (auto* c = dyn_cast<llvm::CallBase>(&i)) {
            if (c->getCalledFunction() && is_allocation(c->getCalledFunction()))
                for (auto& a : c->args()) need(a.get());
        }
    }
}

void Slicer::propagate(const llvm::Value* v) {
    if (const auto* a = dyn_cast<llvm::Argument>(v)) {
        for (const auto* f : functions_)
            for (const auto& i : llvm::instructions(*f))
                if (const auto* c = dyn_cast<llvm::CallBase>(&i);
                    c && c->getCalledFunction() == a->getParent())
                    need(c->getArgOperand(a->getArgNo()));
        return;
    }
    const auto* i = dyn_cast<llvm::Instruction>(v);
    if (!i) return;
    if (inputs_.count(i) || packed_.count(i)) return;
    if (pointers_.count(i)) {
        program_.memory_needed = true;
        return;
    }
    if (const auto* l = dyn_cast<llvm::LoadInst>(i))
        return need_memory(object_of(l->getPointerOperand()));
    if (const auto* c = dyn_cast<llvm::CallBase>(i)) {
        const auto* callee = c->getCalledFunction();
        if (callee && index_.count(callee)) {
            for (const auto& b : *callee)
                if (const auto* r = dyn_cast<llvm::ReturnInst>(b.getTerminator());
                    r && r->getReturnValue())
                    need(r->getReturnValue());
        } else {
            for (const auto& a : c->args()) need(a.get());
        }
        return;
    }
    if (is_whole_comparison(i)) {
        need_whole(i->getOperand(0));
        return need_whole(i->getOperand(1));
    }
    if (is_whole_conversion(i)) return need_whole(i->getOperand(0));
    if (isa<llvm::FCmpInst>(i) || isa<llvm::AtomicRMWInst>(i) || isa<llvm::AtomicCmpXchgInst>(i))
        return;
    for (const auto& operand : i->operands())
        if (!isa<llvm::BasicBlock>(operand.get())) need(operand.get());
}

void Slicer::need_memory(const llvm::Value* object) {
    if (!needed_objects_.insert(object).second) return;
    const auto* local = object ? dyn_cast<llvm::AllocaInst>(object) : nullptr;
    if (!local || !is_private(local)) program_.memory_needed = true;
    for (const auto* f : functions_)
        for (const auto& i : llvm::instructions(*f))
            if (const auto* s = dyn_cast<llvm::StoreInst>(&i))
                if (carries(s)) need(s->getValueOperand());
}

bool Slicer::carries(const llvm::StoreInst* s) const {
    if (needed_objects_.empty()) return false;
    const auto* object = object_of(s->getPointerOperand());
    if (object && needed_objects_.count(object)) return true;
    const auto* local = object ? dyn_cast<llvm::AllocaInst>(object) : nullptr;
    if (local && is_private(local)) return false;
    if (needed_objects_.count(nullptr)) return true;
    if (object) return false;
    for (const auto* o : needed_objects_) {  // through an unknown pointer: reaches what is not private
        const auto* a = dyn_cast_or_null<llvm::AllocaInst>(o);
        if (!a || !is_private(a)) return true;
    }
    return false;
}

}  // namespace revisit::predict
