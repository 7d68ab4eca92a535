// Registers of the slice: for values, for locals that are never pointed to, and for constants.
#include <llvm/IR/Constants.h>
#include <llvm/IR/DebugInfoMetadata.h>
#include <llvm/IR/Operator.h>

#include "predict/slice/llvm/slicer.h"
#include "predict/slice/llvm/values.h"

namespace revisit::predict {

namespace {

constexpr std::uint64_t kUnknownLength = std::uint64_t{1} << 36;
constexpr std::uint64_t kMostEntries = 1 << 20;  // of a table

}  // namespace

using llvm::cast;
using llvm::dyn_cast;
using llvm::isa;

std::int32_t Slicer::global_index(const llvm::GlobalVariable* g) {
    const auto [at, fresh] =
        globals_.try_emplace(g, static_cast<std::int32_t>(program_.globals.size()));
    if (fresh) {
        Global out;
        out.name = g->getName().str();
        if (g->getValueType()->isSized()) out.size = layout_.getTypeAllocSize(g->getValueType());
        // Declared without a length: as long as it may be, so that nothing else lies in it.
        if (out.size == 0 && g->isDeclaration()) out.size = kUnknownLength;
        out.align = layout_.getPreferredAlign(g).value();
        out.constant = g->isConstant();
        if (g->hasInitializer()) initial_values(*g, out);
        program_.globals.push_back(std::move(out));
    }
    return at->second;
}

namespace {

// What an array, or what clang makes of one that is initialised in part (a structure of two), is made
// of.
const llvm::Type* element_of(const llvm::Type* type) {
    while (type->isArrayTy() || (type->isStructTy() && type->getStructNumElements() > 0))
        type = type->isArrayTy() ? type->getArrayElementType() : type->getStructElementType(0);
    return type;
}

// The integers of an aggregate that has nothing else than those of one type.
bool flatten(const llvm::Constant* c, const llvm::Type* element, std::vector<std::int64_t>& out) {
    if (const auto* n = dyn_cast<llvm::ConstantInt>(c)) {
        out.push_back(n->getBitWidth() <= 64 ? n->getSExtValue() : 0);
        return n->getType() == element && n->getBitWidth() <= 64;
    }
    const auto* type = c->getType();
    if (!type->isArrayTy() && !type->isStructTy()) return false;
    const auto entries = type->isArrayTy() ? type->getArrayNumElements() : type->getStructNumElements();
    if (out.size() + entries > kMostEntries) return false;
    for (unsigned k = 0; k < entries; ++k)
        if (const auto* e = c->getAggregateElement(k); !e || !flatten(e, element, out)) return false;
    return true;
}

}  // namespace

// A static number that the code at hand writes, and no other: it starts as zero if it says nothing
// else.
bool Slicer::is_own_state(const llvm::GlobalVariable& g) const {
    llvm::SmallVector<llvm::DIGlobalVariableExpression*, 1> described;
    g.getDebugInfo(described);
    if (described.empty() || !described.front()->getVariable()->isLocalToUnit()) return false;
    bool written = false;
    llvm::SmallVector<const llvm::Value*, 8> uses{&g};
    while (!uses.empty())
        for (const auto* user : uses.pop_back_val()->users()) {
            if (const auto* i = dyn_cast<llvm::Instruction>(user)) {
                if (!index_.count(i->getFunction())) return false;
                written |= isa<llvm::StoreInst>(i) || isa<llvm::GetElementPtrInst>(i);
            } else if (isa<llvm::Constant>(user)) {
                uses.push_back(user);
            }
        }
    return written;
}

void Slicer::initial_values(const llvm::GlobalVariable& g, Global& out) const {
    const auto* init = g.getInitializer();
    const auto* element = element_of(g.getValueType());
    if (element->isPointerTy() && init->isNullValue() && out.size / 8 <= kMostEntries &&
        is_own_state(g)) {
        out.element = 8;
        out.values.assign(out.size / 8, 0);
    }
    if (!element->isIntegerTy()) return;
    out.element =
        static_cast<std::uint32_t>(layout_.getTypeAllocSize(const_cast<llvm::Type*>(element)));
    // Zero is what is not initialised has, too: input, as a rule.
    // Arrays of numbers are filled by somebody, as a rule, also where nobody is seen to.
    if (init->isNullValue() && !g.isConstant() && (g.getValueType()->isArrayTy() || !is_own_state(g)))
        return;
    if (!flatten(init, element, out.values) || out.values.size() * out.element != out.size)
        out.values.clear();
}

std::int32_t Slicer::next_register() const {
    return static_cast<std::int32_t>(registers_.size() + slots_.size() + constants_.size()) + extra_;
}

std::int32_t Slicer::fresh(llvm::DenseMap<const llvm::Value*, std::int32_t>& map,
                           const llvm::Value* v) {
    if (const auto at = map.find(v); at != map.end()) return at->second;
    const auto r = next_register();
    map[v] = r;
    return r;
}

std::int32_t Slicer::constant(std::int64_t value, std::int32_t global, bool known,
                              const llvm::Value* key) {
    const Constant c{next_register(), global, value, known};
    if (key)
        constants_[key] = c.reg;
    else
        ++extra_;
    out_->constants.push_back(c);
    return c.reg;
}

std::int32_t Slicer::reg(const llvm::Value* v) {
    if (const auto* c = dyn_cast<llvm::Constant>(v)) {
        if (const auto at = constants_.find(v); at != constants_.end()) return at->second;
        if (const auto* n = dyn_cast<llvm::ConstantInt>(c)) {
            const auto value = n->getBitWidth() == 1 ? n->getZExtValue()
                                                     : n->getValue().sextOrTrunc(64).getSExtValue();
            // A register for every use: numbers that happen to be equal at this size stay apart.
            return constant(static_cast<std::int64_t>(value));
        }
        if (c->isNullValue()) return constant(0, -1, true, v);
        if (c->getType()->isPointerTy()) {
            llvm::APInt offset(64, 0);
            const auto* base = c->stripAndAccumulateConstantOffsets(layout_, offset, true);
            if (const auto* g = dyn_cast<llvm::GlobalVariable>(base))
                return constant(offset.getSExtValue(), global_index(g), true, v);
        }
        // The address of a global as a number.
        if (const auto* e = dyn_cast<llvm::ConstantExpr>(c);
            e && e->getOpcode() == llvm::Instruction::PtrToInt && c->getType()->isIntegerTy(64)) {
            llvm::APInt offset(64, 0);
            const auto* base =
                e->getOperand(0)->stripAndAccumulateConstantOffsets(layout_, offset, true);
            if (const auto* g = dyn_cast<llvm::GlobalVariable>(base)) {
                program_.addresses_compared = true;
                return constant(offset.getSExtValue(), global_index(g), true, v);
            }
        }
        return constant(0, -1, false, v);
    }
    return fresh(registers_, v);
}

std::int32_t Slicer::slot(const llvm::Value* pointer) {
    const auto* a = dyn_cast<llvm::AllocaInst>(pointer);
    return a && is_private(a) && is_register_type(a->getAllocatedType()) ? fresh(slots_, a) : -1;
}

void Slicer::find_induction(llvm::Loop& l, Loop& out) {
    for (auto& phi : l.getHeader()->phis()) {
        if (!phi.getType()->isIntegerTy() || !l.getLoopLatch()) continue;
        const auto* step =
            dyn_cast<llvm::BinaryOperator>(phi.getIncomingValueForBlock(l.getLoopLatch()));
        if (!step || (step->getOperand(0) != &phi && step->getOperand(1) != &phi)) continue;
        if (step->getOpcode() != llvm::Instruction::Add && step->getOpcode() != llvm::Instruction::Sub)
            continue;
        if (out.variable.empty()) out.variable = source_name(&phi);
        if (needed_.count(&phi)) {
            out.induction = reg(&phi);
            out.variable = source_name(&phi);
            return;
        }
    }
    auto* latch = l.getLoopLatch();  // -O0: a local, loaded by the header, stored by the latch
    if (!latch) return;
    for (auto& i : *latch) {
        auto* s = dyn_cast<llvm::StoreInst>(&i);
        auto* a = s ? dyn_cast<llvm::AllocaInst>(s->getPointerOperand()) : nullptr;
        if (!a || !is_private(a) || !a->getAllocatedType()->isIntegerTy()) continue;
        for (auto& j : *l.getHeader())
            if (auto* load = dyn_cast<llvm::LoadInst>(&j); load && load->getPointerOperand() == a) {
                out.induction = fresh(slots_, a);
                out.variable = source_name(a);
                return;
            }
    }
}

}  // namespace revisit::predict
