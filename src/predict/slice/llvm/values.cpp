// What LLVM values are.
#include "predict/slice/llvm/values.h"

#include <llvm/ADT/SmallVector.h>
#include <llvm/Analysis/ValueTracking.h>
#include <llvm/IR/Constants.h>
#include <llvm/IR/DebugInfo.h>
#include <llvm/IR/DebugInfoMetadata.h>
#include <llvm/IR/DebugProgramInstruction.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/Operator.h>

#include <algorithm>
#include <iterator>

namespace revisit::predict {

using llvm::dyn_cast;
using llvm::isa;

const llvm::DILocalVariable* declared_variable(const llvm::Argument& argument) {
    const llvm::Function& f = *argument.getParent();
    const auto* sub = f.getSubprogram();
    if (!sub) return nullptr;
    llvm::SmallVector<const llvm::DILocalVariable*, 8> all;
    const auto note = [&](const llvm::DILocalVariable* v) {
        if (v && v->getArg() > 0 && v->getScope()->getSubprogram() == sub) all.push_back(v);
    };
    for (const auto* node : sub->getRetainedNodes()) note(dyn_cast<llvm::DILocalVariable>(node));
    for (const auto& i : llvm::instructions(f)) {
        for (const llvm::DbgVariableRecord& r : llvm::filterDbgVars(i.getDbgRecordRange()))
            note(r.getVariable());
        if (const auto* d = dyn_cast<llvm::DbgVariableIntrinsic>(&i)) note(d->getVariable());
    }
    // By name: s.coerce0 and s.coerce1 are one variable of the source, and what the function returns
    // may be an argument here.
    const auto name = argument.getName().split('.').first;
    for (const auto* v : all)
        if (!name.empty() && v->getName() == name) return v;
    const bool returned = f.arg_size() > 0 && f.hasParamAttribute(0, llvm::Attribute::StructRet);
    for (const auto* v : all)
        if (name.empty() && v->getArg() + returned == argument.getArgNo() + 1) return v;
    return nullptr;
}

std::string source_name(const llvm::Value* value) {
    if (isa<llvm::GlobalVariable>(value)) return value->getName().str();
    if (const auto* a = dyn_cast<llvm::Argument>(value))
        if (const auto* v = declared_variable(*a)) return v->getName().str();
    llvm::SmallVector<llvm::DbgVariableIntrinsic*, 4> users;
    llvm::SmallVector<llvm::DbgVariableRecord*, 4> records;
    llvm::findDbgUsers(users, const_cast<llvm::Value*>(value), &records);
    for (const auto* r : records)
        if (r->getVariable()) return r->getVariable()->getName().str();
    for (const auto* u : users)
        if (u->getVariable()) return u->getVariable()->getName().str();
    auto name = value->getName();
    if (name.ends_with(".addr")) name = name.drop_back(5);
    return name.split('.').first.str();
}

namespace {

// "i", "k-1", "2*j": an index as the bracket notation writes it.
std::string index_name(const llvm::Value* value, int depth = 0) {
    if (depth > 6) return "?";
    if (const auto* c = dyn_cast<llvm::ConstantInt>(value)) return std::to_string(c->getSExtValue());
    if (const auto* c = dyn_cast<llvm::CastInst>(value)) return index_name(c->getOperand(0), depth + 1);
    if (const auto* l = dyn_cast<llvm::LoadInst>(value))
        return source_name(llvm::getUnderlyingObject(l->getPointerOperand()));
    if (const auto* b = dyn_cast<llvm::BinaryOperator>(value)) {
        const auto left = index_name(b->getOperand(0), depth + 1);
        const auto right = index_name(b->getOperand(1), depth + 1);
        switch (b->getOpcode()) {
            case llvm::Instruction::Add:
                return right.starts_with('-') ? left + right : left + "+" + right;
            case llvm::Instruction::Sub:
                return left + "-" + right;
            case llvm::Instruction::Mul:
                return left + "*" + right;
            default:
                return "?";
        }
    }
    auto name = source_name(value);
    return name.empty() ? "?" : name;
}

}  // namespace

Description describe(const llvm::Value* pointer, int depth) {
    if (depth > 8) return {"?", "?"};
    if (const auto* gep = dyn_cast<llvm::GEPOperator>(pointer)) {
        auto d = describe(gep->getPointerOperand(), depth + 1);
        bool first = true;
        for (const auto& index : gep->indices()) {
            const auto* c = dyn_cast<llvm::ConstantInt>(&*index);
            const bool decay = first && c && c->isZero() && gep->getNumIndices() > 1;
            first = false;
            if (!decay) d.expression += "~" + index_name(index);
        }
        return d;
    }
    if (const auto* load = dyn_cast<llvm::LoadInst>(pointer))
        return describe(load->getPointerOperand(), depth + 1);
    if (const auto* phi = dyn_cast<llvm::PHINode>(pointer)) {
        const auto name = source_name(phi);
        return {name, name};
    }
    if (const auto* c = dyn_cast<llvm::CastInst>(pointer)) return describe(c->getOperand(0), depth + 1);
    auto name = source_name(pointer);
    if (name.empty()) name = "?";
    return {name, name};
}

bool is_register_type(const llvm::Type* type) {
    return type->isPointerTy() || (type->isIntegerTy() && type->getIntegerBitWidth() <= 64);
}

std::uint8_t width_of(const llvm::Type* type) {
    return type->isIntegerTy() ? static_cast<std::uint8_t>(std::min(64u, type->getIntegerBitWidth()))
                               : 64;
}

bool is_private(const llvm::AllocaInst* a) {
    if (!a->isStaticAlloca() || a->isArrayAllocation() || !a->getAllocatedType()->isSingleValueType())
        return false;
    for (const auto* user : a->users()) {
        if (const auto* l = dyn_cast<llvm::LoadInst>(user)) {
            if (l->getType() != a->getAllocatedType()) return false;
        } else if (const auto* s = dyn_cast<llvm::StoreInst>(user)) {
            if (s->getValueOperand() == a || s->getValueOperand()->getType() != a->getAllocatedType())
                return false;
        } else if (const auto* i = dyn_cast<llvm::IntrinsicInst>(user)) {
            if (!i->isLifetimeStartOrEnd() && !isa<llvm::DbgInfoIntrinsic>(i)) return false;
        } else {
            return false;
        }
    }
    return true;
}

const llvm::Value* object_of(const llvm::Value* pointer) {
    const auto* object = llvm::getUnderlyingObject(pointer, 0);
    return isa<llvm::AllocaInst>(object) || isa<llvm::GlobalVariable>(object) ? object : nullptr;
}

bool is_signed(const llvm::Argument& argument) {
    const auto* variable = declared_variable(argument);
    if (!variable || !argument.getType()->isIntegerTy()) return false;
    const auto* type = variable->getType();
    while (const auto* derived = llvm::dyn_cast_or_null<llvm::DIDerivedType>(type))
        type = derived->getBaseType();
    const auto* basic = llvm::dyn_cast_or_null<llvm::DIBasicType>(type);
    return basic && basic->getSignedness() == llvm::DIBasicType::Signedness::Signed;
}

std::optional<BulkAccess> bulk_access(llvm::Instruction& i) {
    if (auto* m = dyn_cast<llvm::AnyMemIntrinsic>(&i)) {
        auto* t = dyn_cast<llvm::AnyMemTransferInst>(m);
        auto* s = dyn_cast<llvm::AnyMemSetInst>(m);
        return BulkAccess{m->getRawDest(), t ? t->getRawSource() : nullptr, m->getLength(),
                          s ? dyn_cast<llvm::ConstantInt>(s->getValue()) : nullptr};
    }
    auto* c = dyn_cast<llvm::CallBase>(&i);
    const auto* f = c ? c->getCalledFunction() : nullptr;
    if (!f || !f->isDeclaration() || c->arg_size() != 3 ||
        !c->getArgOperand(0)->getType()->isPointerTy() ||
        !c->getArgOperand(2)->getType()->isIntegerTy())
        return std::nullopt;
    if (f->getName() == "memset")
        return BulkAccess{c->getArgOperand(0), nullptr, c->getArgOperand(2),
                          dyn_cast<llvm::ConstantInt>(c->getArgOperand(1))};
    if ((f->getName() == "memcpy" || f->getName() == "memmove") &&
        c->getArgOperand(1)->getType()->isPointerTy())
        return BulkAccess{c->getArgOperand(0), c->getArgOperand(1), c->getArgOperand(2)};
    return std::nullopt;
}

bool touches_memory(const llvm::IntrinsicInst& call) {
    if (call.isAssumeLikeIntrinsic() || !call.mayReadOrWriteMemory()) return false;
    switch (call.getIntrinsicID()) {
        case llvm::Intrinsic::stacksave:
        case llvm::Intrinsic::stackrestore:
        case llvm::Intrinsic::prefetch:
        case llvm::Intrinsic::trap:
        case llvm::Intrinsic::debugtrap:
            return false;
        default:
            return !call.onlyAccessesInaccessibleMemory();
    }
}

bool is_allocation(const llvm::Function* f) {
    const auto n = f->getName();
    return n == "malloc" || n == "calloc" || n == "aligned_alloc" || n == "_Znwm" || n == "_Znam" ||
           n == "polybench_alloc_data";
}

std::int64_t promised_alignment(const llvm::CallBase& allocation) {
    const auto n = allocation.getCalledFunction()->getName();
    if (n == "polybench_alloc_data") return 4096;
    if (n == "aligned_alloc")
        if (const auto* c = dyn_cast<llvm::ConstantInt>(allocation.getArgOperand(0)))
            return c->getLimitedValue(4096);
    return 16;
}

bool is_harmless(const llvm::Function* f) {
    if (f->isIntrinsic() || f->doesNotAccessMemory() || f->onlyAccessesInaccessibleMemory())
        return true;
    // What never returns ends the run, and a run that ends so has no profile.
    if (is_number_reader(f) || f->doesNotReturn() || f->getName().starts_with("omp_get_")) return true;
    static const llvm::StringRef names[] = {
        "free",   "sqrt",    "sqrtf", "exp",     "expf",     "pow",    "powf",     "sin",
        "cos",    "log",     "fabs",  "fabsf",   "fmax",     "fmin",   "floor",    "ceil",
        "printf", "fprintf", "puts",  "putchar", "_ZdlPv",   "_ZdaPv", "_ZdlPvm",  "_ZdaPvm",
        "abs",    "labs",    "tan",   "atan",    "fmod",     "exit",   "abort",    "fma",
        "fmaf",   "creal",   "cimag", "conj",    "cabs",     "hypot",  "cbrt",     "sinf",
        "cosf",   "logf",    "tanf",  "floorf",  "ceilf",    "round",  "trunc",    "atan2",
        "exp2",   "log2",    "log10", "fminf",   "fmaxf",    "powf",   "fmodf",    "sinh",
        "cosh",   "tanh",    "asin",  "acos",    "copysign", "rint",   "nearbyint"};
    return std::find(std::begin(names), std::end(names), f->getName()) != std::end(names);
}

}  // namespace revisit::predict
