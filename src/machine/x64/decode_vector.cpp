// Vector instructions of x86_64, in their three encodings: see x64.h; which there are is in
// x64/vector_rows.h.
#include <algorithm>
#include <utility>

#include "machine/x64/vector_rows.h"

namespace revisit::machine::x64 {
namespace {

unsigned memory_bytes(const Row& r, const Prefixes& p, unsigned whole, unsigned element) {
    if (r.memory <= Size::eighth) return whole >> static_cast<unsigned>(r.memory);
    if (r.memory == Size::element) return element;
    if (r.memory == Size::width) return p.w() ? 8 : 4;
    return 4u << (static_cast<unsigned>(r.memory) - static_cast<unsigned>(Size::b4));
}

void registers(Reader& in, const Prefixes& p, X64Instruction& i) {
    mod_rm(in, p, i);
    i.reg = static_cast<std::uint8_t>(i.reg | p.more_reg);
    if (!i.has_memory) i.rm = static_cast<std::uint8_t>(i.rm | p.more_rm);
    i.first = static_cast<std::uint8_t>(p.vex ? p.vvvv : i.reg);
}

// Shifts by an immediate: the operation is where a register usually is.
bool shift(const Prefixes& p, X64Instruction& i, unsigned op) {
    unsigned which = i.reg & 7;
    bool bytes = op == 0x73 && (which == 3 || which == 7);
    if (!bytes && which != 2 && which != 6 && (which != 4 || op == 0x73)) return false;
    if (p.evex && which == 4 && op == 0x72 && p.w()) i.element = 8;
    P what = which == 2                     ? P::psrl
             : which == 4                   ? P::psra
             : which == 6                   ? P::psll
             : static_cast<bool>(which & 4) ? P::pslldq
                                            : P::psrldq;
    i.set(what);
    i.reg = static_cast<std::uint8_t>(p.vex ? p.vvvv : i.rm);
    i.first = i.rm;
    return true;
}

// a * b + c. Where rounding is the instruction's own, the result is not followed.
bool fused(Reader& in, const Prefixes& p, X64Instruction& i, unsigned op) {
    if (!p.vex || p.map != 2 || op < 0x96 || op > 0xbf || (op & 15) < 6) return false;
    registers(in, p, i);
    bool is_scalar = (op & 15) >= 9 && op & 1;
    unsigned whole = p.is_512 ? 64 : p.is_256 ? 32 : 16;
    i.op = p.broadcasts && !i.has_memory ? Op::vector_other : Op::fused;
    i.sub = static_cast<std::uint8_t>(op);
    i.element = p.w() ? 8 : 4;
    i.from = is_scalar ? i.element : 0;
    i.bytes = static_cast<std::uint8_t>(is_scalar ? 16 : whole);
    i.broadcasts = p.broadcasts && i.has_memory;
    touches(i, is_scalar || p.broadcasts ? i.element : whole, true, false);
    return true;
}

// Elements of memory at a base and as many indices, those that a mask names.
bool gather(Reader& in, const Prefixes& p, X64Instruction& i, unsigned op) {
    const bool scatters = op >= 0xa0;
    if (!p.vex || p.map != 2 || (op & 0xfc) != (scatters ? 0xa0 : 0x90) || (scatters && !p.evex))
        return false;
    const bool has_index = in.at < in.bytes && (in.code[in.at] & 7) == 4;
    mod_rm(in, p, i);
    if (!i.has_memory || !has_index || (p.evex && p.mask == 0)) return true;
    i.reg = static_cast<std::uint8_t>(i.reg | p.more_reg);
    const unsigned index = i.index == X64Instruction::kNone ? 4 : i.index;
    i.rm = static_cast<std::uint8_t>(index | (p.evex ? p.vvvv & 16 : 0));
    i.index = X64Instruction::kNone;
    i.immediate = i.scale;
    i.first = static_cast<std::uint8_t>(p.vvvv);
    i.sub = !p.evex;
    i.element = p.w() ? 8 : 4;
    i.from = op & 1 ? 8 : 4;
    const unsigned whole = p.is_512   ? 64
                           : p.is_256 ? 32
                                      : 16,
                   elements = whole / std::max(i.element, i.from);
    i.bytes = static_cast<std::uint8_t>(elements * i.element);
    i.op = scatters ? Op::scatter : Op::gather;
    touches(i, i.element, !scatters, scatters);
    return true;
}

// The elements that are read are not as wide as those that come of them.
void converts(const Prefixes& p, X64Instruction& i, unsigned op, unsigned whole) {
    using enum X64Packed;
    if (op == 0x5b && p.evex && p.w() && i.is(cvtdq2ps)) i.op = Op::vector_other;
    if (p.evex && p.w() && (op == 0xe6 || op == 0x7a) && i.is(op == 0xe6 ? cvtdq2ps : cvtudq2pd)) {
        i.set(op == 0xe6 ? cvtqq2pd : cvtuqq2pd);
        touches(i, p.broadcasts ? 8 : whole, true, false);
    }
    const bool narrows = i.is(cvtpd2ps) || i.is(cvttpd2dq);
    if (!narrows) return;
    if (p.mask != 0 || p.broadcasts) {
        i.op = Op::vector_other;
        touches(i, p.broadcasts ? 8 : whole, true, false);
    }
    i.bytes = static_cast<std::uint8_t>(whole / 2);
}

}  // namespace

void vector(Reader& in, const Prefixes& p, X64Instruction& i, unsigned op, unsigned pp) {
    i.clears_above = p.vex;
    i.mask = static_cast<std::uint8_t>(p.mask);
    i.zeroes = p.zeroes;
    i.to_reg = true;
    if (pp == 1 && (fused(in, p, i, op) || gather(in, p, i, op))) return;
    const Row* r = find_row(p, op, pp);
    if (r == nullptr) return;
    unsigned whole = p.is_512 ? 64 : p.is_256 ? 32 : 16, element = r->element;
    auto is = [&](P what) { return r->op == Op::packed && static_cast<P>(r->sub) == what; };
    bool old_blend = is(P::pblendv) && p.map == 2;
    if (old_blend && p.vex) return;
    if (p.w() && ((r->flags & kWideVex) || (r->flags & kWide && p.evex))) element *= 2;
    bool stores = r->flags & kStores;
    registers(in, p, i);
    if (r->flags & (i.has_memory ? kRegisters : kMemory)) return;
    i.sub = r->sub;
    i.element = static_cast<std::uint8_t>(element);
    i.to_reg = !stores;
    i.bytes = static_cast<std::uint8_t>(r->flags & kScalar ? element : whole);
    i.broadcasts = p.broadcasts;
    if (p.broadcasts && (!i.has_memory || element < 4 || r->memory != Size::whole || stores)) return;
    unsigned memory = p.broadcasts ? element : memory_bytes(*r, p, whole, element);
    if (is(P::movddup) && whole == 16) memory = 8;
    touches(i, memory, !stores, stores);
    if (r->flags & kImmediate) immediate(in, i, 1);
    i.op = r->op;
    switch (r->op) {
        case Op::vector_load:
        case Op::vector_store:
            if (i.has_memory) break;
            i.op = Op::vector_move;
            if (op != 0x10 && op != 0x11) break;
            if (!(r->flags & kScalar)) break;
            i.op = Op::scalar_move;
            if (op == 0x11) std::swap(i.reg, i.rm);  // reg is the one that changes
            if (!p.vex) i.first = i.reg;
            i.to_reg = true;
            break;
        case Op::packed: {
            auto what = static_cast<P>(i.sub);
            if (op >= 0x71 && op <= 0x73 && p.map == 1 && !shift(p, i, op)) i.op = Op::unknown;
            if (what == P::movlps && !i.has_memory) i.set(P::movhlps);
            if (what == P::roundps && i.immediate & 0xf0) i.op = Op::vector_other;
            if (what == P::pmovsx || what == P::pmovzx)
                i.from = static_cast<std::uint8_t>(r->memory == Size::half      ? element / 2
                                                   : r->memory == Size::quarter ? element / 4
                                                                                : element / 8);
            if (what == P::pblendv)
                i.from = old_blend ? 0 : static_cast<std::uint8_t>(i.immediate >> 4 & 15);
            if (what == P::vpermd && whole == 16 && element >= 4) i.op = Op::unknown;
            if (what >= P::cvtdq2ps) converts(p, i, op, whole);
            if (p.evex && (what == P::pcmpeq || what == P::pcmpgt)) i.op = Op::vector_compare;
            break;
        }
        case Op::scalar:
            if (i.is(P::roundps) && i.immediate & 0xf0) i.op = Op::vector_other;
            [[fallthrough]];
        case Op::scalar_compare:
            i.bytes = i.from = i.element;
            break;
        case Op::scalar_convert:
            i.from = i.element;
            i.bytes = static_cast<std::uint8_t>(12 - element);
            break;
        case Op::integer_to_scalar:
            i.bytes = i.element;
            i.from = p.w() ? 8 : 4;
            break;
        case Op::scalar_to_integer:
            i.bytes = p.w() ? 8 : 4;
            i.from = i.element;
            break;
        case Op::general_to_vector:
        case Op::vector_to_general:
            i.bytes = p.w() ? 8 : 4;
            break;
        case Op::vector_extract:
            if (op == 0xc5) std::swap(i.reg, i.rm);
            i.bytes = element == 8 ? 8 : 4;
            break;
        case Op::vector_halves:
            i.from = r->memory == Size::b32 ? 32 : 16;
            if (whole <= i.from) i.op = Op::unknown;
            break;
        case Op::vector_narrow:
            i.from = static_cast<std::uint8_t>(element << (r->memory == Size::half      ? 1
                                                           : r->memory == Size::quarter ? 2
                                                                                        : 3));
            i.bytes = static_cast<std::uint8_t>(memory);
            break;
        case Op::vector_to_opaque:
            if (p.map == 3) i.reg = 1;  // rcx
            break;
        default:
            break;
    }
    bool into_mask =
        i.op == Op::vector_compare || i.op == Op::float_compare || i.op == Op::vector_to_mask;
    if (into_mask && i.reg > 7) i.op = Op::unknown;
}

// EVEX: as VEX, with more registers, a mask, and displacements in units of what is touched.
void evex(Reader& in, Prefixes& p, X64Instruction& i) {
    unsigned first = in.byte(), second = in.byte(), third = in.byte(), op = in.byte();
    unsigned length = third >> 5 & 3;
    if (length == 3 || first & 8 || !(second & 4) || in.short_of) return;
    p.vex = p.evex = true;
    p.rex = (first & 0x80 ? 0u : 4u) | (first & 0x40 ? 0u : 2u) | (first & 0x20 ? 0u : 1u) |
            (second & 0x80 ? 8u : 0u);
    p.more_reg = first & 0x10 ? 0 : 16;
    p.more_rm = first & 0x40 ? 0 : 16;
    p.map = first & 7;
    p.pp = second & 3;
    p.vvvv = (~(second >> 3) & 15) | (third & 8 ? 0 : 16);
    p.is_256 = length == 1;
    p.is_512 = length == 2;
    p.zeroes = third & 0x80;
    p.broadcasts = third & 0x10;
    p.mask = third & 7;
    unsigned modrm = in.at < in.bytes ? in.code[in.at] : 0;
    vector(in, p, i, op, p.pp);
    if (modrm >> 6 == 1) i.displacement *= i.memory_bytes;
}

bool mask_instruction(Reader& in, const Prefixes& p, X64Instruction& i, unsigned op) {
    if (p.map == 1 && op == 0x77) {
        i.op = Op::vzeroupper;
        i.sub = p.is_256;
        return true;
    }
    bool shifts = p.map == 3 && op >= 0x30 && op <= 0x33;
    bool moves = p.map == 1 && op >= 0x90 && op <= 0x93,
         tests = p.map == 1 && (op == 0x98 || op == 0x99);
    if (!shifts && !moves && !tests && (p.map != 1 || op < 0x41 || op > 0x4b)) return false;
    mod_rm(in, p, i);
    i.first = static_cast<std::uint8_t>(p.vvvv);
    i.to_reg = op != 0x91;
    unsigned bytes = p.pp == 1 ? (p.w() ? 4 : 1) : (p.w() ? 8 : 2);
    if (shifts) {
        i.op = Op::kshift;
        i.sub = op >= 0x32;
        bytes = op & 1 ? (p.w() ? 8 : 4) : (p.w() ? 2 : 1);
        immediate(in, i, 1);
    } else if (tests) {
        i.op = Op::kortest;
        i.sub = op & 1;
    } else if (moves) {
        i.op = Op::kmov;
        i.sub = op & 3;  // X64MaskMove
        if (op >= 0x92) bytes = p.pp == 1 ? 1 : p.pp == 0 ? 2 : p.w() ? 8 : 4;
        touches(i, bytes, op == 0x90, op == 0x91);
    } else {
        i.op = Op::mask_logic;
        i.sub = static_cast<std::uint8_t>(op);  // X64Mask
        if (op == 0x4b) bytes = p.pp == 1 ? 2 : p.w() ? 8 : 4;
    }
    i.bytes = static_cast<std::uint8_t>(bytes);
    bool is_known = op <= 0x42 || (op >= 0x44 && op <= 0x47) || op >= 0x4a;
    bool may_touch = op == 0x90 || op == 0x91;
    if (!is_known || (i.has_memory && !may_touch) || (op == 0x91 && !i.has_memory)) i.op = Op::unknown;
    if (shifts) i.op = i.has_memory ? Op::unknown : Op::kshift;
    if (op != 0x93 && i.reg > 7) i.op = Op::unknown;  // there are eight masks
    return true;
}

}  // namespace revisit::machine::x64
