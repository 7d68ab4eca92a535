// Instructions of x86_64: their length, operation and operands. See x64.h.
#include <cstring>

#include "watch/x64.h"

namespace revisit::watch {
namespace x64 {

using Op = X64Instruction::Op;

// The bytes of one instruction, read in order.
struct Reader {
    const std::uint8_t* code;
    unsigned bytes, at = 0;
    bool short_of = false;

    std::uint8_t byte() {
        if (at >= bytes) {
            short_of = true;
            return 0;
        }
        return code[at++];
    }
    std::int64_t number(unsigned size) {
        std::uint64_t value = 0;
        for (unsigned i = 0; i < size; i++) value |= std::uint64_t{byte()} << 8 * i;
        return size == 0 ? 0 : sign_extend(value, 8 * size);
    }
};

struct Prefixes {
    bool operand16 = false, address32 = false, lock = false;
    std::uint8_t repeat = 0;  // f2, f3
    std::uint8_t segment = 0;
    unsigned rex = 0;
    bool has_rex = false;
    // VEX
    bool vex = false;
    unsigned map = 0, pp = 0, vvvv = 0;
    bool is_256 = false;

    bool w() const { return rex & 8; }
    unsigned r() const { return rex & 4 ? 8 : 0; }
    unsigned x() const { return rex & 2 ? 8 : 0; }
    unsigned b() const { return rex & 1 ? 8 : 0; }
};

static void mod_rm(Reader& in, const Prefixes& p, X64Instruction& i) {
    unsigned modrm = in.byte(), mod = modrm >> 6, rm = modrm & 7;
    i.reg = static_cast<std::uint8_t>((modrm >> 3 & 7) | p.r());
    if (mod == 3) {
        i.rm = static_cast<std::uint8_t>(rm | p.b());
        return;
    }
    i.has_memory = true;
    i.segment = p.segment;
    if (rm == 4) {
        unsigned sib = in.byte(), index = (sib >> 3 & 7) | p.x(), base = sib & 7;
        if (index != 4) i.index = static_cast<std::uint8_t>(index);
        i.scale = static_cast<std::uint8_t>(1u << (sib >> 6));
        if (base == 5 && mod == 0)
            i.displacement = in.number(4);
        else
            i.base = static_cast<std::uint8_t>(base | p.b());
    } else if (rm == 5 && mod == 0) {
        i.base = X64Instruction::kPc;
        i.displacement = in.number(4);
    } else
        i.base = static_cast<std::uint8_t>(rm | p.b());
    if (mod == 1) i.displacement = in.number(1);
    if (mod == 2) i.displacement = in.number(4);
}

// Registers 4 to 7 of a byte operand without REX are ah, ch, dh, bh.
static void byte_registers(const Prefixes& p, X64Instruction& i, bool reg, bool rm) {
    if (p.has_rex) return;
    if (reg && i.reg >= 4 && i.reg < 8) {
        i.reg -= 4;
        i.reg_is_high = true;
    }
    if (rm && !i.has_memory && i.rm >= 4 && i.rm < 8) {
        i.rm -= 4;
        i.rm_is_high = true;
    }
}

static void touches(X64Instruction& i, unsigned bytes, bool reads, bool writes) {
    if (!i.has_memory) return;
    i.memory_bytes = static_cast<std::uint8_t>(bytes);
    i.reads = reads;
    i.writes = writes;
}

static void immediate(Reader& in, X64Instruction& i, unsigned bytes) {
    i.immediate = in.number(bytes);
    i.has_immediate = true;
}

static bool is_read_modify_write(unsigned alu) {
    return alu != 7;
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
            if (p.address32 || p.segment || p.repeat == 0xf2) return;
            i.op = op < 0xa8 ? Op::string_move : Op::string_store;
            sized(!(op & 1));
            i.sub = p.repeat ? 1 : 0;
            return;
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
            i.op = op == 0xe8 ? Op::call : Op::jump;
            i.immediate = in.number(4);
            return;
        case 0xeb:
            i.op = Op::jump;
            i.immediate = in.number(1);
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
    if (op >= 0x50 && op < 0x60) {
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

// Vector instructions: pp is 0 none, 1 66, 2 f3, 3 f2. False = not one of them.
static bool vector(Reader& in, const Prefixes& p, X64Instruction& i, unsigned op, unsigned pp) {
    unsigned whole = p.is_256 ? 32 : 16, scalar = pp == 2 ? 4 : 8;
    auto form = [&](Op kind, unsigned bytes, bool stores = false) {
        mod_rm(in, p, i);
        i.op = kind;
        i.bytes = static_cast<std::uint8_t>(bytes);
        i.to_reg = !stores;
        touches(i, bytes, !stores, stores);
        return true;
    };
    switch (op) {
        case 0x10:
        case 0x11: {  // movups, movss, movupd, movsd
            unsigned bytes = pp >= 2 ? scalar : whole;
            form(op == 0x10 ? Op::vector_load : Op::vector_store, bytes, op == 0x11);
            if (!i.has_memory) {
                i.op = pp >= 2 ? Op::vector_other : Op::vector_move;
                if (op == 0x11 && pp >= 2) i.reg = i.rm;  // the register that changes
            }
            return true;
        }
        case 0x12:
        case 0x16:  // half of a register
            return form(Op::vector_other, pp >= 2 ? (pp == 3 && op == 0x12 ? 8 : whole) : 8);
        case 0x13:
        case 0x17:
            return pp < 2 && form(Op::vector_writes, 8, true);
        case 0x28:
        case 0x29:
            if (pp >= 2) return false;
            form(op == 0x28 ? Op::vector_load : Op::vector_store, whole, op == 0x29);
            if (!i.has_memory) i.op = Op::vector_move;
            return true;
        case 0x2a:
            if (pp < 2) return form(Op::vector_other, 8);
            form(Op::vector_other, p.w() ? 8 : 4);
            return true;
        case 0x2b:
            return pp < 2 && form(Op::vector_store, whole, true);
        case 0x2c:
        case 0x2d:
            return pp >= 2 && form(Op::vector_to_opaque, scalar);
        case 0x2e:
        case 0x2f:
            return pp < 2 && form(Op::vector_to_flags, pp == 1 ? 8 : 4);
        case 0x50:
            return pp < 2 && form(Op::vector_to_opaque, whole);
        case 0x5a:
            return form(Op::vector_other, pp >= 2 ? scalar : pp == 0 ? whole / 2 : whole);
        case 0x6e:
            if (pp != 1) return false;
            return form(Op::general_to_vector, p.w() ? 8 : 4);
        case 0x6f:
        case 0x7f:
            if (pp != 1 && pp != 2) return false;
            form(op == 0x6f ? Op::vector_load : Op::vector_store, whole, op == 0x7f);
            if (!i.has_memory) i.op = Op::vector_move;
            return true;
        case 0x7e:
            if (pp == 2) {
                form(Op::vector_load, 8);
                if (!i.has_memory) i.op = Op::vector_other;
                return true;
            }
            return pp == 1 && form(Op::vector_to_general, p.w() ? 8 : 4, true);
        case 0xd6:
            if (pp != 1) return false;
            form(Op::vector_store, 8, true);
            if (!i.has_memory) {
                i.op = Op::vector_other;
                i.reg = i.rm;
            }
            return true;
        case 0xe7:
            return pp == 1 && form(Op::vector_store, whole, true);
        case 0xe6:
            return pp != 0 && form(Op::vector_other, pp == 2 ? whole / 2 : whole);
        case 0xf0:
            return pp == 3 && form(Op::vector_load, whole);
        case 0xd7:
            return pp == 1 && form(Op::vector_to_opaque, whole);
        case 0x70:
            form(Op::vector_other, whole);
            immediate(in, i, 1);
            return pp != 0;
        case 0x71:
        case 0x72:
        case 0x73:  // shifts by an immediate: the register is rm, or vvvv with VEX
            form(Op::vector_other, whole);
            immediate(in, i, 1);
            i.reg = static_cast<std::uint8_t>(p.vex ? p.vvvv : i.rm);
            return pp == 1 && !i.has_memory;
        case 0xc2:
            form(Op::vector_other, pp >= 2 ? scalar : whole);
            immediate(in, i, 1);
            return true;
        case 0xc4:
            form(Op::vector_other, 2);
            immediate(in, i, 1);
            return pp == 1;
        case 0xc5:
            form(Op::vector_to_opaque, whole);
            immediate(in, i, 1);
            return pp == 1 && !i.has_memory;
        case 0xc6:
            form(Op::vector_other, whole);
            immediate(in, i, 1);
            return pp < 2;
        default:
            break;
    }
    if (op == 0x57 || op == 0xef) {  // xorps, pxor: with itself it is zero
        if (pp >= 2 || (op == 0xef && pp != 1)) return false;
        form(Op::vector_other, whole);
        if (!i.has_memory && i.rm == i.reg && (!p.vex || p.vvvv == i.rm)) i.op = Op::vector_zero;
        return true;
    }
    bool single = op == 0x14 || op == 0x15 || (op >= 0x54 && op <= 0x56);
    if (single) return pp < 2 && form(Op::vector_other, whole);
    if (op == 0x52 || op == 0x53) return (pp == 0 || pp == 2) && form(Op::vector_other, pp ? 4 : whole);
    if (op == 0x5b) return pp != 3 && form(Op::vector_other, whole);
    if (op == 0x51 || (op >= 0x58 && op <= 0x5f))
        return form(Op::vector_other, pp >= 2 ? scalar : whole);
    if (op == 0x7c || op == 0x7d || op == 0xd0) return (pp & 1) && form(Op::vector_other, whole);
    if (pp == 1 && ((op >= 0x60 && op <= 0x6d) || (op >= 0x74 && op <= 0x76) ||
                    (op >= 0xd1 && op <= 0xef) || (op >= 0xf1 && op <= 0xfe && op != 0xf7)))
        return form(Op::vector_other, whole);
    return false;
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
            i.op = Op::opaque;
            mod_rm(in, p, i);
            touches(i, size, true, true);
            if (!(op & 1)) immediate(in, i, 1);
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
            if (!vector(in, p, i, op, pp)) i.op = Op::unknown;
    }
}

// EVEX: plain moves, which copy and fill memory, and what makes the value to fill it with. All else has
// masks or results that are not followed.
static void evex(Reader& in, X64Instruction& i) {
    Prefixes p;
    unsigned first = in.byte(), second = in.byte(), third = in.byte(), op = in.byte();
    unsigned map = first & 7, pp = second & 3, length = third >> 5 & 3;
    p.rex = (first & 0x80 ? 0u : 4u) | (first & 0x40 ? 0u : 2u) | (first & 0x20 ? 0u : 1u);
    bool is_masked = third & 7, broadcasts = third & 0x10;
    if (broadcasts || length == 3 || first & 8 || !(second & 4) || in.short_of) return;
    unsigned whole = 16u << length, modrm = in.at < in.bytes ? in.code[in.at] : 0, mod = modrm >> 6;
    bool stores = op == 0x11 || op == 0x29 || op == 0x7f || op == 0xe7 || op == 0x2b;
    bool moves = map == 1 && (((op & 0xfe) == 0x10 && pp < 2) || ((op & 0xfe) == 0x28 && pp < 2) ||
                              ((op == 0x6f || op == 0x7f) && pp != 0) || (op == 0xe7 && pp == 1) ||
                              (op == 0x2b && pp < 2));
    bool makes = mod == 3 &&
                 ((map == 1 && (op == 0xef || op == 0x57)) || (map == 2 && op >= 0x7a && op <= 0x7c));
    // Comparisons into a mask, and what string functions combine their operands with.
    bool compares =
        (map == 1 && pp == 1 && ((op >= 0x74 && op <= 0x76) || (op >= 0x64 && op <= 0x66))) ||
        (map == 2 && pp != 0 && (op == 0x26 || op == 0x27)) ||
        (map == 3 && pp == 1 && (op == 0x3e || op == 0x3f || op == 0x1e || op == 0x1f));
    bool combines = (map == 1 && pp == 1 &&
                     (op == 0xda || op == 0xde || op == 0xdb || op == 0xdf || op == 0xeb ||
                      op == 0xef || op == 0xf8)) ||
                    (map == 3 && pp == 1 && op == 0x25);
    if (!moves && !makes && !compares && !combines) return;
    if (is_masked && (mod != 3 || moves)) return;
    mod_rm(in, p, i);
    if (map == 3) immediate(in, i, 1);
    i.reg = static_cast<std::uint8_t>(i.reg | (first & 0x10 ? 0 : 16));
    if (mod == 3) i.rm = static_cast<std::uint8_t>(i.rm | (first & 0x40 ? 0 : 16));
    if (mod == 1) i.displacement *= whole;
    i.bytes = static_cast<std::uint8_t>(whole);
    i.op = compares            ? Op::vector_to_mask
           : makes || combines ? Op::vector_other
           : mod == 3          ? Op::vector_move
           : stores            ? Op::vector_store
                               : Op::vector_load;
    i.to_reg = !stores;
    touches(i, whole, !stores, stores);
}

// 0f 38 and 0f 3a, and what only VEX has: nothing is computed, memory operands are known for the common
// ones.
static void extended_three(Reader& in, const Prefixes& p, X64Instruction& i, unsigned op) {
    unsigned whole = p.is_256 ? 32 : 16, size = p.w() ? 8 : 4;
    mod_rm(in, p, i);
    if (p.map == 3) immediate(in, i, 1);
    i.bytes = static_cast<std::uint8_t>(size);
    i.to_reg = true;
    auto general = [&](unsigned changed) {
        i.op = Op::opaque;
        i.reg = static_cast<std::uint8_t>(changed);
        touches(i, size, true, false);
    };
    if (p.map == 2 && p.vex && p.pp == 0 && op == 0xf2) return general(i.reg);                 // andn
    if (p.map == 2 && p.vex && p.pp == 0 && op == 0xf3) return general(p.vvvv);                // blsr …
    if (p.map == 2 && p.vex && op == 0xf7) return general(i.reg);                              // shlx …
    if (p.map == 2 && p.vex && (p.pp == 0 || p.pp >= 2) && op == 0xf5) return general(i.reg);  // bzhi …
    if (p.map == 3 && p.vex && p.pp == 3 && op == 0xf0) return general(i.reg);                 // rorx
    if (p.map == 2 && !p.vex && (op == 0xf0 || op == 0xf1)) return;  // movbe, crc32
    bool by_whole = p.map == 2 ? op <= 0x0b || (op >= 0x1c && op <= 0x1e) || op == 0x28 || op == 0x29 ||
                                     op == 0x2b || (op >= 0x37 && op <= 0x40)
                               : op >= 0x08 && op <= 0x0f && op != 0x0a && op != 0x0b;
    bool is_66 = p.vex ? p.pp == 1 : p.operand16;
    if (by_whole && is_66) {
        i.op = Op::vector_other;
        touches(i, whole, true, false);
    } else if (p.map == 2 && op == 0x17 && is_66) {
        i.op = Op::vector_to_flags;
        touches(i, whole, true, false);
    } else if (p.map == 2 && p.vex && is_66 &&
               (op == 0x18 || op == 0x58 || op == 0x59 || op == 0x78 || op == 0x79)) {
        i.op = Op::vector_other;  // broadcasts
        touches(i, op == 0x78 ? 1 : op == 0x79 ? 2 : op == 0x59 ? 8 : 4, true, false);
    }
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
        evex(in, i);
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
        bool masks_only = (op >= 0x41 && op <= 0x4b) || op == 0x92;
        if (p.map == 1 && (masks_only || op == 0x93 || op == 0x98 || op == 0x99)) {
            mod_rm(in, p, i);
            i.op = i.has_memory ? Op::unknown
                   : masks_only ? Op::vector_to_mask
                   : op == 0x93 ? Op::vector_to_opaque
                                : Op::vector_to_flags;
        } else if (p.map == 1 && op == 0x77)
            i.op = Op::nop;  // vzeroupper: the low halves stay
        else if (p.map == 1) {
            if (!vector(in, p, i, op, p.pp)) i.op = Op::unknown;
        } else if (p.map == 2 || p.map == 3)
            extended_three(in, p, i, op);
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
    if ((p.address32 || (op == 0x62 && p.segment)) && i.has_memory) i.op = Op::unknown;
    if (in.short_of || i.op == Op::unknown) return {};
    i.length = static_cast<std::uint8_t>(in.at);
    return i;
}

}  // namespace revisit::watch
