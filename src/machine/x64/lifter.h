// What lifting instructions of x86_64 has in common: slots, operands, places of results. See
// x64/lift.cpp.
#pragma once

#include "machine/x64/ahead.h"

namespace revisit::machine::x64 {

using Op = Micro::Op;
using Kind = Micro::Kind;
using Code = X64Instruction::Op;
using Extend = Micro::Extend;

inline constexpr std::uint8_t kT0 = kTemporary, kT1 = kTemporary + 1, kT2 = kTemporary + 2,
                              kT3 = kTemporary + 3, kT4 = 16;
inline constexpr std::uint8_t kA = 0, kC = 1, kD = 2, kStack = 4, kFrame = 5, kSource = 6, kTarget = 7;
inline constexpr std::uint8_t kZ = kZeroSlot;

inline Condition condition(unsigned c) {
    static constexpr Test kTests[8] = {Test::overflow, Test::carry,  Test::equal, Test::carry_or_zero,
                                       Test::negative, Test::parity, Test::less,  Test::less_equal};
    return {kTests[c >> 1], (c & 1) != 0};
}

struct Lifter {
    const X64Instruction& i;
    std::uint64_t pc, next;
    Lifting& out;
    std::uint8_t bytes = i.bytes;

    struct Place {
        std::uint8_t r;
        bool is_high, is_memory;
    };
    Place rm() const { return {i.rm, i.rm_is_high, i.has_memory}; }
    Place reg() const { return {i.reg, i.reg_is_high, false}; }

    Micro& put(Op op, std::uint8_t d, std::uint8_t a, std::uint8_t b = kZ, std::int64_t immediate = 0) {
        return out.put(op, d, a, b, immediate, bytes);
    }
    Micro& put_wide(Op op, std::uint8_t d, std::uint8_t a, std::uint8_t b = kZ,
                    std::int64_t immediate = 0) {
        return out.put(op, d, a, b, immediate);
    }
    Micro& put_own(Own what, std::uint8_t d, std::uint8_t a, std::uint8_t b = kZ,
                   std::int64_t immediate = 0) {
        Micro& m = put(Op::own, d, a, b, immediate);
        m.lanes = static_cast<std::uint8_t>(what);
        return m;
    }
    void copy(std::uint8_t d, std::uint8_t from) { put(Op::add, d, from); }
    void move_by(std::uint8_t r, std::int64_t by) { put_wide(Op::add, r, r, kZ, by); }
    void forget_flags(std::uint8_t which = kAllFlags) {
        put(Op::forget_flags, kDiscard, kZ).loses = which;
    }
    void jump(Op op, std::uint8_t a, std::uint64_t to) {
        put_wide(op, kDiscard, a, kZ, static_cast<std::int64_t>(to));
    }
    void jump_if(Condition when, std::uint64_t to) {
        put_wide(Op::jump_if, kDiscard, kZ, kZ, static_cast<std::int64_t>(to)).condition = when;
    }
    std::uint64_t target() const { return next + static_cast<std::uint64_t>(i.immediate); }

    // Operands.

    // Puts the address of the operand in memory into `m`.
    void address(Micro& m, bool has_segment = true) {
        std::uint8_t base = i.base < 16 ? i.base : kZ, index = i.index < 16 ? i.index : kZ;
        auto shift = static_cast<std::uint8_t>(std::countr_zero(unsigned{i.scale}));
        m.immediate = i.displacement;
        if (i.base == X64Instruction::kPc) m.immediate += static_cast<std::int64_t>(next);
        m.a = base;
        m.b = index;
        m.shift = index == kZ ? 0 : shift;
        if (i.segment == 1 && has_segment) (base == kZ ? m.a : m.b) = kThreadPointer;
    }
    // One that is made of three registers is computed first.
    bool memory(Op op, std::uint8_t d, unsigned of, Extend extend = Extend::zero) {
        if (i.segment == 2) return false;
        Micro m;
        m.op = op;
        m.d = d;
        m.bytes = static_cast<std::uint8_t>(of);
        m.extend = extend;
        address(m);
        if (i.segment == 1 && i.base < 16) {
            if (i.index < 16) {
                Micro& sum = put_wide(Op::add, kT4, kZ);
                address(sum, false);
                sum.immediate = 0;
                m.a = kT4;
            }
            m.b = kThreadPointer;
            m.shift = 0;
        }
        out.micro[out.count++] = m;
        return true;
    }
    bool load(std::uint8_t d, unsigned of, Extend extend = Extend::zero) {
        return memory(Op::load, d, of, extend);
    }
    // The slot with the value of a register in its low bytes.
    std::uint8_t value(Place p, std::uint8_t temporary) {
        if (!p.is_high) return p.r;
        put_wide(Op::field, temporary, p.r, kZ, field_of(8, 8));
        return temporary;
    }
    // … of the operand that may be in memory. False where that cannot be.
    bool read_rm(unsigned of, std::uint8_t& slot) {
        slot = kT0;
        if (i.has_memory) return load(kT0, of);
        slot = value(rm(), kT0);
        return true;
    }
    // Where a result goes that finish() is to put into its place.
    std::uint8_t slot_for(Place p) const { return p.is_memory || bytes < 4 ? kT2 : p.r; }
    bool finish(Place p) {
        if (p.is_memory) return memory(Op::store, kT2, bytes);
        if (bytes < 4) insert(p, kT2);
        return true;
    }
    void insert(Place p, std::uint8_t from) {
        if (!p.is_high) {
            put(Op::insert, p.r, p.r, from);
            return;
        }
        put_wide(Op::field, kT3, from, kZ, field_of(0, 8, 8));
        put_wide(Op::bit_and, p.r, p.r, kZ, ~std::int64_t{0xff00});
        put_wide(Op::bit_or, p.r, p.r, kT3);
    }
    bool write(Place p, std::uint8_t from) {
        if (p.is_memory) return memory(Op::store, from, bytes);
        if (bytes < 4)
            insert(p, from);
        else
            copy(p.r, from);
        return true;
    }

    // x64/lift.cpp
    bool lift();
    bool none();
    bool alu();
    bool test();
    bool mov();
    bool lea();
    bool movx();
    bool push(std::uint8_t slot);
    bool push();
    bool pop();
    bool call();
    bool ret();
    bool leave();
    bool jmp();
    bool jcc();
    bool jump_indirect();
    bool jump_if_count();
    bool string();
    // x64/lift_integer.cpp
    bool one_operand();
    bool imul();
    bool multiply_wide();
    void multiply_whole(std::uint8_t a, std::uint8_t b, bool is_signed);
    bool shift();
    bool double_shift();
    bool setcc();
    bool cmovcc();
    bool xchg();
    bool xadd();
    bool cmpxchg();
    bool bit_test();
    bool bit_count();
    bool bmi();
    bool crc32();
    bool bswap();
    bool movbe();
    bool cbw();
    bool cwd();
    bool flags();
    bool no_values();
    bool floating();
    bool control();
    // x64/lift_vector.cpp
    Micro& native(std::uint8_t how);
    bool special();
    bool address_first();
    bool cmpxchg8b();
    bool gather();
    bool vector();
    bool is_float() const;
    void roles(Micro& m);
};

}  // namespace revisit::machine::x64
