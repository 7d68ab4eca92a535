// Loads, stores and calculations, one instruction at a time.
#include <llvm/ADT/MapVector.h>
#include <llvm/Analysis/ValueTracking.h>
#include <llvm/Config/llvm-config.h>
#include <llvm/IR/Constants.h>
#include <llvm/IR/DebugInfoMetadata.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/Operator.h>
#include <llvm/Support/KnownBits.h>

#include <algorithm>
#include <optional>

#include "predict/slice/llvm/slicer.h"
#include "predict/slice/llvm/values.h"

namespace revisit::predict {

using llvm::cast;
using llvm::dyn_cast;
using llvm::isa;

namespace {

// The optimiser clears the bits of a mask that the masked value cannot have: whole vectors of a
// positive i are i & 0x7ffffffffffffffc. With those bits set again the mask is -4, which has a period
// of 4 that samples can follow (fit/fixed_numbers.cpp), and the result is the same.
llvm::Value* plain_mask(const llvm::Instruction& masked, llvm::ConstantInt* mask) {
    const auto absent =
        llvm::computeKnownBits(masked.getOperand(0), masked.getModule()->getDataLayout()).Zero;
    const auto widened = mask->getValue() | absent;
    const bool aligns = widened.isNegative() && (-widened).isPowerOf2();
    return aligns ? llvm::ConstantInt::get(mask->getType(), widened) : mask;
}

}  // namespace

Instruction& Slicer::emit(Op op, const llvm::Instruction& from) {
    auto& i = block_->code.emplace_back();
    i.op = op;
    i.width = width_of(from.getType());
    if (const auto& location = from.getDebugLoc()) i.line = location.getLine();
    return i;
}

void Slicer::limit(const llvm::Instruction& i, const std::string& what) {
    program_.limits.emplace_back(Doubt::Kind::outside, i.getDebugLoc() ? i.getDebugLoc().getLine() : 0,
                                 what);
}

std::int64_t Slicer::reference(const llvm::Instruction& i, const llvm::Value* pointer, bool write,
                               llvm::TypeSize size) {
    Reference r;
    r.write = write;
    r.size = static_cast<std::uint32_t>(size.getKnownMinValue());
    if (size.isScalable()) limit(i, "how long a vector is only the machine knows");
    auto d = describe(pointer);
    r.array = d.array;
    r.expression = d.expression;
    if (const auto* location = i.getDebugLoc().get()) {
        r.file = location->getFilename().str();
        r.line = location->getLine();
        r.column = location->getColumn();
        if (location->getInlinedAt()) r.inlined = location->getSubprogramLinkageName().str();
    }
    if (r.inlined.empty() && i.getDebugLoc() && i.getDebugLoc()->getInlinedAt() &&
        i.getDebugLoc()->getScope())
        if (const auto* sub = i.getDebugLoc()->getScope()->getSubprogram())
            r.inlined = sub->getName().str();
    if (const auto* gep = dyn_cast<llvm::GEPOperator>(pointer)) collect_extents(*gep, r);
    out_->references.push_back(std::move(r));
    return static_cast<std::int64_t>(out_->references.size()) - 1;
}

void Slicer::collect_extents(const llvm::GEPOperator& gep, Reference& r) {
    const auto* inner = dyn_cast<llvm::GEPOperator>(gep.getPointerOperand());
    if (inner) collect_extents(*inner, r);
    auto type = gep.getSourceElementType();
    auto index = gep.idx_begin();
    if (index == gep.idx_end()) return;
    for (++index; index != gep.idx_end(); ++index) {
        if (const auto* array = dyn_cast<llvm::ArrayType>(type)) {
            // Without a length (extern, or the last of a structure) there is nothing to be outside of.
            if (array->getNumElements() > 0 && !isa<llvm::Constant>(index->get()) &&
                index->get()->getType()->isIntegerTy() && needed_.count(index->get()))
                r.extents.emplace_back(reg(index->get()), array->getNumElements());
            type = array->getElementType();
        } else {
            return;
        }
    }
}

void Slicer::write(llvm::Instruction& i) {
    if ((i.isTerminator() && !isa<llvm::InvokeInst>(i)) || isa<llvm::PHINode>(i) ||
        isa<llvm::DbgInfoIntrinsic>(i))
        return;
    if (auto* l = dyn_cast<llvm::LoadInst>(&i)) {
        const auto id =
            reference(i, l->getPointerOperand(), false, layout_.getTypeStoreSize(l->getType()));
        const auto a = reg(l->getPointerOperand());
        auto& out = emit(Op::load, i);
        out.a = a;
        out.imm = id;
        out.b = slot(l->getPointerOperand());
        if (needed_.count(l)) {
            // Registers may be added while this one is written.
            const auto at = block_->code.size() - 1;
            const auto d = reg(l);
            if (const auto in = inputs_.find(l); in != inputs_.end())
                block_->code[at].b = input(in->second, width_of(l->getType()), Kind::integer);
            if (const auto end = ends_.find(l); end != ends_.end()) {
                block_->code[at].c = input(end->second.size, 64, Kind::integer);
                out_->references.back().element = end->second.element;
            }
            block_->code[at].dst = d;
            out_->references.back().pointer = l->getType()->isPointerTy() && block_->code[at].b < 0;
        }
        return;
    }
    if (auto* s = dyn_cast<llvm::StoreInst>(&i)) {
        const auto size = layout_.getTypeStoreSize(s->getValueOperand()->getType());
        const auto id = reference(i, s->getPointerOperand(), true, size);
        const auto a = reg(s->getPointerOperand());
        const auto value = carries(s) && is_register_type(s->getValueOperand()->getType())
                               ? reg(s->getValueOperand())
                               : -1;
        if (s->getValueOperand()->getType()->isVectorTy() &&
            s->getValueOperand()->getType()->getScalarType()->isPointerTy())
            limit(i, "pointers are stored several at once, which is not followed");
        auto& out = emit(Op::store, i);
        out.width = width_of(s->getValueOperand()->getType());
        out.a = a;
        out.c = value;
        out.b = slot(s->getPointerOperand());
        out.imm = id;
        return;
    }
    if (isa<llvm::AtomicRMWInst>(i) || isa<llvm::AtomicCmpXchgInst>(i)) {
        auto* pointer = i.getOperand(0);
        const auto size = layout_.getTypeStoreSize(i.getOperand(1)->getType());
        const auto wrote = reference(i, pointer, true, size);
        const auto a = reg(pointer);
        // One access, as it is one for those who record it.
        auto& out = emit(Op::store, i);
        out.a = a;
        out.imm = wrote;
        if (needed_.count(&i)) emit(Op::unknown, i).dst = reg(&i);
        return;
    }
    if (auto* c = dyn_cast<llvm::CallBase>(&i)) return write_call(*c);
    if (isa<llvm::VAArgInst>(i)) limit(i, "reads arguments of variable number, which are not counted");
    if (auto* a = dyn_cast<llvm::AllocaInst>(&i)) {
        if (!needed_.count(a)) return;
        const auto count = reg(a->getArraySize());
        const auto r = reg(a);
        auto& out = emit(Op::reserve, i);
        out.dst = r;
        out.a = count;
        out.b = static_cast<std::int32_t>(a->getAlign().value());
        out.imm = static_cast<std::int64_t>(layout_.getTypeAllocSize(a->getAllocatedType()));
        return;
    }
    if (needed_.count(&i)) write_value(i);
}

void Slicer::write_value(llvm::Instruction& i) {
    if (is_whole_comparison(&i) || is_whole_conversion(&i)) return write_whole(i);
    if (auto* x = dyn_cast<llvm::ExtractValueInst>(&i); x && packed_.count(x))
        return write_packed(*x, i);
    if (const auto* part = taken_out(i)) return write_taken_out(i, *part);
    if (auto* gep = dyn_cast<llvm::GetElementPtrInst>(&i)) return write_address(*gep);
    const auto binary = [&]() -> std::optional<Op> {
        switch (i.getOpcode()) {
            case llvm::Instruction::Add:
                return Op::add;
            case llvm::Instruction::Sub:
                return Op::sub;
            case llvm::Instruction::Mul:
                return Op::mul;
            case llvm::Instruction::UDiv:
                return Op::udiv;
            case llvm::Instruction::SDiv:
                return Op::sdiv;
            case llvm::Instruction::URem:
                return Op::urem;
            case llvm::Instruction::SRem:
                return Op::srem;
            case llvm::Instruction::Shl:
                return Op::shl;
            case llvm::Instruction::LShr:
                return Op::lshr;
            case llvm::Instruction::AShr:
                return Op::ashr;
            case llvm::Instruction::And:
                return Op::bit_and;
            case llvm::Instruction::Or:
                // Vector code has i | 1 for the i + 1 of an even i.
                return llvm::cast<llvm::PossiblyDisjointInst>(i).isDisjoint() ? Op::add : Op::bit_or;
            case llvm::Instruction::Xor:
                return Op::bit_xor;
            default:
                return std::nullopt;
        }
    }();
    if (!is_register_type(i.getType()) || !in_registers(i)) {
        const auto d = reg(&i);
        emit(Op::unknown, i).dst = d;
        return;
    }
    if (binary == Op::bit_and)
        if (auto* mask = dyn_cast<llvm::ConstantInt>(i.getOperand(1)))
            return write_op(*binary, i, i.getOperand(0), plain_mask(i, mask));
    if (binary) return write_op(*binary, i, i.getOperand(0), i.getOperand(1));
    if (auto* c = dyn_cast<llvm::ICmpInst>(&i)) return write_compare(*c);
    if (isa<llvm::SelectInst>(i)) {
        const auto a = reg(i.getOperand(0)), b = reg(i.getOperand(1)), c = reg(i.getOperand(2)),
                   d = reg(&i);
        auto& out = emit(Op::select, i);
        out.dst = d, out.a = a, out.b = b, out.c = c;
        return;
    }
    if (isa<llvm::TruncInst>(i) || isa<llvm::ZExtInst>(i) || isa<llvm::SExtInst>(i) ||
        isa<llvm::BitCastInst>(i) || isa<llvm::PtrToIntInst>(i) || isa<llvm::IntToPtrInst>(i) ||
        isa<llvm::FreezeInst>(i) || isa<llvm::AddrSpaceCastInst>(i)) {
        if (is_register_type(i.getOperand(0)->getType())) {
            program_.addresses_compared |= isa<llvm::PtrToIntInst>(i);
            const auto a = reg(i.getOperand(0)), d = reg(&i);
            const auto op = isa<llvm::TruncInst>(i)  ? Op::trunc
                            : isa<llvm::ZExtInst>(i) ? Op::zext
                            : isa<llvm::SExtInst>(i) ? Op::sext
                                                     : Op::copy;
            auto& out = emit(op, i);
            out.dst = d, out.a = a;
            if (op != Op::trunc) out.width = width_of(i.getOperand(0)->getType());
            return;
        }
    }
    const auto d = reg(&i);
    emit(Op::unknown, i).dst = d;
}

bool Slicer::in_registers(const llvm::Instruction& i) {
    return std::all_of(i.op_begin(), i.op_end(),
                       [](const llvm::Use& u) { return is_register_type(u->getType()); });
}

void Slicer::write_op(Op op, llvm::Instruction& i, llvm::Value* left, llvm::Value* right) {
    const auto a = reg(left), b = reg(right), d = reg(&i);
    auto& out = emit(op, i);
    out.dst = d, out.a = a, out.b = b;
}

void Slicer::write_compare(llvm::ICmpInst& c) {
    auto* left = c.getOperand(0);
    auto* right = c.getOperand(1);
    auto predicate = c.getPredicate();
    using P = llvm::CmpInst;
    program_.addresses_compared |= left->getType()->isPointerTy() &&
                                   !isa<llvm::ConstantPointerNull>(left) &&
                                   !isa<llvm::ConstantPointerNull>(right);
    if (predicate == P::ICMP_SGT || predicate == P::ICMP_SGE || predicate == P::ICMP_UGT ||
        predicate == P::ICMP_UGE) {
        std::swap(left, right);
        predicate = P::getSwappedPredicate(predicate);
    }
    const auto op = predicate == P::ICMP_EQ    ? Op::eq
                    : predicate == P::ICMP_NE  ? Op::ne
                    : predicate == P::ICMP_SLT ? Op::slt
                    : predicate == P::ICMP_SLE ? Op::sle
                    : predicate == P::ICMP_ULT ? Op::ult
                                               : Op::ule;
    write_op(op, c, left, right);
}

void Slicer::write_address(llvm::GetElementPtrInst& gep) {
#if LLVM_VERSION_MAJOR >= 20
    llvm::SmallMapVector<llvm::Value*, llvm::APInt, 4> scales;
#else
    llvm::MapVector<llvm::Value*, llvm::APInt> scales;
#endif
    llvm::APInt offset(64, 0);
    const auto result = reg(&gep);
    if (gep.getType()->isVectorTy() || !in_registers(gep) ||
        !gep.collectOffset(layout_, 64, scales, offset)) {
        emit(Op::unknown, gep).dst = result;
        return;
    }
    auto current = reg(gep.getPointerOperand());
    for (auto& [index, scale] : scales) {
        const auto r = reg(index);
        auto& out = emit(Op::offset, gep);
        out.dst = result, out.a = current, out.b = r, out.imm = scale.getSExtValue();
        current = result;
    }
    if (!offset.isZero() || scales.empty()) {
        const auto one = reg(llvm::ConstantInt::get(llvm::Type::getInt64Ty(gep.getContext()), 1));
        auto& out = emit(Op::offset, gep);
        out.dst = result, out.a = current, out.b = one, out.imm = offset.getSExtValue();
    }
}

}  // namespace revisit::predict
