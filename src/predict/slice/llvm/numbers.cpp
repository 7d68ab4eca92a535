// Numbers that are whole though their type or their operation hides it.
//
// Bounds kept in a double (for (i = 0; i < x; i++), floor(n / 2.0) in the loops that tiling tools
// write) and counted bits decide addresses as plain integers do. Doubles that are sums, differences,
// products and rounded quotients of integers of up to 32 bits are exact: they are followed as 64-bit
// integers, and beyond 2^53 (2^24 where the type is float) as unknown. Counts of bits are written out
// in shifts and masks, so that nothing that reads slices has to know them.
#include <llvm/IR/Constants.h>
#include <llvm/IR/IntrinsicInst.h>

#include <cmath>

#include "predict/slice/llvm/slicer.h"
#include "predict/slice/llvm/values.h"

namespace revisit::predict {

using llvm::dyn_cast;
using llvm::isa;

namespace {

constexpr int kMostNumberDepth = 6;
constexpr std::int64_t kSmallFactor = 512;

std::optional<std::int64_t> whole_constant(const llvm::Value* v) {
    const auto* c = dyn_cast<llvm::ConstantFP>(v);
    if (!c || !(c->getType()->isDoubleTy() || c->getType()->isFloatTy())) return std::nullopt;
    const double value = c->getType()->isDoubleTy() ? c->getValueAPF().convertToDouble()
                                                    : c->getValueAPF().convertToFloat();
    if (std::abs(value) > 0x1p31 || value != std::floor(value)) return std::nullopt;
    return static_cast<std::int64_t>(value);
}

llvm::Intrinsic::ID intrinsic_of(const llvm::Value* v) {
    const auto* call = dyn_cast<llvm::IntrinsicInst>(v);
    return call ? call->getIntrinsicID() : llvm::Intrinsic::not_intrinsic;
}

bool is_multiply_add(const llvm::Value* v) {
    const auto id = intrinsic_of(v);
    return (id == llvm::Intrinsic::fmuladd || id == llvm::Intrinsic::fma) &&
           (v->getType()->isDoubleTy() || v->getType()->isFloatTy());
}

bool is_rounding(llvm::Intrinsic::ID id) {
    return id == llvm::Intrinsic::floor || id == llvm::Intrinsic::ceil || id == llvm::Intrinsic::trunc;
}

}  // namespace

// An argument of the function at hand, which --param gives as an integer.
bool Slicer::is_given(const llvm::Value* v) const {
    const auto* a = dyn_cast<llvm::Argument>(v);
    if (!a || a->getParent() != functions_.front()) return false;
    if (!a->getType()->isDoubleTy() && !a->getType()->isFloatTy()) return false;
    return llvm::none_of(a->getParent()->users(), [&](const llvm::User* user) {
        const auto* call = dyn_cast<llvm::CallBase>(user);
        return call && index_.count(call->getFunction());
    });
}

// An integer made a number of the type, a whole constant, or a number given as an integer.
bool Slicer::is_leaf(const llvm::Value* v) const {
    if (whole_constant(v) || is_given(v)) return true;
    const auto* cast = dyn_cast<llvm::CastInst>(v);
    return cast && (isa<llvm::SIToFPInst>(cast) || isa<llvm::UIToFPInst>(cast)) &&
           (cast->getType()->isDoubleTy() || cast->getType()->isFloatTy()) &&
           cast->getSrcTy()->isIntegerTy() && cast->getSrcTy()->getIntegerBitWidth() <= kMostBits;
}

// a / b, or a * 0.5 where it is written so: the divisor.
std::optional<Slicer::Quotient> Slicer::quotient(const llvm::Value* v) const {
    const auto* b = dyn_cast<llvm::BinaryOperator>(v);
    if (!b || !b->getType()->isDoubleTy() || !is_leaf(b->getOperand(0))) return std::nullopt;
    if (b->getOpcode() == llvm::Instruction::FDiv && is_leaf(b->getOperand(1)))
        return Quotient{b->getOperand(0), b->getOperand(1)};
    const auto* c = dyn_cast<llvm::ConstantFP>(b->getOperand(1));
    llvm::APFloat inverse(0.0);
    if (b->getOpcode() == llvm::Instruction::FMul && c && c->getValueAPF().getExactInverse(&inverse)) {
        const double by = inverse.convertToDouble();
        if (by >= 1 && by <= 0x1p31) return Quotient{b->getOperand(0), nullptr, std::int64_t(by)};
    }
    return std::nullopt;
}

// Within 64 bits whatever the operands are: leaves have 32 bits, anything else 53.
bool Slicer::is_whole_product(const llvm::Value* left, const llvm::Value* right, int depth) const {
    if (const auto c = whole_constant(left); c && std::abs(*c) <= kSmallFactor)
        return is_whole(right, depth + 1);
    if (const auto c = whole_constant(right); c && std::abs(*c) <= kSmallFactor)
        return is_whole(left, depth + 1);
    return is_leaf(left) && is_leaf(right);
}

bool Slicer::is_whole(const llvm::Value* v, int depth) const {
    if (depth > kMostNumberDepth) return false;
    if (is_leaf(v)) return true;
    if (const auto id = intrinsic_of(v); is_rounding(id)) {
        const auto* operand = dyn_cast<llvm::CallBase>(v)->getArgOperand(0);
        return quotient(operand) || is_whole(operand, depth + 1);
    }
    if (is_multiply_add(v)) {
        const auto* call = dyn_cast<llvm::CallBase>(v);
        return is_whole_product(call->getArgOperand(0), call->getArgOperand(1), depth) &&
               is_whole(call->getArgOperand(2), depth + 1);
    }
    if (isa<llvm::FPExtInst>(v)) return is_whole(dyn_cast<llvm::CastInst>(v)->getOperand(0), depth + 1);
    const auto* b = dyn_cast<llvm::BinaryOperator>(v);
    if (!b || !(b->getType()->isDoubleTy() || b->getType()->isFloatTy())) return false;
    switch (b->getOpcode()) {
        case llvm::Instruction::FAdd:
        case llvm::Instruction::FSub:
            return is_whole(b->getOperand(0), depth + 1) && is_whole(b->getOperand(1), depth + 1);
        case llvm::Instruction::FMul:
            return is_whole_product(b->getOperand(0), b->getOperand(1), depth);
        default:
            return false;
    }
}

// The integers that a whole number, or a quotient, is made of.
void Slicer::need_whole(const llvm::Value* v) {
    if (is_given(v)) needed_.insert(v);
    const auto* i = dyn_cast<llvm::Instruction>(v);
    if (!i) return;
    if (isa<llvm::SIToFPInst>(i) || isa<llvm::UIToFPInst>(i)) return need(i->getOperand(0));
    if (const auto* call = dyn_cast<llvm::CallBase>(i)) {
        for (const auto& argument : call->args()) need_whole(argument.get());
        return;
    }
    for (const auto& operand : i->operands()) need_whole(operand.get());
}

std::int32_t Slicer::temporary() {
    const auto r = next_register();
    ++extra_;
    return r;
}

std::int32_t Slicer::calculated(Op op, const llvm::Instruction& at, std::int32_t a, std::int32_t b,
                                std::int32_t c, std::uint8_t width) {
    const auto d = temporary();
    auto& out = emit(op, at);
    out.width = width;
    out.dst = d, out.a = a, out.b = b, out.c = c;
    return d;
}

// Exact up to what the type holds, and unknown beyond.
std::int32_t Slicer::within(const llvm::Instruction& at, std::int32_t value, bool is_double) {
    const std::int64_t most = is_double ? std::int64_t{1} << 53 : std::int64_t{1} << 24;
    const auto d = temporary();
    emit(Op::unknown, at).dst = d;
    const auto moved = calculated(Op::add, at, value, constant(most));
    const auto fits = calculated(Op::ule, at, moved, constant(2 * most));
    return calculated(Op::select, at, fits, value, d);
}

std::int32_t Slicer::whole(const llvm::Instruction& at, const llvm::Value* v) {
    if (const auto c = whole_constant(v)) return constant(*c);
    const bool is_double = v->getType()->isDoubleTy();
    if (is_given(v)) return is_double ? reg(v) : within(at, reg(v), false);
    if (isa<llvm::SIToFPInst>(v) || isa<llvm::UIToFPInst>(v)) {
        const auto* from = dyn_cast<llvm::CastInst>(v)->getOperand(0);
        auto value = reg(from);
        if (isa<llvm::UIToFPInst>(v))
            value = calculated(Op::zext, at, value, -1, -1, width_of(from->getType()));
        return is_double || from->getType()->getIntegerBitWidth() <= 16 ? value
                                                                        : within(at, value, false);
    }
    if (const auto id = intrinsic_of(v); is_rounding(id)) {
        const auto* operand = dyn_cast<llvm::CallBase>(v)->getArgOperand(0);
        const auto q = quotient(operand);
        if (!q) return whole(at, operand);
        return divided(at, operand,
                       id == llvm::Intrinsic::floor  ? -1
                       : id == llvm::Intrinsic::ceil ? 1
                                                     : 0);
    }
    if (is_multiply_add(v)) {  // of integers it is the same whether it is fused or not
        const auto* call = dyn_cast<llvm::CallBase>(v);
        const auto left = whole(at, call->getArgOperand(0)), right = whole(at, call->getArgOperand(1));
        const auto product = within(at, calculated(Op::mul, at, left, right), is_double);
        const auto sum = calculated(Op::add, at, product, whole(at, call->getArgOperand(2)));
        return within(at, sum, is_double);
    }
    if (isa<llvm::FPExtInst>(v)) return whole(at, dyn_cast<llvm::CastInst>(v)->getOperand(0));
    const auto* b = dyn_cast<llvm::BinaryOperator>(v);
    const auto left = whole(at, b->getOperand(0)), right = whole(at, b->getOperand(1));
    const auto op = b->getOpcode() == llvm::Instruction::FAdd   ? Op::add
                    : b->getOpcode() == llvm::Instruction::FSub ? Op::sub
                                                                : Op::mul;
    return within(at, calculated(op, at, left, right), is_double);
}

// A quotient rounded down (-1), up (1) or towards zero (0). |a| < 2^32 and |b| <= 2^32: the double
// nearest to a / b is on the same side of every integer as a / b is.
std::int32_t Slicer::divided(const llvm::Instruction& at, const llvm::Value* v, int rounded) {
    const auto q = *quotient(v);
    const auto a = whole(at, q.dividend), b = q.divisor ? whole(at, q.divisor) : constant(q.number);
    const auto result = calculated(Op::sdiv, at, a, b);
    if (rounded == 0) return result;
    const auto rest = calculated(Op::sub, at, a, calculated(Op::mul, at, result, b));
    // Away from zero, where there is a rest and the signs are (or are not) the same.
    const auto zero = constant(0);
    const auto some = calculated(Op::ne, at, rest, zero);
    const auto signs = calculated(Op::slt, at, calculated(Op::bit_xor, at, rest, b), zero);
    const auto wanted = rounded < 0 ? signs : calculated(Op::eq, at, signs, zero);
    const auto off = calculated(Op::bit_and, at, some, wanted, -1, 1);
    const auto moved = calculated(Op::add, at, result, constant(rounded));
    return calculated(Op::select, at, off, moved, result);
}

bool Slicer::is_whole_comparison(const llvm::Value* v) const {
    const auto* c = dyn_cast<llvm::FCmpInst>(v);
    if (!c || c->getPredicate() == llvm::CmpInst::FCMP_FALSE ||
        c->getPredicate() == llvm::CmpInst::FCMP_TRUE || c->getPredicate() == llvm::CmpInst::FCMP_ORD ||
        c->getPredicate() == llvm::CmpInst::FCMP_UNO)
        return false;
    const auto *left = c->getOperand(0), *right = c->getOperand(1);
    if (is_whole(left)) return is_whole(right) || (!c->isEquality() && quotient(right));
    return is_whole(right) && !c->isEquality() && quotient(left);
}

// A side of a comparison. Integers are below a quotient where they are below it rounded up, and up to
// it where they are up to it rounded down; `up` says which of the two is asked.
std::int32_t Slicer::compared(const llvm::Instruction& at, const llvm::Value* v, bool up) {
    return is_whole(v) ? whole(at, v) : divided(at, v, up ? 1 : -1);
}

bool Slicer::is_whole_conversion(const llvm::Value* v) const {
    return (isa<llvm::FPToSIInst>(v) || isa<llvm::FPToUIInst>(v)) && is_register_type(v->getType()) &&
           (is_whole(dyn_cast<llvm::CastInst>(v)->getOperand(0)) ||
            quotient(dyn_cast<llvm::CastInst>(v)->getOperand(0)));
}

void Slicer::write_whole(const llvm::Instruction& i) {
    if (const auto* c = dyn_cast<llvm::FCmpInst>(&i)) {
        using P = llvm::CmpInst;
        const auto p = llvm::FCmpInst::getOrderedPredicate(c->getPredicate());
        // a < p / q and p / q <= a: up; p / q < a and a <= p / q: down.
        const bool up = p == P::FCMP_OLT || p == P::FCMP_OGE;
        auto left = compared(i, c->getOperand(0), !up), right = compared(i, c->getOperand(1), up);
        if (p == P::FCMP_OGT || p == P::FCMP_OGE) std::swap(left, right);
        const auto d = reg(&i);
        auto& out = emit(p == P::FCMP_OEQ                       ? Op::eq
                         : p == P::FCMP_ONE                     ? Op::ne
                         : p == P::FCMP_OLT || p == P::FCMP_OGT ? Op::slt
                                                                : Op::sle,
                         i);
        out.width = 1;
        out.dst = d, out.a = left, out.b = right;
        return;
    }
    const auto* operand = i.getOperand(0);
    const auto value = is_whole(operand) ? whole(i, operand) : divided(i, operand, 0);
    const auto d = reg(&i);
    auto& out = emit(Op::trunc, i);
    out.dst = d, out.a = value;
}

// Ones among the bits; zeros before the first or after the last.
bool Slicer::write_bits(const llvm::IntrinsicInst& i) {
    using I = llvm::Intrinsic::IndependentIntrinsics;
    const auto id = static_cast<I>(i.getIntrinsicID());
    const bool known = id == I::ctpop || id == I::cttz || id == I::ctlz;
    if (!known || !is_register_type(i.getType()) || !i.getType()->isIntegerTy()) return false;
    const auto bits = width_of(i.getType());
    auto x = calculated(Op::zext, i, reg(i.getArgOperand(0)), -1, -1, bits);
    const auto masked = [&](std::int32_t value, std::uint64_t mask) {
        return calculated(Op::bit_and, i, value, constant(static_cast<std::int64_t>(mask)));
    };
    const auto shifted = [&](std::int32_t value, int by) {
        return calculated(Op::lshr, i, value, constant(by));
    };
    const auto subtract = [&](std::int32_t a, std::int32_t b) { return calculated(Op::sub, i, a, b); };
    if (id == I::cttz) {  // ones below the lowest one
        const auto below = subtract(x, constant(1));
        x = calculated(Op::bit_and, i, calculated(Op::bit_xor, i, x, constant(-1)), below);
        if (bits < 64) x = masked(x, (std::uint64_t{1} << bits) - 1);
    } else if (id == I::ctlz) {  // all that the highest one is not above
        for (int by = 1; by < bits; by *= 2) x = calculated(Op::bit_or, i, x, shifted(x, by));
    }
    x = subtract(x, masked(shifted(x, 1), 0x5555555555555555));
    x = calculated(Op::add, i, masked(x, 0x3333333333333333),
                   masked(shifted(x, 2), 0x3333333333333333));
    x = masked(calculated(Op::add, i, x, shifted(x, 4)), 0x0F0F0F0F0F0F0F0F);
    x = shifted(calculated(Op::mul, i, x, constant(0x0101010101010101)), 56);
    if (id == I::ctlz) x = subtract(constant(bits), x);
    const auto d = reg(&i);
    auto& out = emit(Op::trunc, i);
    out.dst = d, out.a = x;
    return true;
}

}  // namespace revisit::predict
