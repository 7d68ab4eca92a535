// Vector instructions of x86_64: their operands, and which of them are computed. See x64.h.
#include <utility>

#include "watch/x64_decode.h"

namespace revisit::watch::x64 {

bool vector(Reader& in, const Prefixes& p, X64Instruction& i, unsigned op, unsigned pp) {
    unsigned whole = p.is_256 ? 32 : 16, scalar = pp == 2 ? 4 : 8;
    auto form = [&](Op kind, unsigned bytes, bool stores = false) {
        mod_rm(in, p, i);
        i.op = kind;
        i.bytes = static_cast<std::uint8_t>(bytes);
        i.to_reg = !stores;
        touches(i, bytes, !stores, stores);
        i.first = static_cast<std::uint8_t>(p.vex ? p.vvvv : i.reg);
        return true;
    };
    auto computes = [&](Op kind, unsigned sub, unsigned bytes, unsigned from) {
        form(kind, from);
        i.sub = static_cast<std::uint8_t>(sub);
        i.bytes = static_cast<std::uint8_t>(bytes);
        i.from = static_cast<std::uint8_t>(from);
        return true;
    };
    switch (op) {
        case 0x10:
        case 0x11: {  // movups, movss, movupd, movsd
            unsigned bytes = pp >= 2 ? scalar : whole;
            form(op == 0x10 ? Op::vector_load : Op::vector_store, bytes, op == 0x11);
            if (!i.has_memory) {
                i.op = pp >= 2 ? Op::scalar_move : Op::vector_move;
                if (op == 0x11 && pp >= 2) {  // reg is the register that changes
                    std::swap(i.reg, i.rm);
                    if (!p.vex) i.first = i.reg;
                }
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
            return computes(Op::integer_to_scalar, 0, scalar, p.w() ? 8 : 4);
        case 0x2b:
            return pp < 2 && form(Op::vector_store, whole, true);
        case 0x2c:
        case 0x2d:
            if (pp < 2) return false;
            if (op == 0x2c) return computes(Op::scalar_to_integer, 0, p.w() ? 8 : 4, scalar);
            return form(Op::vector_to_opaque, scalar);
        case 0x2e:
        case 0x2f:
            return pp < 2 && computes(Op::scalar_compare, 0, pp == 1 ? 8 : 4, pp == 1 ? 8 : 4);
        case 0x50:
            return pp < 2 && form(Op::vector_to_opaque, whole);
        case 0x5a:
            if (pp >= 2) return computes(Op::scalar_convert, 0, 12 - scalar, scalar);
            return form(Op::vector_other, pp == 0 ? whole / 2 : whole);
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
        computes(Op::vector_logic, 3, whole, whole);
        if (!i.has_memory && i.rm == i.reg && (!p.vex || p.vvvv == i.rm)) i.op = Op::vector_zero;
        return true;
    }
    if (op >= 0x54 && op <= 0x56) return pp < 2 && computes(Op::vector_logic, op - 0x54, whole, whole);
    if (pp == 1 && (op == 0xdb || op == 0xdf || op == 0xeb))
        return computes(Op::vector_logic, op == 0xdb ? 0 : op == 0xdf ? 1 : 2, whole, whole);
    if (op == 0x14 || op == 0x15) return pp < 2 && form(Op::vector_other, whole);
    if (op == 0x52 || op == 0x53) return (pp == 0 || pp == 2) && form(Op::vector_other, pp ? 4 : whole);
    if (op == 0x5b) return pp != 3 && form(Op::vector_other, whole);
    if (pp >= 2 && op >= 0x58 && op <= 0x5f) return computes(Op::scalar, op & 7, scalar, scalar);
    if (op == 0x51 || (op >= 0x58 && op <= 0x5f))
        return form(Op::vector_other, pp >= 2 ? scalar : whole);
    if (op == 0x7c || op == 0x7d || op == 0xd0) return (pp & 1) && form(Op::vector_other, whole);
    if (pp == 1 && ((op >= 0x60 && op <= 0x6d) || (op >= 0x74 && op <= 0x76) ||
                    (op >= 0xd1 && op <= 0xef) || (op >= 0xf1 && op <= 0xfe && op != 0xf7)))
        return form(Op::vector_other, whole);
    return false;
}

// EVEX: plain moves, which copy and fill memory, and what makes the value to fill it with. All else has
// masks or results that are not followed.
void evex(Reader& in, X64Instruction& i) {
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
void extended_three(Reader& in, const Prefixes& p, X64Instruction& i, unsigned op) {
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

}  // namespace revisit::watch::x64
