// From instructions of aarch64 to micro-operations: see micro.h.
//
// The encodings are those of the Arm Architecture Reference Manual, group by group. Register 31 reads
// as zero or is the stack pointer: the instruction says which. What is not named here ends the
// look-ahead, but for vector arithmetic, which the processor executes itself (a64/vector.cpp). Loads
// and stores of all of libc are compared with a disassembler in tests/machine_a64_decode_test.cpp.
#include "machine/a64/a64.h"

namespace revisit::machine {
namespace {

using Op = Micro::Op;
using Extend = Micro::Extend;

constexpr std::uint8_t kNZCV = kSign | kZero | kCarry | kOverflow;
constexpr std::uint8_t kLink = 30, kT0 = kTemporary, kT1 = kTemporary + 1, kT2 = kTemporary + 2;

std::uint8_t source(unsigned r) {
    return static_cast<std::uint8_t>(r == 31 ? kZeroSlot : r);
}
std::uint8_t target(unsigned r) {
    return static_cast<std::uint8_t>(r == 31 ? kDiscard : r);
}
std::uint8_t or_stack(unsigned r) {
    return static_cast<std::uint8_t>(r);
}
std::int64_t signed_field(std::uint32_t i, unsigned low, unsigned bits) {
    return sign_extend(field(i, low, bits), bits);
}
Condition condition(unsigned c) {
    static constexpr Test kTests[8] = {Test::equal,      Test::carry,          Test::negative,
                                       Test::overflow,   Test::borrow_or_zero, Test::less,
                                       Test::less_equal, Test::always};
    unsigned kind = c >> 1;  // hi, ge and gt are the opposites of the tests there
    return {kTests[kind], kind < 4 ? (c & 1) != 0 : kind < 7 && !(c & 1)};
}

struct Lifter {
    std::uint64_t pc;
    std::uint32_t i;
    Lifting& out;
    bool wide = i >> 31;
    std::uint8_t bytes = wide ? 8 : 4;
    std::uint8_t rd = target(i & 31), rn = source(field(i, 5, 5)), rm = source(field(i, 16, 5));

    Micro& put(Op op, std::uint8_t d, std::uint8_t a, std::uint8_t b = kZeroSlot,
               std::int64_t immediate = 0) {
        return out.put(op, d, a, b, immediate, bytes);
    }
    Micro& put_wide(Op op, std::uint8_t d, std::uint8_t a, std::uint8_t b = kZeroSlot,
                    std::int64_t immediate = 0) {
        return out.put(op, d, a, b, immediate);
    }
    std::int64_t from_pc(unsigned low, unsigned bits) const {
        return static_cast<std::int64_t>(pc) + signed_field(i, low, bits) * 4;
    }

    bool branch() {
        if ((i & 0x7c000000) == 0x14000000) {  // b, bl
            if (i >> 31) constant(kLink, pc + 4);
            put_wide(Op::jump, kDiscard, kZeroSlot, kZeroSlot, from_pc(0, 26));
        } else if ((i & 0xff000010) == 0x54000000)  // b.cond
            put_wide(Op::jump_if, kDiscard, kZeroSlot, kZeroSlot, from_pc(5, 19)).condition =
                condition(i & 15);
        else if ((i & 0x7e000000) == 0x34000000)  // cbz, cbnz
            put(i >> 24 & 1 ? Op::jump_not_zero : Op::jump_zero, kDiscard, source(i & 31), kZeroSlot,
                from_pc(5, 19));
        else if ((i & 0x7e000000) == 0x36000000)  // tbz, tbnz
            put_wide(i >> 24 & 1 ? Op::jump_bit : Op::jump_not_bit, kDiscard, source(i & 31), kZeroSlot,
                     from_pc(5, 14))
                .shift = static_cast<std::uint8_t>(i >> 31 << 5 | field(i, 19, 5));
        else if ((i & 0xff9ffc1f) == 0xd61f0000 && field(i, 21, 2) < 3) {  // br, blr, ret
            std::uint8_t to = rn;
            if (field(i, 21, 2) == 1) {
                if (to == kLink) put_wide(Op::add, to = kT0, kLink);
                constant(kLink, pc + 4);
            }
            put_wide(Op::jump_register, kDiscard, to);
        } else
            return system();
        return true;
    }

    bool system() {
        if ((i & 0xfffff01f) == 0xd503201f) {  // hints: nop, bti, pointer authentication of x30 and x17
            unsigned hint = field(i, 5, 7);
            bool of_x17 = hint == 8 || hint == 10 || hint == 12 || hint == 14;
            bool checks_x30 = hint == 7 || (hint >= 28 && hint <= 31);
            if (of_x17) return false;
            // Where addresses are signed the sign is in bits that no address has.
            if (checks_x30)
                put_wide(Op::bit_and, kLink, kLink, kZeroSlot, static_cast<std::int64_t>(ones(48)));
            else
                out.put(Op::none);
        } else if ((i & 0xfffff000) == 0xd5033000)  // barriers, clrex
            out.put(Op::none);
        else if ((i & 0xffffffe0) == 0xd53bd040)  // mrs tpidr_el0
            put_wide(Op::add, rd, kThreadPointer);
        else if ((i & 0xffffffe0) == 0xd53b4200)
            put_wide(Op::get_flags, rd, kZeroSlot);
        else if ((i & 0xffffffe0) == 0xd51b4200)
            put_wide(Op::set_flags, kDiscard, source(i & 31)).flags = kNZCV;
        else if ((i & 0xfff00000) == 0xd5300000)  // any other register
            put_wide(Op::forget, rd, kZeroSlot);
        else
            return false;  // system calls, breakpoints and what else there is
        return true;
    }

    void constant(std::uint8_t d, std::uint64_t value) {
        put_wide(Op::add, d, kZeroSlot, kZeroSlot, static_cast<std::int64_t>(value));
    }

    bool immediate() {
        unsigned opc = field(i, 29, 2);
        std::uint8_t rd_stack = or_stack(i & 31), rn_stack = or_stack(field(i, 5, 5));
        switch (field(i, 23, 3)) {
            case 0:
            case 1: {  // adr, adrp
                std::int64_t offset = sign_extend(field(i, 5, 19) << 2 | opc, 21);
                std::uint64_t base = wide ? pc & ~std::uint64_t{0xfff} : pc;
                constant(rd, base + static_cast<std::uint64_t>(wide ? offset * 4096 : offset));
                return true;
            }
            case 2: {  // add, sub
                std::int64_t b = std::int64_t{field(i, 10, 12)} << (i >> 22 & 1 ? 12 : 0);
                Micro& m = put(opc & 2 ? Op::subtract : Op::add, opc & 1 ? rd : rd_stack, rn_stack,
                               kZeroSlot, b);
                if (opc & 1) m.flags = kNZCV;
                return true;
            }
            case 4: {  // and, orr, eor, ands
                std::uint64_t mask;
                if (!bit_mask(field(i, 22, 1), field(i, 10, 6), field(i, 16, 6), mask)) return false;
                Micro& m =
                    put(opc == 1   ? Op::bit_or
                        : opc == 2 ? Op::bit_xor
                                   : Op::bit_and,
                        opc == 3 ? rd : rd_stack, rn, kZeroSlot, static_cast<std::int64_t>(mask));
                if (opc == 3) m.flags = kNZCV;
                return true;
            }
            case 5: {  // movn, movz, movk
                unsigned by = 16 * field(i, 21, 2);
                if ((!wide && by > 16) || opc == 1) return false;
                std::uint64_t value = std::uint64_t{field(i, 5, 16)} << by;
                if (opc != 3) {
                    value = opc == 0 ? ~value : value;
                    constant(rd, wide ? value : static_cast<std::uint32_t>(value));
                    return true;
                }
                put(Op::bit_and, kT0, source(i & 31), kZeroSlot,
                    static_cast<std::int64_t>(~(std::uint64_t{0xffff} << by)));
                put(Op::bit_or, rd, kT0, kZeroSlot, static_cast<std::int64_t>(value));
                return true;
            }
            case 6: {  // sbfm, bfm, ubfm
                unsigned r = field(i, 16, 6), top = field(i, 10, 6), width = wide ? 64 : 32;
                if (opc == 3 || r >= width || top >= width) return false;
                unsigned bits = top >= r ? top - r + 1 : top + 1, to = top >= r ? 0 : width - r;
                std::int64_t fields = field_of(top >= r ? r : 0, bits, to);
                put(opc == 0 ? Op::signed_field : Op::field, opc == 1 ? kT0 : rd, rn, kZeroSlot,
                    fields);
                if (opc != 1) return true;
                put(Op::bit_and, kT1, source(i & 31), kZeroSlot,
                    static_cast<std::int64_t>(~(ones(bits) << to)));
                put(Op::bit_or, rd, kT1, kT0);
                return true;
            }
            case 7: {  // extr
                unsigned from = field(i, 10, 6), width = wide ? 64 : 32;
                if (opc != 0 || field(i, 21, 1) || from >= width) return false;
                if (rn == rm) {
                    put(Op::rotate_right, rd, rn, kZeroSlot, from);
                    return true;
                }
                put(Op::shift_right, from ? kT0 : rd, rm, kZeroSlot, from);
                if (from == 0) return true;
                put(Op::shift_left, kT1, rn, kZeroSlot, width - from);
                put(Op::bit_or, rd, kT0, kT1);
                return true;
            }
            default:
                return false;  // memory tagging
        }
    }

    // A second operand, shifted as the instruction says; what it is to be shifted left by is in `left`.
    std::uint8_t shifted(unsigned kind, unsigned by, std::uint8_t& left) {
        left = 0;
        if (kind == 0 || by == 0) {
            left = static_cast<std::uint8_t>(by);
            return rm;
        }
        put(kind == 1   ? Op::shift_right
            : kind == 2 ? Op::shift_signed
                        : Op::rotate_right,
            kT0, rm, kZeroSlot, by);
        return kT0;
    }
    std::uint8_t extended(unsigned option) {
        if ((option & 3) == 3) return rm;
        put_wide(option & 4 ? Op::signed_field : Op::field, kT0, rm, kZeroSlot,
                 field_of(0, 8u << (option & 3), 0));
        return kT0;
    }

    bool registers() {
        unsigned opc = field(i, 29, 2);
        bool subtract = opc & 2;
        std::uint8_t left = 0;
        if ((i & 0x1f000000) == 0x0a000000) {  // and, orr, eor, ands of a shifted register
            static constexpr Op kOps[2][3] = {{Op::bit_and, Op::bit_or, Op::bit_xor},
                                              {Op::and_not, Op::or_not, Op::xor_not}};
            if (!wide && (i >> 15 & 1)) return false;
            std::uint8_t b = shifted(field(i, 22, 2), field(i, 10, 6), left);
            Micro& m = put(kOps[i >> 21 & 1][opc % 3], rd, rn, b);
            m.shift = left;
            if (opc == 3) m.flags = kNZCV;
        } else if ((i & 0x1f200000) == 0x0b000000) {  // add, sub of a shifted register
            if (field(i, 22, 2) == 3 || (!wide && (i >> 15 & 1))) return false;
            std::uint8_t b = shifted(field(i, 22, 2), field(i, 10, 6), left);
            Micro& m = put(subtract ? Op::subtract : Op::add, rd, rn, b);
            m.shift = left;
            if (opc & 1) m.flags = kNZCV;
        } else if ((i & 0x1fe00000) == 0x0b200000) {  // add, sub of an extended register
            if (field(i, 10, 3) > 4) return false;
            std::uint8_t b = extended(field(i, 13, 3));
            Micro& m = put(subtract ? Op::subtract : Op::add, opc & 1 ? rd : or_stack(i & 31),
                           or_stack(field(i, 5, 5)), b);
            m.shift = static_cast<std::uint8_t>(field(i, 10, 3));
            if (opc & 1) m.flags = kNZCV;
        } else if ((i & 0x1fe0fc00) == 0x1a000000) {  // adc, sbc
            Micro& m = put(subtract ? Op::subtract_carry : Op::add_carry, rd, rn, rm);
            if (opc & 1) m.flags = kNZCV;
        } else if ((i & 0x3fe00410) == 0x3a400000) {  // ccmn, ccmp
            bool is_immediate = i >> 11 & 1;
            Micro& m = put(subtract ? Op::compare_if : Op::compare_if_added, kDiscard, rn,
                           is_immediate ? kZeroSlot : rm, is_immediate ? field(i, 16, 5) : 0);
            m.condition = condition(field(i, 12, 4));
            m.lanes = i & 15;
            m.flags = kNZCV;
        } else if ((i & 0x3fe00800) == 0x1a800000) {  // csel, csinc, csinv, csneg
            std::uint8_t b = rm;
            if (i >> 30 & 1) put(i >> 10 & 1 ? Op::subtract : Op::or_not, b = kT0, kZeroSlot, rm);
            // By the opposite condition the second one, else the first.
            Micro& m = put(Op::select, rd, rn, b, (i >> 10 & 1) && !(i >> 30 & 1));
            m.condition = condition(field(i, 12, 4));
            m.condition.negated = !m.condition.negated;
        } else if ((i & 0x7fff0000) == 0x5ac00000)
            return one_source();
        else if ((i & 0x7fe00000) == 0x1ac00000)
            return two_sources();
        else if ((i & 0x7f000000) == 0x1b000000)
            return three_sources();
        else
            return false;
        return true;
    }

    bool one_source() {
        unsigned opcode = field(i, 10, 6);
        switch (opcode) {
            case 0:
                put(Op::reverse_bits, rd, rn);
                return true;
            case 1:
            case 2:
            case 3:
                if (opcode == 3 && !wide) return false;
                put(Op::reverse_bytes, rd, rn, kZeroSlot, 1 << opcode);
                return true;
            case 4:
            case 5:
                put(opcode == 4 ? Op::leading_zeros : Op::leading_signs, rd, rn);
                return true;
            default:
                return false;
        }
    }

    bool two_sources() {
        unsigned opcode = field(i, 10, 6);
        static constexpr Op kShifts[4] = {Op::shift_left, Op::shift_right, Op::shift_signed,
                                          Op::rotate_right};
        if (opcode == 2 || opcode == 3)
            put(opcode == 2 ? Op::divide : Op::divide_signed, rd, rn, rm);
        else if (opcode >= 8 && opcode < 12)
            put(kShifts[opcode - 8], rd, rn, rm);
        else if ((opcode & 0x38) == 0x10)
            put(Op::forget, rd, kZeroSlot);  // crc32
        else
            return false;
        return true;
    }

    bool three_sources() {
        bool subtract = i >> 15 & 1;
        unsigned kind = field(i, 21, 3);
        std::uint8_t ra = source(field(i, 10, 5)), a = rn, b = rm;
        if (kind == 2 || kind == 6) {
            put(kind == 2 ? Op::multiply_high_signed : Op::multiply_high, rd, rn, rm);
            return wide && !subtract;
        }
        if ((kind != 0 && !wide) || (kind != 0 && kind != 1 && kind != 5)) return false;
        if (kind != 0) {  // of 32 bits
            Op extend = kind == 1 ? Op::signed_field : Op::field;
            put_wide(extend, a = kT0, rn, kZeroSlot, field_of(0, 32));
            put_wide(extend, b = kT1, rm, kZeroSlot, field_of(0, 32));
        }
        bool adds = ra != kZeroSlot || subtract;
        put(Op::multiply, adds ? kT2 : rd, a, b);
        if (adds) put(subtract ? Op::subtract : Op::add, rd, ra, kT2);
        return true;
    }

    // Memory. `mode` is 0 offset, 1 after the access, 3 before it.

    bool access(Micro m, unsigned base, std::int64_t offset, unsigned mode) {
        m.a = or_stack(base);
        bool writes_back = mode & 1, is_load = m.op == Op::load;
        m.immediate = mode == 1 ? 0 : offset;
        // A base that is loaded, too, is what it is moved to in the end.
        bool clashes = writes_back && is_load && (m.d == m.a || (m.pieces > 1 && m.c == m.a));
        if (clashes) out.put(Op::add, kT0, m.a, kZeroSlot, offset);
        out.micro[out.count++] = m;
        if (clashes)
            out.put(Op::add, m.a, kT0);
        else if (writes_back)
            out.put(Op::add, m.a, m.a, kZeroSlot, offset);
        return true;
    }
    Micro plain(bool is_load, bool vector, unsigned bytes_of) const {
        Micro m;
        m.op = vector ? (is_load ? Op::vector_load : Op::vector_store) : is_load ? Op::load : Op::store;
        unsigned rt = i & 31;
        m.d = vector ? static_cast<std::uint8_t>(rt) : is_load ? target(rt) : source(rt);
        m.bytes = static_cast<std::uint8_t>(bytes_of);
        return m;
    }

    bool atomic() {
        unsigned operation = field(i, 12, 3);
        bool swaps = i >> 15 & 1;
        std::uint8_t base = or_stack(field(i, 5, 5)), size = static_cast<std::uint8_t>(1u << (i >> 30));
        if (swaps && operation == 4 && field(i, 16, 5) == 31)  // ldapr
            return access(plain(true, false, size), base, 0, 0);
        if (swaps && operation != 0) return false;
        static constexpr Op kOps[8] = {Op::add,        Op::and_not,    Op::bit_xor, Op::bit_or,
                                       Op::max_signed, Op::min_signed, Op::max,     Op::min};
        out.put(Op::load, kT0, base, kZeroSlot, 0, size);
        if (!swaps) out.put(kOps[operation], kT1, kT0, rm, 0, size);
        out.put(Op::store, swaps ? rm : kT1, base, kZeroSlot, 0, size);
        out.put(Op::add, rd, kT0);
        return true;
    }

    bool single() {
        bool vector = i >> 26 & 1;
        unsigned size = i >> 30, opc = field(i, 22, 2), scale = size, base = field(i, 5, 5);
        if (!(i >> 24 & 1) && (i >> 21 & 1) && field(i, 10, 2) == 0) return !vector && atomic();
        bool is_load, prefetches = false;
        Extend extend = Extend::zero;
        if (vector) {
            scale |= (opc & 2) << 1;
            if (scale > 4) return false;
            is_load = opc & 1;
        } else if (size == 3 && opc >= 2) {
            if (opc == 3) return false;
            is_load = prefetches = true;
        } else {
            if (size == 2 && opc == 3) return false;
            is_load = opc != 0;
            if (opc >= 2) extend = opc == 2 ? Extend::sign : Extend::sign_to_32;
        }
        Micro m = plain(is_load, vector, 1u << scale);
        m.extend = extend;
        unsigned mode = 0;
        std::int64_t offset = 0;
        if (i >> 24 & 1)
            offset = std::int64_t{field(i, 10, 12)} << scale;
        else if (i >> 21 & 1) {
            unsigned option = field(i, 13, 3);
            if (field(i, 10, 2) != 2 || !(option & 2)) return false;
            if (!prefetches) m.b = extended(option);
            m.shift = static_cast<std::uint8_t>(i >> 12 & 1 ? scale : 0);
        } else {
            mode = field(i, 10, 2);
            if ((prefetches && mode != 0) || (vector && mode == 2)) return false;
            if (mode == 2) mode = 0;
            offset = signed_field(i, 12, 9);
        }
        if (!prefetches) return access(m, base, offset, mode);
        out.put(Op::none);
        return true;
    }

    bool pair() {
        bool vector = i >> 26 & 1, is_load = i >> 22 & 1;
        unsigned opc = i >> 30, mode = field(i, 23, 2), second = field(i, 10, 5);
        if (opc == 3 || (!vector && opc == 1 && (!is_load || mode == 0))) return false;
        unsigned scale = vector ? 2 + opc : 2 + (opc >> 1);
        Micro m = plain(is_load, vector, 1u << scale);
        m.pieces = 2;
        m.c = vector ? static_cast<std::uint8_t>(second) : is_load ? target(second) : source(second);
        if (!vector && opc == 1) m.extend = Extend::sign;
        return access(m, field(i, 5, 5), signed_field(i, 15, 7) * (1 << scale), mode == 2 ? 0 : mode);
    }

    bool literal_or_ordered() {
        bool vector = i >> 26 & 1;
        unsigned size = i >> 30, opc = field(i, 22, 2);
        if (!(i >> 24 & 1)) {  // relative to pc
            if (vector && size == 3) return false;
            if (!vector && size == 3) {  // prfm
                out.put(Op::none);
                return true;
            }
            Micro m = plain(true, vector, vector ? 4u << size : size == 1 ? 8 : 4);
            if (!vector && size == 2) m.extend = Extend::sign;
            m.immediate = from_pc(5, 19);
            out.micro[out.count++] = m;
            return true;
        }
        if (vector || (i >> 21 & 1) || field(i, 10, 2) != 0 || (size == 3 && opc >= 2) ||
            (size == 2 && opc == 3))
            return false;
        Micro m = plain(opc != 0, false, 1u << size);
        if (opc >= 2) m.extend = opc == 2 ? Extend::sign : Extend::sign_to_32;
        return access(m, field(i, 5, 5), signed_field(i, 12, 9), 0);
    }

    bool exclusive() {
        unsigned size = i >> 30, base = field(i, 5, 5), rs = field(i, 16, 5);
        bool ordered = i >> 23 & 1, is_load = i >> 22 & 1, both = i >> 21 & 1;
        if (i >> 24 & 1) return false;
        Micro m = plain(is_load, false, 1u << size);
        if (both && (ordered || size < 2)) {  // cas, casp
            if (field(i, 10, 5) != 31) return false;
            if (!ordered) {
                if ((rs & 1) || (i & 1)) return false;
                m.op = Op::store_unknown;
                m.pieces = 2;
                m.bytes = size == 0 ? 4 : 8;
                access(m, base, 0, 0);
                out.put(Op::forget, target(rs));
                out.put(Op::forget, target(rs + 1));
                return true;
            }
            std::uint8_t at = or_stack(base);
            out.put(Op::load, kT0, at, kZeroSlot, 0, m.bytes);
            out.put(Op::equal, kT1, kT0, source(rs), 0, m.bytes);
            out.put(Op::choose, kT2, kT0, source(i & 31)).c = kT1;
            out.put(Op::store, kT2, at, kZeroSlot, 0, m.bytes);
            out.put(Op::add, target(rs), kT0);
            return true;
        }
        if (both) {
            m.pieces = 2;
            m.c = is_load ? target(field(i, 10, 5)) : source(field(i, 10, 5));
        }
        if (is_load || ordered) return access(m, base, 0, 0);
        m.op = Op::store_unknown;  // whether it succeeds is not known beforehand
        access(m, base, 0, 0);
        out.put(Op::forget, target(rs));
        return true;
    }

    bool structures() {
        bool is_load = i >> 22 & 1, after = i >> 23 & 1, lanes = i >> 24 & 1;
        if (i >> 31 || (!after && (i & (lanes ? 0x001f0000u : 0x003f0000u))) ||
            (!lanes && (i >> 21 & 1)))
            return false;
        Micro m = plain(is_load, true, 8);
        m.lanes = 1;
        if (!lanes) {
            static constexpr std::uint8_t kRegisters[16] = {4, 0, 4, 0, 3, 0, 3, 1, 2, 0, 2};
            m.pieces = kRegisters[field(i, 12, 4)];
            if (m.pieces == 0) return false;
            m.bytes = i >> 30 & 1 ? 16 : 8;
            m.lanes = !(field(i, 12, 4) & 2);
        } else {
            unsigned opcode = field(i, 13, 3), size = field(i, 10, 2), scale = opcode >> 1;
            m.pieces = static_cast<std::uint8_t>(((opcode & 1) << 1 | (i >> 21 & 1)) + 1);
            if (scale == 3) {
                if (!is_load || (i >> 12 & 1)) return false;
                scale = size;
            } else if (scale == 2) {
                if (size > 1 || (size == 1 && (i >> 12 & 1))) return false;
                scale += size & 1;
            } else if (scale == 1 && (size & 1))
                return false;
            m.bytes = static_cast<std::uint8_t>(1u << scale);
        }
        m.c = static_cast<std::uint8_t>((m.d + 1) & 31);
        access(m, field(i, 5, 5), 0, 0);
        std::uint8_t base = or_stack(field(i, 5, 5));
        if (after && field(i, 16, 5) == 31)
            out.put(Op::add, base, base, kZeroSlot, m.pieces * m.bytes);
        else if (after)
            out.put(Op::add, base, base, rm);
        return true;
    }

    bool memory() {
        switch (field(i, 28, 2)) {
            case 0:
                return i >> 26 & 1 ? structures() : exclusive();
            case 1:
                return literal_or_ordered();
            case 2:
                return pair();
            default:
                return single();
        }
    }

    bool lift() {
        if (is_zero_block(i)) {  // blocks of 64 bytes on every processor met so far
            put_wide(Op::bit_and, kT0, source(i & 31), kZeroSlot, ~std::int64_t{63});
            out.put(Op::store_zeros, kDiscard, kT0, kZeroSlot, 0, 64);
            return true;
        }
        if (is_scalable_memory(i)) return false;  // what they touch is not known here
        if (is_memory_class(i)) return memory();
        if (is_vector_class(i)) {
            vector();
            return true;
        }
        switch (field(i, 25, 4)) {
            case 8:
            case 9:
                return immediate();
            case 10:
            case 11:
                return branch();
            case 5:
            case 13:
                return registers();
            default:
                return false;
        }
    }

    // What it does to general registers and flags is named, and the vector register it writes, if any;
    // the rest is the processor's.
    void vector() {
        VectorRoles roles = vector_roles(i);
        Micro m;
        m.op = Op::native;
        m.immediate = i;
        if (roles.from_general) m.a = rn;
        if (roles.to_general) m.d = rd;
        if (roles.sets_flags) m.flags = kNZCV;
        m.lanes = roles.reads_flags;
        m.c = static_cast<std::uint8_t>(i & 31);
        m.pieces = !roles.to_general && !roles.sets_flags;
        out.micro[out.count++] = m;
    }
};

}  // namespace

void A64::lift(std::uint64_t pc, std::uint32_t code, Lifting& out) {
    out.length = 4;
    out.seal(Lifter{pc, code, out}.lift());
}

}  // namespace revisit::machine
