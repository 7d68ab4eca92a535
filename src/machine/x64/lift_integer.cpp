// Arithmetic of x86_64 on general registers, in micro-operations: see x64/lift.cpp.
#include "machine/x64/lifter.h"

namespace revisit::machine::x64 {

// Arithmetic.

// Of values that are numbered as their instructions are.
static Own nth(Own first, unsigned k) {
    return static_cast<Own>(static_cast<unsigned>(first) + k);
}

bool Lifter::one_operand() {
    std::uint8_t a, d = slot_for(rm());
    if (!read_rm(bytes, a)) return false;
    switch (i.op) {
        case Code::inc:
        case Code::dec:
            put(i.op == Code::inc ? Op::add : Op::subtract, d, a, kZ, 1).flags = kAllFlags & ~kCarry;
            break;
        case Code::neg:
            put(Op::subtract, d, kZ, a).flags = kAllFlags;
            break;
        default:
            put(Op::or_not, d, kZ, a);
    }
    return finish(rm());
}

bool Lifter::imul() {
    std::uint8_t a;
    if (!read_rm(bytes, a)) return false;
    Micro& m = put(Op::multiply, slot_for(reg()), a, i.has_immediate ? kZ : i.reg,
                   i.has_immediate ? i.immediate : 0);
    m.flags = kCarry | kOverflow;
    m.loses = kZero | kSign | kParity;
    return finish(reg());
}

// The product in t2 and, its high half, t3.
void Lifter::multiply_whole(std::uint8_t a, std::uint8_t b, bool is_signed) {
    if (bytes == 8) {
        put(Op::multiply, kT2, a, b);
        put(is_signed ? Op::multiply_high_signed : Op::multiply_high, kT3, a, b);
        return;
    }
    Op extend = is_signed ? Op::signed_field : Op::field;
    put_wide(extend, kT2, a, kZ, field_of(0, 8u * bytes));
    put_wide(extend, kT3, b, kZ, field_of(0, 8u * bytes));
    put_wide(Op::multiply, kT2, kT2, kT3);
    put_wide(Op::field, kT3, kT2, kZ, field_of(8u * bytes, 8u * bytes));
}

// rax and rdx, times or by an operand; of bytes, ax.
bool Lifter::multiply_wide() {
    std::uint8_t b;
    if (!read_rm(bytes, b)) return false;
    bool is_signed = i.is(X64Wide::imul) || i.is(X64Wide::idiv);
    std::uint8_t low = bytes == 1 ? kT2 : kA, high = bytes == 1 ? kT3 : kD;
    if (i.is(X64Wide::div) || i.is(X64Wide::idiv)) {
        Own kinds[2] = {is_signed ? Own::signed_quotient : Own::quotient,
                        is_signed ? Own::signed_remainder : Own::remainder};
        put_own(kinds[0], kT2, kA, b).c = bytes == 1 ? kZ : kD;
        put_own(kinds[1], kT3, kA, b).c = bytes == 1 ? kZ : kD;
        forget_flags();
    } else {
        multiply_whole(kA, b, is_signed);
        Micro& m =
            put_own(is_signed ? Own::high_is_not_sign : Own::high_is_not_zero, kDiscard, kT3, kT2);
        m.flags = kCarry | kOverflow;
        m.loses = kZero | kSign | kParity;
    }
    if (bytes == 1) {
        put_wide(Op::field, kT1, kT3, kZ, field_of(0, 8, 8));
        put_wide(Op::field, kT2, kT2, kZ, field_of(0, 8));
        put_wide(Op::bit_or, kT1, kT1, kT2);
        out.put(Op::insert, kA, kA, kT1, 0, 2);
        return true;
    }
    return write({low, false, false}, kT2) && write({high, false, false}, kT3);
}

bool Lifter::shift() {
    std::uint8_t a, d = slot_for(rm()), by = i.has_immediate ? kZ : kC;
    unsigned width = 8u * bytes;
    if (!read_rm(bytes, a)) return false;
    std::int64_t count = i.has_immediate ? i.immediate & (bytes == 8 ? 63 : 31) : 0;
    if (i.has_immediate && count == 0) return (!i.has_memory && bytes < 4) || write(rm(), a);
    bool left = i.is(X64Shift::rol), rotates = left || i.is(X64Shift::ror);
    if (i.is(X64Shift::rcl) || i.is(X64Shift::rcr)) {  // not followed
        put(Op::forget, d, kZ);
        forget_flags(kCarry | kOverflow);
        return finish(rm());
    }
    bool is_own =
        bytes < 4 && (!i.has_immediate || count >= static_cast<std::int64_t>(width) || rotates);
    if (is_own) {
        static constexpr Own kOwn[8] = {Own::rol, Own::ror, {},       {},
                                        Own::shl, Own::shr, Own::shl, Own::sar};
        Micro& m = put_own(kOwn[i.sub], d, a, by, count);
        m.flags = rotates ? kCarry : kAllFlags & ~kOverflow;
        m.loses = kOverflow;
        if (!i.has_immediate) m.condition = {Test::carry, false};  // none may change
    } else if (rotates) {
        if (left && i.has_immediate) count = static_cast<std::int64_t>(width) - count;
        if (left && !i.has_immediate) put(Op::subtract, by = kT1, kZ, kC);
        put(Op::rotate_right, d, a, by, count);
        forget_flags(kCarry | kOverflow);
    } else
        put(i.is(X64Shift::shr)   ? Op::shift_right
            : i.is(X64Shift::sar) ? Op::shift_signed
                                  : Op::shift_left,
            d, a, by, count)
            .flags = kAllFlags;
    return finish(rm());
}

bool Lifter::double_shift() {
    std::uint8_t a, d = slot_for(rm());
    unsigned width = 8u * bytes, count = static_cast<unsigned>(i.immediate) & (bytes == 8 ? 63 : 31);
    if (!read_rm(bytes, a)) return false;
    if (i.has_immediate && count == 0) return write(rm(), a);
    if (i.has_immediate && count < width) {
        bool right = i.is(X64DoubleShift::shrd);
        put(right ? Op::shift_right : Op::shift_left, kT3, a, kZ, count);
        put(right ? Op::shift_left : Op::shift_right, kT1, i.reg, kZ, width - count);
        Micro& m = put(Op::bit_or, d, kT3, kT1);
        m.flags = kZero | kSign | kParity;
        m.loses = kCarry | kOverflow;
    } else {
        put(Op::forget, d, kZ);
        forget_flags();
    }
    return finish(rm());
}

bool Lifter::setcc() {
    put(Op::select, kT2, kZ, kZ, 1).condition = condition(i.sub);
    return finish(rm());
}

bool Lifter::cmovcc() {
    std::uint8_t b;
    if (!read_rm(bytes, b)) return false;
    put(Op::select, slot_for(reg()), i.reg, b).condition = condition(i.sub);
    return finish(reg());
}

bool Lifter::xchg() {
    if (i.has_memory) {
        if (!load(kT0, bytes) || !write(rm(), value(reg(), kT1))) return false;
        return write(reg(), kT0);
    }
    put_wide(Op::add, kT0, value(rm(), kT0));
    put_wide(Op::add, kT1, value(reg(), kT1));
    return write(rm(), kT1) && write(reg(), kT0);
}

bool Lifter::xadd() {
    std::uint8_t a, b = value(reg(), kT1);
    if (!read_rm(bytes, a)) return false;
    put(Op::add, kT2, a, b).flags = kAllFlags;
    if (i.has_memory) return finish(rm()) && write(reg(), kT0);
    put_wide(Op::add, kT0, a);
    return write(reg(), kT0) && write(rm(), kT2);
}

bool Lifter::cmpxchg() {
    std::uint8_t a, b = value(reg(), kT1);
    if (!read_rm(bytes, a)) return false;
    if (a != kT0) put_wide(Op::add, kT0, a);
    put(Op::subtract, kDiscard, kA, kT0).flags = kAllFlags;
    Condition equal{Test::equal, false};
    put(Op::select, kT2, kT0, b).condition = equal;
    if (!finish(rm())) return false;
    if (!i.has_memory && bytes >= 4) copy(i.rm, kT2);
    if (bytes < 4)
        put(Op::insert, kT0, kA, kT0);
    else
        put(Op::add, kT0, kT0);
    put_wide(Op::select, kA, kT0, kA).condition = equal;
    return true;
}

bool Lifter::bit_test() {
    std::uint8_t a;
    if (!read_rm(bytes, a)) return false;
    bool only_tests = i.is(X64BitTest::bt);
    Micro& m = put_own(nth(Own::bt, i.sub), only_tests ? kDiscard : slot_for(rm()), a,
                       i.has_immediate ? kZ : i.reg, i.has_immediate ? i.immediate : 0);
    m.flags = kCarry;
    m.loses = kOverflow | kSign | kParity;
    return only_tests || finish(rm());
}

bool Lifter::bit_count() {
    static constexpr std::uint8_t kFlags[5] = {kAllFlags, kCarry | kZero, kCarry | kZero, kZero, kZero};
    std::uint8_t a;
    if (!read_rm(bytes, a)) return false;
    Micro& m = put_own(nth(Own::popcnt, i.sub), slot_for(reg()), a);
    m.flags = kFlags[i.sub];
    m.loses = kAllFlags & ~m.flags;
    return finish(reg());
}

bool Lifter::bmi() {
    constexpr std::uint8_t kLogic = kCarry | kOverflow | kZero | kSign;
    enum Operands : std::uint8_t { register_memory, memory_register, memory_only };
    static constexpr struct {
        Op op;
        Own own;
        Operands operands;
        std::uint8_t flags;
    } kRows[] = {
        // in the order of X64Bmi
        {Op::and_not, {}, memory_register, kLogic},
        {Op::own, Own::blsr, memory_only, kLogic},
        {Op::own, Own::blsmsk, memory_only, kLogic},
        {Op::own, Own::blsi, memory_only, kLogic},
        {Op::own, Own::bzhi, memory_register, kLogic},
        {Op::own, Own::bextr, memory_register, kCarry | kOverflow | kZero},
        {Op::own, Own::pdep, register_memory, 0},
        {Op::own, Own::pext, register_memory, 0},
        {Op::shift_left, {}, memory_register, 0},
        {Op::shift_right, {}, memory_register, 0},
        {Op::shift_signed, {}, memory_register, 0},
        {Op::rotate_right, {}, memory_only, 0},
        {Op::own, Own::adcx, register_memory, kCarry},
        {Op::own, Own::adox, register_memory, kOverflow},
    };
    std::uint8_t b, a = i.first;
    if (!read_rm(bytes, b)) return false;
    if (i.is(X64Bmi::mulx)) {
        multiply_whole(kD, b, false);
        copy(i.first, kT2);
        copy(i.reg, kT3);
        return true;
    }
    const auto& row = kRows[i.sub];
    bool swaps = row.operands != register_memory, is_alone = row.operands == memory_only;
    Micro& m = put(row.op, i.reg, swaps ? b : a,
                   is_alone ? kZ
                   : swaps  ? a
                            : b,
                   i.immediate & (8 * bytes - 1));
    m.flags = row.flags;
    if (row.flags & kZero) m.loses = kAllFlags & ~row.flags;
    if (row.op == Op::own) m.lanes = static_cast<std::uint8_t>(row.own);
    if (row.own == Own::adcx) m.condition = {Test::carry, false};
    if (row.own == Own::adox) m.condition = {Test::overflow, false};
    return true;
}

bool Lifter::crc32() {
    std::uint8_t b;
    if (!read_rm(i.from, b)) return false;
    Micro& m = out.put(Op::own, i.reg, i.reg, b, 0, 4);
    m.lanes = static_cast<std::uint8_t>(Own::crc32);
    m.pieces = i.from;
    return true;
}

bool Lifter::bswap() {
    put(Op::reverse_bytes, i.rm, i.rm, kZ, bytes);
    return true;
}

bool Lifter::movbe() {
    if (i.to_reg) {
        if (!load(kT0, bytes)) return false;
        put(Op::reverse_bytes, slot_for(reg()), kT0, kZ, bytes);
        return finish(reg());
    }
    put(Op::reverse_bytes, kT2, i.reg, kZ, bytes);
    return finish(rm());
}

bool Lifter::cbw() {
    put(Op::signed_field, slot_for({kA, false, false}), kA, kZ, field_of(0, 4u * bytes));
    return finish({kA, false, false});
}

bool Lifter::cwd() {
    put(Op::shift_signed, slot_for({kD, false, false}), kA, kZ, 8 * bytes - 1);
    return finish({kD, false, false});
}

bool Lifter::flags() {
    if (i.op == Code::lahf) {  // with one that is not followed
        put_wide(Op::forget, kA, kZ);
        return true;
    }
    if (i.op == Code::sahf) {
        put_wide(Op::field, kT0, kA, kZ, field_of(8, 8));
        put_own(Own::sahf, kDiscard, kT0).flags = kAllFlags & ~kOverflow;
        return true;
    }
    if (i.is(X64Flag::cld) || i.is(X64Flag::std)) return special();
    Micro& own = put_own(i.is(X64Flag::cmc)   ? Own::cmc
                         : i.is(X64Flag::stc) ? Own::stc
                                              : Own::clc,
                         kDiscard, kZ);
    own.flags = kCarry;
    if (i.is(X64Flag::cmc)) own.condition = {Test::carry, false};
    return true;
}

bool Lifter::no_values() {
    for (unsigned r = 0; r < 16; r++)
        if (i.immediate >> r & 1) put_wide(Op::forget, static_cast<std::uint8_t>(r), kZ);
    // Outside of a transaction, which a signal would have ended.
    if (i.op == Code::xtest) put_own(Own::xtest, kDiscard, kZ).flags = kAllFlags;
    if (i.is(X64Loses::flags)) forget_flags();
    return true;
}

// x87 and others of which only the place in memory is known.
bool Lifter::floating() {
    if (i.has_memory && (i.reads || i.writes) &&
        !memory(i.writes ? Op::store_unknown : Op::vector_load, i.writes ? kDiscard : kOperand,
                i.memory_bytes))
        return false;
    if (i.is(X64Loses::flags)) forget_flags();
    if (i.is(X64Loses::ax)) put_wide(Op::forget, kA, kZ);
    return true;
}

// How vectors of floats are computed.
bool Lifter::control() {
    if (i.reads) return memory(Op::vector_load, kOperand, i.memory_bytes) && special();
    return special() && memory(Op::vector_store, kOperand, i.memory_bytes);
}

}  // namespace revisit::machine::x64
