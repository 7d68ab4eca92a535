// From instructions of x86_64 to micro-operations: see micro.h, and x64/ahead.h for examples.
//
// An operand in memory is loaded into t0 first, a result for it, or for a part of a register, is put
// into t2 and stored, or inserted, last. Registers of one and two bytes keep the rest of what they had,
// those of four bytes are extended by zeros. What is not named here ends the look-ahead, but for
// vector instructions, which are `native`.
#include <utility>

#include "machine/x64/lifter.h"

namespace revisit::machine {
namespace x64 {

// Instructions.

bool Lifter::alu() {
    static constexpr Op kOps[8] = {Op::add,     Op::bit_or,   Op::add_carry, Op::subtract_carry,
                                   Op::bit_and, Op::subtract, Op::bit_xor,   Op::subtract};
    bool is_same = !i.has_immediate && !i.has_memory && i.reg == i.rm && i.reg_is_high == i.rm_is_high;
    Op op = kOps[i.sub];
    std::uint8_t a = kZ, b = kZ;
    bool compares = i.is(X64Alu::cmp), subtracts = op == Op::subtract || i.is(X64Alu::sbb);
    if (is_same && (subtracts || op == Op::bit_xor)) {  // the same whatever is there
        if (op == Op::bit_xor) op = Op::subtract;
    } else {
        if (!read_rm(bytes, a)) return false;
        if (!i.has_immediate) b = value(reg(), kT1);
        if (i.to_reg) std::swap(a, b);
    }
    Place to = i.to_reg ? reg() : rm();
    put(op, compares ? kDiscard : slot_for(to), a, b, i.has_immediate ? i.immediate : 0).flags =
        kAllFlags;
    return compares || finish(to);
}

bool Lifter::test() {
    std::uint8_t a;
    if (!read_rm(bytes, a)) return false;
    put(Op::bit_and, kDiscard, a, i.has_immediate ? kZ : value(reg(), kT1),
        i.has_immediate ? i.immediate : 0)
        .flags = kAllFlags;
    return true;
}

bool Lifter::mov() {
    if (i.to_reg) {
        if (!i.has_memory) return write(reg(), value(rm(), kT0));
        if (bytes >= 4) return load(i.reg, bytes);
        return load(kT0, bytes) && write(reg(), kT0);
    }
    if (!i.has_immediate) return write(rm(), value(reg(), kT0));
    if (i.has_memory || bytes < 4) {
        put(Op::add, kT0, kZ, kZ, i.immediate);
        return write(rm(), kT0);
    }
    put(Op::add, i.rm, kZ, kZ, i.immediate);
    return true;
}

bool Lifter::lea() {
    Micro& m = put(Op::add, slot_for(reg()), kZ);
    address(m, false);
    return finish(reg());
}

bool Lifter::movx() {
    bool is_signed = i.op == Code::movsx;
    std::uint8_t d = slot_for(reg());
    if (i.has_memory) {
        if (!load(d, i.from,
                  !is_signed   ? Extend::zero
                  : bytes == 8 ? Extend::sign
                               : Extend::sign_to_32))
            return false;
    } else {
        unsigned from = i.rm_is_high ? 8 : 0;
        put(is_signed ? Op::signed_field : Op::field, d, i.rm, kZ, field_of(from, 8u * i.from));
    }
    return finish(reg());
}

// The stack, and where the program goes.

bool Lifter::push(std::uint8_t slot) {
    put_wide(Op::store, slot, kStack, kZ, -8);
    move_by(kStack, -8);
    return true;
}

bool Lifter::push() {
    if (i.has_immediate) {
        put_wide(Op::add, kT0, kZ, kZ, i.immediate);
        return push(kT0);
    }
    std::uint8_t slot;
    return read_rm(8, slot) && push(slot);
}

bool Lifter::pop() {
    put_wide(Op::load, i.rm == kStack ? kT0 : i.rm, kStack);
    if (i.rm == kStack)
        put_wide(Op::add, kStack, kT0);
    else
        move_by(kStack, 8);
    return true;
}

bool Lifter::call() {
    out.kind = Kind::call;
    std::uint8_t to = kT1;
    if (i.op == Code::call_indirect) {
        if (!read_rm(8, to)) return false;
        if (to == kStack) put_wide(Op::add, to = kT0, kStack);
    }
    put_wide(Op::add, kT1, kZ, kZ, static_cast<std::int64_t>(next));
    push(kT1);
    if (i.op == Code::call)
        jump(Op::jump, kZ, target());
    else
        put_wide(Op::jump_register, kDiscard, to);
    return true;
}

bool Lifter::ret() {
    out.kind = Kind::ret;
    put_wide(Op::load, kT0, kStack);
    move_by(kStack, 8 + i.immediate);
    put_wide(Op::jump_register, kDiscard, kT0);
    return true;
}

bool Lifter::leave() {
    put_wide(Op::load, kT0, kFrame);
    put_wide(Op::add, kStack, kFrame, kZ, 8);
    put_wide(Op::add, kFrame, kT0);
    return true;
}

bool Lifter::none() {
    return true;
}

bool Lifter::jmp() {
    jump(Op::jump, kZ, target());
    return true;
}

bool Lifter::jcc() {
    jump_if(condition(i.sub), target());
    return true;
}

bool Lifter::jump_indirect() {
    out.kind = Kind::jump;
    std::uint8_t to;
    if (!read_rm(8, to)) return false;
    put_wide(Op::jump_register, kDiscard, to);
    return true;
}

bool Lifter::jump_if_count() {
    if (i.is(X64Count::jrcxz)) {
        jump(Op::jump_zero, kC, target());
        return true;
    }
    move_by(kC, -1);
    if (i.is(X64Count::loop)) {
        jump(Op::jump_not_zero, kC, target());
        return true;
    }
    jump(Op::jump_zero, kC, next);
    jump_if({Test::equal, i.is(X64Count::loopne)}, target());
    return true;
}

// Strings. Repeated, an instruction comes back to itself until the count is used up, or what it
// compares is, or is not, the same.

bool Lifter::string() {
    out.kind = Kind::string;
    bool moves = i.op == Code::movs, stores = i.op == Code::stos;
    bool repeats = !i.is(X64Repeat::once), by_chunks = repeats && bytes < 8 && (moves || stores);
    if (repeats) jump(Op::jump_zero, kC, next);
    if (by_chunks) {
        Micro& m = put_wide(Op::own, kT1, kTarget, moves ? kSource : kZ);
        m.lanes = static_cast<std::uint8_t>(moves ? Own::string_chunk : Own::string_chunk_stored);
        m.c = kC;
        m.pieces = bytes;
    }
    auto move = [&](Op op, std::uint8_t d, std::uint8_t at) {
        Op sized = op == Op::load ? Op::load_sized : Op::store_sized;
        put(by_chunks ? sized : op, d, at).c = by_chunks ? kT1 : kZ;
    };
    auto log_bytes = static_cast<std::uint8_t>(std::countr_zero(unsigned{bytes}));
    if (by_chunks) put_wide(Op::multiply, kT3, kT1, kDirection);
    auto advance = [&](std::uint8_t r) {
        if (by_chunks)
            put_wide(Op::add, r, r, kT3);
        else
            put_wide(Op::add, r, r, kDirection).shift = log_bytes;
    };
    switch (i.op) {
        case Code::movs:
            move(Op::load, kT0, kSource);
            move(Op::store, kT0, kTarget);
            advance(kSource);
            advance(kTarget);
            break;
        case Code::stos: {
            std::uint8_t from = kA;
            if (by_chunks) {  // as often as there is room for it
                std::int64_t ones = bytes == 1   ? 0x0101010101010101
                                    : bytes == 2 ? 0x0001000100010001
                                                 : 0x100000001;
                put_wide(Op::field, from = kT0, kA, kZ, field_of(0, 8u * bytes));
                put_wide(Op::multiply, kT0, kT0, kZ, ones);
            }
            move(Op::store, from, kTarget);
            advance(kTarget);
            break;
        }
        case Code::lods:
            move(Op::load, kT0, kSource);
            write({kA, false, false}, kT0);
            advance(kSource);
            break;
        case Code::scas:
            move(Op::load, kT0, kTarget);
            put(Op::subtract, kDiscard, kA, kT0).flags = kAllFlags;
            advance(kTarget);
            break;
        default:
            move(Op::load, kT0, kSource);
            move(Op::load, kT1, kTarget);
            put(Op::subtract, kDiscard, kT0, kT1).flags = kAllFlags;
            advance(kSource);
            advance(kTarget);
    }
    if (!repeats) return true;
    if (by_chunks) {
        put_wide(Op::shift_right, kT1, kT1, kZ, log_bytes);
        put_wide(Op::subtract, kC, kC, kT1);
    } else
        move_by(kC, -1);
    if (moves || stores || i.op == Code::lods) {
        jump(Op::jump_not_zero, kC, pc);
        return true;
    }
    jump(Op::jump_zero, kC, next);
    jump_if({Test::equal, !i.is(X64Repeat::while_equal)}, pc);
    return true;
}

namespace {

using Lift = bool (Lifter::*)();
struct Lifts {  // by operation; those that are not named here are of vectors
    Lift of[static_cast<unsigned>(Code::vector_to_opaque) + 1] = {};
    consteval Lifts() {
        constexpr struct {
            Code op;
            Lift lift;
        } kRows[] = {
            {Code::nop, &Lifter::none},
            {Code::alu, &Lifter::alu},
            {Code::test, &Lifter::test},
            {Code::mov, &Lifter::mov},
            {Code::lea, &Lifter::lea},
            {Code::movzx, &Lifter::movx},
            {Code::movsx, &Lifter::movx},
            {Code::push, &Lifter::push},
            {Code::pop, &Lifter::pop},
            {Code::call, &Lifter::call},
            {Code::call_indirect, &Lifter::call},
            {Code::jmp, &Lifter::jmp},
            {Code::jmp_indirect, &Lifter::jump_indirect},
            {Code::jcc, &Lifter::jcc},
            {Code::ret, &Lifter::ret},
            {Code::leave, &Lifter::leave},
            {Code::inc, &Lifter::one_operand},
            {Code::dec, &Lifter::one_operand},
            {Code::not_, &Lifter::one_operand},
            {Code::neg, &Lifter::one_operand},
            {Code::multiply_wide, &Lifter::multiply_wide},
            {Code::imul, &Lifter::imul},
            {Code::shift, &Lifter::shift},
            {Code::setcc, &Lifter::setcc},
            {Code::cmovcc, &Lifter::cmovcc},
            {Code::xchg, &Lifter::xchg},
            {Code::xadd, &Lifter::xadd},
            {Code::cmpxchg, &Lifter::cmpxchg},
            {Code::bit_test, &Lifter::bit_test},
            {Code::bit_count, &Lifter::bit_count},
            {Code::bswap, &Lifter::bswap},
            {Code::cbw, &Lifter::cbw},
            {Code::cwd, &Lifter::cwd},
            {Code::bmi, &Lifter::bmi},
            {Code::double_shift, &Lifter::double_shift},
            {Code::crc32, &Lifter::crc32},
            {Code::movbe, &Lifter::movbe},
            {Code::cmpxchg8b, &Lifter::cmpxchg8b},
            {Code::flag_set, &Lifter::flags},
            {Code::sahf, &Lifter::flags},
            {Code::lahf, &Lifter::flags},
            {Code::jump_if_count, &Lifter::jump_if_count},
            {Code::no_values, &Lifter::no_values},
            {Code::xtest, &Lifter::no_values},
            {Code::floating, &Lifter::floating},
            {Code::ldmxcsr, &Lifter::control},
            {Code::stmxcsr, &Lifter::control},
            {Code::gather, &Lifter::gather},
            {Code::scatter, &Lifter::gather},
            {Code::movs, &Lifter::string},
            {Code::stos, &Lifter::string},
            {Code::lods, &Lifter::string},
            {Code::scas, &Lifter::string},
            {Code::cmps, &Lifter::string},
        };
        for (Lift& one : of) one = &Lifter::vector;
        for (const auto& row : kRows) of[static_cast<unsigned>(row.op)] = row.lift;
    }
};
constexpr Lifts kLifts;

}  // namespace

bool Lifter::lift() {
    return i.op != Code::unknown && (this->*kLifts.of[static_cast<unsigned>(i.op)])();
}

}  // namespace x64

void X64::lift(std::uint64_t pc, const Code& code, Lifting& out) {
    X64Instruction i = decode_x64(code.code, code.bytes);
    out.length = i.length;
    out.kind = Micro::Kind::other;
    out.seal(x64::Lifter{i, pc, pc + i.length, out}.lift());
}

}  // namespace revisit::machine
