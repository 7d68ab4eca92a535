// Instructions of x86_64: their length, operation and operands. See x64.h.
#include "machine/x64/decode.h"

namespace revisit::machine {
namespace x64 {

static bool is_read_modify_write(unsigned alu) {
    return alu != 7;
}

// x87: what is touched, and whether flags or ax change. Bytes by opcode and the three bits beside it;
// those that write are negative.
static void floating(Reader& in, const Prefixes& p, X64Instruction& i, unsigned op) {
    static constexpr signed char kBytes[8][8] = {
        {4, 4, 4, 4, 4, 4, 4, 4}, {4, 0, -4, -4, 28, 2, -28, -2},
        {4, 4, 4, 4, 4, 4, 4, 4}, {4, -4, -4, -4, 0, 10, 0, -10},
        {8, 8, 8, 8, 8, 8, 8, 8}, {8, -8, -8, -8, 108, 0, -108, -2},
        {2, 2, 2, 2, 2, 2, 2, 2}, {2, -2, -2, -2, 10, 8, -10, -8}};
    unsigned modrm = in.at < in.bytes ? in.code[in.at] : 0;
    mod_rm(in, p, i);
    if (!i.has_memory) {
        bool compares = (op == 0xdb || op == 0xdf) && modrm >= 0xe8 && modrm < 0xf8;
        i.sub = compares ? 1 : op == 0xdf && modrm == 0xe0 ? 2 : 0;
        i.op = Op::floating;
        return;
    }
    signed char bytes = kBytes[op & 7][i.reg & 7];
    if (bytes == 0) return;
    i.op = Op::floating;
    touches(i, static_cast<unsigned>(bytes < 0 ? -bytes : bytes), bytes > 0, bytes < 0);
}

// One-byte opcodes.
static void plain(Reader& in, const Prefixes& p, X64Instruction& i, unsigned op) {
    unsigned size = p.w() ? 8 : p.operand16 ? 2 : 4, near_immediate = size == 2 ? 2 : 4;
    auto sized = [&](bool is_byte) { i.bytes = static_cast<std::uint8_t>(is_byte ? 1 : size); };
    auto reg_rm = [&] {
        sized(!(op & 1));
        mod_rm(in, p, i);
        if (i.bytes == 1) byte_registers(p, i, true, true);
    };
    auto group = [&] {  // reg is part of the opcode
        sized(!(op & 1));
        mod_rm(in, p, i);
        i.sub = i.reg & 7;
        if (i.bytes == 1) byte_registers(p, i, false, true);
    };
    if (op < 0x40 && (op & 7) < 6) {
        i.op = Op::alu;
        i.sub = static_cast<std::uint8_t>(op >> 3);
        if ((op & 7) < 4) {
            i.to_reg = op & 2;
            reg_rm();
            touches(i, i.bytes, true, !i.to_reg && is_read_modify_write(i.sub));
        } else {
            sized(!(op & 1));
            immediate(in, i, i.bytes == 1 ? 1 : near_immediate);
        }
        return;
    }
    switch (op) {
        case 0x63:
            i.op = Op::sign_extend;
            i.bytes = static_cast<std::uint8_t>(size);
            i.from = 4;
            i.to_reg = true;
            mod_rm(in, p, i);
            touches(i, 4, true, false);
            return;
        case 0x68:
        case 0x6a:
            if (p.operand16) return;
            i.op = Op::push;
            i.bytes = 8;
            immediate(in, i, op == 0x68 ? 4 : 1);
            return;
        case 0x69:
        case 0x6b:
            i.op = Op::multiply;
            i.bytes = static_cast<std::uint8_t>(size);
            i.to_reg = true;
            mod_rm(in, p, i);
            touches(i, size, true, false);
            immediate(in, i, op == 0x6b ? 1 : near_immediate);
            return;
        case 0x80:
        case 0x81:
        case 0x83:
            i.op = Op::alu;
            group();
            touches(i, i.bytes, true, is_read_modify_write(i.sub));
            immediate(in, i, op == 0x81 ? near_immediate : 1);
            return;
        case 0x84:
        case 0x85:
            i.op = Op::test;
            reg_rm();
            touches(i, i.bytes, true, false);
            return;
        case 0x86:
        case 0x87:
            i.op = Op::exchange;
            reg_rm();
            touches(i, i.bytes, true, true);
            return;
        case 0x88:
        case 0x89:
        case 0x8a:
        case 0x8b:
            i.op = Op::mov;
            i.to_reg = op & 2;
            reg_rm();
            touches(i, i.bytes, i.to_reg, !i.to_reg);
            return;
        case 0x8d:
            i.op = Op::lea;
            i.bytes = static_cast<std::uint8_t>(size);
            mod_rm(in, p, i);
            if (!i.has_memory || p.address32) i.op = Op::unknown;
            return;
        case 0x90:
            i.op = p.b() ? Op::exchange : Op::nop;  // with r8
            i.bytes = static_cast<std::uint8_t>(size);
            i.rm = static_cast<std::uint8_t>(p.b());
            return;
        case 0x98:
        case 0x99:
            i.op = op == 0x98 ? Op::extend_a : Op::extend_d;
            i.bytes = static_cast<std::uint8_t>(size);
            return;
        case 0xa4:
        case 0xa5:
        case 0xaa:
        case 0xab:
        case 0xa6:
        case 0xa7:
        case 0xac:
        case 0xad:
        case 0xae:
        case 0xaf: {
            bool compares = (op & 2) && (op & ~1u) != 0xaa;
            if (p.address32 || p.segment || (p.repeat == 0xf2 && !compares)) return;
            i.op = op < 0xa6   ? Op::string_move
                   : op < 0xa8 ? Op::string_compare
                   : op < 0xac ? Op::string_store
                   : op < 0xae ? Op::string_load
                               : Op::string_scan;
            sized(!(op & 1));
            i.sub = p.repeat == 0xf3 ? 1 : p.repeat ? 2 : 0;
            return;
        }
        case 0xa8:
        case 0xa9:
            i.op = Op::test;
            sized(op == 0xa8);
            immediate(in, i, op == 0xa8 ? 1 : near_immediate);
            return;
        case 0xc0:
        case 0xc1:
        case 0xd0:
        case 0xd1:
        case 0xd2:
        case 0xd3:
            i.op = Op::shift;
            group();
            touches(i, i.bytes, true, true);
            if (op < 0xd0)
                immediate(in, i, 1);
            else if (op < 0xd2) {
                i.immediate = 1;
                i.has_immediate = true;
            }
            return;
        case 0xc2:
        case 0xc3:
            i.op = Op::ret;
            i.bytes = 8;
            if (op == 0xc2) i.immediate = in.number(2) & 0xffff;
            return;
        case 0xc6:
        case 0xc7:
            group();
            if (i.sub != 0) return;
            i.op = Op::mov;
            touches(i, i.bytes, false, true);
            immediate(in, i, i.bytes == 1 ? 1 : near_immediate);
            return;
        case 0xc9:
            i.op = Op::leave;
            i.bytes = 8;
            return;
        case 0xe8:
        case 0xe9:
            if (size == 2) return;  // processors differ
            i.op = op == 0xe8 ? Op::call : Op::jump;
            i.immediate = in.number(4);
            return;
        case 0xeb:
            i.op = Op::jump;
            i.immediate = in.number(1);
            return;
        case 0x9b:  // fwait
            i.op = Op::nop;
            return;
        case 0x9e:
        case 0x9f:
            i.op = op == 0x9e ? Op::flag_load : Op::flag_save;
            return;
        case 0xe0:
        case 0xe1:
        case 0xe2:
        case 0xe3:
            if (p.address32) return;
            i.op = Op::jump_if_count;
            i.sub = op & 3;
            i.immediate = in.number(1);
            return;
        case 0xf5:
        case 0xf8:
        case 0xf9:
        case 0xfc:
        case 0xfd:
            i.op = Op::flag_set;
            i.sub = op == 0xf5 ? 2 : op < 0xfa ? op & 1 : static_cast<std::uint8_t>(3 + (op & 1));
            return;
        case 0xf6:
        case 0xf7:
            group();
            touches(i, i.bytes, true, i.sub == 2 || i.sub == 3);
            i.op = i.sub < 2    ? Op::test
                   : i.sub == 2 ? Op::invert
                   : i.sub == 3 ? Op::negate
                                : Op::multiply_wide;
            if (i.sub < 2) immediate(in, i, i.bytes == 1 ? 1 : near_immediate);
            return;
        case 0xfe:
        case 0xff:
            group();
            if (i.sub < 2) {
                i.op = i.sub ? Op::decrement : Op::increment;
                touches(i, i.bytes, true, true);
            } else if (op == 0xff && (i.sub == 2 || i.sub == 4 || i.sub == 6)) {
                i.bytes = 8;
                i.op = i.sub == 2 ? Op::call_indirect : i.sub == 4 ? Op::jump_indirect : Op::push;
                touches(i, 8, true, false);
            }
            return;
        default:
            break;
    }
    if (op >= 0xd8 && op < 0xe0)
        floating(in, p, i, op);
    else if (op >= 0x50 && op < 0x60) {
        if (p.operand16) return;
        i.op = op < 0x58 ? Op::push : Op::pop;
        i.bytes = 8;
        i.rm = static_cast<std::uint8_t>((op & 7) | p.b());
    } else if (op >= 0x70 && op < 0x80) {
        i.op = Op::jump_if;
        i.sub = op & 15;
        i.immediate = in.number(1);
    } else if (op > 0x90 && op < 0x98) {
        i.op = Op::exchange;
        i.bytes = static_cast<std::uint8_t>(size);
        i.rm = static_cast<std::uint8_t>((op & 7) | p.b());
    } else if (op >= 0xb0 && op < 0xc0) {
        i.op = Op::mov;
        sized(op < 0xb8);
        i.rm = static_cast<std::uint8_t>((op & 7) | p.b());
        if (op < 0xb8 && !p.has_rex && i.rm >= 4) {
            i.rm -= 4;
            i.rm_is_high = true;
        }
        immediate(in, i, op < 0xb8 ? 1 : size);
    }
}

// Opcodes after 0f.
static void extended(Reader& in, const Prefixes& p, X64Instruction& i, unsigned op) {
    unsigned size = p.w() ? 8 : p.operand16 ? 2 : 4;
    i.bytes = static_cast<std::uint8_t>(size);
    unsigned pp = p.repeat == 0xf3 ? 2 : p.repeat == 0xf2 ? 3 : p.operand16 ? 1 : 0;
    if (op >= 0x40 && op < 0x50) {
        i.op = Op::move_if;
        i.sub = op & 15;
        i.to_reg = true;
        mod_rm(in, p, i);
        touches(i, size, true, false);
        return;
    }
    if (op >= 0x80 && op < 0x90) {
        i.op = Op::jump_if;
        i.sub = op & 15;
        i.immediate = in.number(4);
        return;
    }
    if (op >= 0x90 && op < 0xa0) {
        i.op = Op::set;
        i.sub = op & 15;
        i.bytes = 1;
        mod_rm(in, p, i);
        byte_registers(p, i, false, true);
        touches(i, 1, false, true);
        return;
    }
    if (op >= 0xc8 && op < 0xd0) {
        if (size == 2) return;
        i.op = Op::byte_swap;
        i.rm = static_cast<std::uint8_t>((op & 7) | p.b());
        return;
    }
    switch (op) {
        case 0x0d:
        case 0x18:
        case 0x1e:  // endbr64 is one of these
        case 0x1f:
            mod_rm(in, p, i);
            i.op = Op::nop;
            return;
        case 0xa3:
        case 0xab:
        case 0xb3:
        case 0xbb:
            mod_rm(in, p, i);
            if (i.has_memory) return;  // a string of bits
            i.op = Op::bit_test;
            i.sub = static_cast<std::uint8_t>(op >> 3 & 3);
            return;
        case 0xba:
            mod_rm(in, p, i);
            if ((i.reg & 7) < 4) return;
            i.op = Op::bit_test;
            i.sub = i.reg & 3;
            touches(i, size, true, i.sub != 0);
            immediate(in, i, 1);
            return;
        case 0xa4:
        case 0xac:
        case 0xa5:
        case 0xad:  // double shifts
            i.op = Op::double_shift;
            i.sub = op >= 0xac;
            mod_rm(in, p, i);
            touches(i, size, true, true);
            if (!(op & 1)) immediate(in, i, 1);
            return;
        case 0x01: {
            unsigned which = in.byte();
            bool is_known = which == 0xd0 || which == 0xd6 || which == 0xf9;  // xgetbv, xtest, rdtscp
            i.op = is_known ? Op::no_values : Op::unknown;
            i.immediate = which == 0xd0 ? 5 : which == 0xd6 ? 0 : 7;
            i.sub = which == 0xd6 ? 2 : 0;
            return;
        }
        case 0x31:
        case 0xa2:  // rdtsc, cpuid
            i.op = Op::no_values;
            i.immediate = op == 0x31 ? 5 : 15;
            return;
        case 0xae: {
            mod_rm(in, p, i);
            unsigned which = i.reg & 7;
            i.op = Op::nop;  // fences, and what moves lines about
            if (!i.has_memory && p.repeat != 0) {
                i.op = which < 2 && p.repeat == 0xf3 ? Op::no_values : Op::unknown;  // rdfsbase
                i.immediate = 1 << i.rm;
            } else if (!i.has_memory)
                i.op = which >= 5 ? Op::nop : Op::unknown;
            else if (which == 2 || which == 3) {  // the control of vector floating point
                i.op = Op::floating;
                i.sub = which == 2 ? 3 : 0;
                touches(i, 4, which == 2, which == 3);
            } else if (which < 6 || (which == 6 && !p.operand16))
                i.op = Op::unknown;
            return;
        }
        case 0xc3:  // movnti
            i.op = Op::mov;
            mod_rm(in, p, i);
            touches(i, size, false, true);
            if (!i.has_memory || p.operand16 || p.repeat) i.op = Op::unknown;
            return;
        case 0xc7:
            mod_rm(in, p, i);
            if (i.has_memory && (i.reg & 7) == 1) {
                i.op = Op::compare_exchange_wide;
                i.bytes = p.w() ? 16 : 8;
                touches(i, i.bytes, true, true);
            } else if (!i.has_memory && (i.reg & 7) >= 6) {  // random numbers
                i.op = Op::no_values;
                i.sub = 1;
                i.immediate = 1 << i.rm;
            }
            return;
        case 0xaf:
            i.op = Op::multiply;
            i.to_reg = true;
            mod_rm(in, p, i);
            touches(i, size, true, false);
            return;
        case 0xb0:
        case 0xb1:
        case 0xc0:
        case 0xc1:
            i.op = op < 0xc0 ? Op::compare_exchange : Op::exchange_add;
            if (!(op & 1)) i.bytes = 1;
            mod_rm(in, p, i);
            if (i.bytes == 1) byte_registers(p, i, true, true);
            touches(i, i.bytes, true, true);
            return;
        case 0xb6:
        case 0xb7:
        case 0xbe:
        case 0xbf:
            i.op = op < 0xb8 ? Op::zero_extend : Op::sign_extend;
            i.from = op & 1 ? 2 : 1;
            i.to_reg = true;
            mod_rm(in, p, i);
            if (i.from == 1) byte_registers(p, i, false, true);
            touches(i, i.from, true, false);
            return;
        case 0xb8:
        case 0xbc:
        case 0xbd:
            if (op == 0xb8 && p.repeat != 0xf3) return;
            i.op = Op::bit_count;
            i.sub = op == 0xb8 ? 0 : static_cast<std::uint8_t>(op - 0xbb + (p.repeat == 0xf3 ? 0 : 2));
            i.to_reg = true;
            mod_rm(in, p, i);
            touches(i, size, true, false);
            return;
        default:
            vector(in, p, i, op, pp);
    }
}

// 0f 38 and 0f 3a, and all that has VEX.
static void extended_three(Reader& in, const Prefixes& p, X64Instruction& i, unsigned op) {
    using B = X64Bmi;
    unsigned size = p.w() ? 8 : p.operand16 && !p.vex ? 2 : 4;
    unsigned pp = p.vex ? p.pp : p.repeat == 0xf3 ? 2 : p.repeat == 0xf2 ? 3 : p.operand16 ? 1 : 0;
    auto general = [&](B what) {
        i.op = Op::bmi;
        i.sub = static_cast<std::uint8_t>(what);
        i.bytes = static_cast<std::uint8_t>(size);
        i.to_reg = true;
        mod_rm(in, p, i);
        touches(i, size, true, false);
        i.first = static_cast<std::uint8_t>(p.vex ? p.vvvv : i.reg);
    };
    if (p.vex && p.map == 2 && !p.is_256) switch (op << 4 | pp) {
            case 0xf20:
                return general(B::and_not);
            case 0xf30:
                general(B::reset_lowest);
                i.sub = static_cast<std::uint8_t>(i.sub + (i.reg & 7) - 1);
                if ((i.reg & 7) < 1 || (i.reg & 7) > 3) i.op = Op::unknown;
                i.reg = static_cast<std::uint8_t>(p.vvvv);
                return;
            case 0xf50:
                return general(B::zero_high);
            case 0xf52:
                return general(B::extract);
            case 0xf53:
                return general(B::deposit);
            case 0xf63:
                return general(B::multiply);
            case 0xf70:
                return general(B::extract_field);
            case 0xf71:
                return general(B::shift_left);
            case 0xf72:
                return general(B::shift_signed);
            case 0xf73:
                return general(B::shift_right);
            default:
                break;
        }
    if (p.vex && p.map == 3 && op == 0xf0 && pp == 3) {
        general(B::rotate);
        return immediate(in, i, 1);
    }
    if (!p.vex && p.map == 2 && op == 0xf6 && (p.repeat == 0xf3 || p.operand16)) {
        if (p.operand16) size = p.w() ? 8 : 4;
        return general(p.repeat == 0xf3 ? B::add_overflow : B::add_carry);
    }
    if (!p.vex && p.map == 2 && (op == 0xf0 || op == 0xf1)) {
        bool sums = p.repeat == 0xf2;
        i.op = sums ? Op::checksum : Op::swap_move;
        i.bytes = static_cast<std::uint8_t>(sums ? (p.w() ? 8 : 4) : size);
        i.from = static_cast<std::uint8_t>(op == 0xf0 ? 1 : size);
        mod_rm(in, p, i);
        i.to_reg = sums || op == 0xf0;
        if (sums && i.from == 1) byte_registers(p, i, false, true);
        touches(i, sums ? i.from : size, i.to_reg, !i.to_reg);
        if (!sums && (p.repeat || !i.has_memory)) i.op = Op::unknown;
        return;
    }
    vector(in, p, i, op, pp);
}

}  // namespace x64

X64Instruction decode_x64(const std::uint8_t* code, unsigned bytes) {
    using namespace x64;
    Reader in{code, bytes};
    Prefixes p;
    X64Instruction i;
    unsigned op = in.byte();
    for (;; op = in.byte()) {
        if (op == 0x66)
            p.operand16 = true;
        else if (op == 0x67)
            p.address32 = true;
        else if (op == 0xf2 || op == 0xf3)
            p.repeat = static_cast<std::uint8_t>(op);
        else if (op == 0xf0)
            p.lock = true;
        else if (op == 0x64 || op == 0x65)
            p.segment = op == 0x64 ? 1 : 2;
        else if (op != 0x2e && op != 0x3e && op != 0x26 && op != 0x36)
            break;
        if (in.short_of || in.at >= 14) return {};
    }
    if ((op & 0xf0) == 0x40) {
        p.rex = op & 15;
        p.has_rex = true;
        op = in.byte();
    }
    if (!p.has_rex && op == 0x62)
        evex(in, p, i);
    else if (!p.has_rex && (op == 0xc4 || op == 0xc5)) {
        unsigned first = in.byte();
        p.vex = true;
        p.rex = first & 0x80 ? 0 : 4;
        unsigned last = first;
        p.map = 1;
        if (op == 0xc4) {
            p.rex |= (first & 0x40 ? 0 : 2) | (first & 0x20 ? 0 : 1);
            p.map = first & 31;
            last = in.byte();
            if (last & 0x80) p.rex |= 8;
        }
        p.vvvv = ~(last >> 3) & 15;
        p.is_256 = last & 4;
        p.pp = last & 3;
        op = in.byte();
        if (!mask_instruction(in, p, i, op)) extended_three(in, p, i, op);
    } else if (op == 0x0f) {
        op = in.byte();
        if (op == 0x38 || op == 0x3a) {
            p.map = op == 0x38 ? 2 : 3;
            op = in.byte();
            extended_three(in, p, i, op);
        } else
            extended(in, p, i, op);
    } else {
        plain(in, p, i, op);
        if (i.op == Op::nop && p.repeat == 0xf2) i.op = Op::unknown;
    }
    if (p.address32 && i.has_memory) i.op = Op::unknown;
    if (in.short_of || i.op == Op::unknown) return {};
    i.length = static_cast<std::uint8_t>(in.at);
    return i;
}

}  // namespace revisit::machine
