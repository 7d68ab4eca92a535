// Vector instructions of x86_64, and what else is left to X64::native(): see x64/lift.cpp.
#include "machine/x64/lifter.h"

namespace revisit::machine::x64 {

std::int64_t pack(const X64Instruction& i) {
    Native n = {};
    n.op = i.op;
    n.sub = i.sub;
    n.bytes = i.bytes & 127;
    n.from = i.from & 63;
    n.reg = i.reg & 31;
    n.rm = i.rm & 31;
    n.first = i.first & 31;
    n.mask = i.mask & 7;
    n.log_element = static_cast<unsigned>(std::bit_width(i.element)) & 7;  // 0 where there is none
    n.has_immediate = i.has_immediate;
    n.to_reg = i.to_reg;
    n.has_memory = i.has_memory;
    n.writes = i.writes;
    n.clears_above = i.clears_above;
    n.zeroes = i.zeroes;
    n.broadcasts = i.broadcasts;
    n.immediate = static_cast<std::int8_t>(i.immediate);
    return std::bit_cast<std::int64_t>(n);
}

// What is left to X64::native().

Micro& Lifter::native(std::uint8_t how) {
    Micro& m = out.put(Op::native, kDiscard, kZ, kZ, pack(i), i.memory_bytes);
    m.lanes = how;
    m.pieces = 0;
    return m;
}

bool Lifter::special() {
    native(X64::kSpecial);
    return true;
}

// The address is in t0 then.
bool Lifter::address_first() {
    if (i.segment == 2) return false;
    Micro& m = put_wide(Op::add, kT0, kZ);
    address(m, i.base >= 16 || i.index >= 16);
    if (i.segment == 1 && i.base < 16 && i.index < 16) put_wide(Op::add, kT0, kT0, kThreadPointer);
    return true;
}

bool Lifter::cmpxchg8b() {
    if (!address_first()) return false;
    Micro& m = native(X64::kSpecial);
    m.a = kT0;
    m.flags = kZero;
    return true;
}

bool Lifter::gather() {
    if (!address_first()) return false;
    Micro& m = native(X64::kSpecial);
    m.a = kT0;
    if (i.op == Code::scatter) return true;
    m.c = static_cast<std::uint8_t>(i.reg & 31);
    m.pieces = 1;
    return true;
}

bool Lifter::vector() {
    bool masks = i.mask != 0 && !i.broadcasts && i.has_memory;
    if (masks && !address_first()) return false;
    if (!masks && i.has_memory && i.reads) {
        if (i.op == Code::vector_load && i.mask == 0 && !i.broadcasts) {
            if (!memory(Op::vector_load, i.reg, i.memory_bytes)) return false;
            out.micro[out.count - 1].lanes = i.clears_above;
            return true;
        }
        if (!memory(Op::vector_load, kOperand, i.memory_bytes)) return false;
        out.micro[out.count - 1].c = is_float() ? X64::kFloats : 0;
    }
    if (!masks && i.has_memory && i.writes) {
        if (i.op == Code::vector_store || i.op == Code::vector_to_general)
            return memory(Op::vector_store, i.reg, i.memory_bytes);
        native(X64::kComputes);
        return memory(Op::vector_store, kOperand, i.memory_bytes);
    }
    Micro& m = native(masks ? X64::kMasked : X64::kComputes);
    if (masks) m.a = kT0;
    roles(m);
    if (!masks && is_float()) m.shift = X64::kFloats;
    return true;
}

bool Lifter::is_float() const {
    return i.op == Code::scalar || i.op == Code::scalar_convert || i.op == Code::integer_to_scalar ||
           i.op == Code::fused ||
           (i.op == Code::packed && i.sub >= static_cast<std::uint8_t>(X64Packed::addps));
}

// Which general registers, flags and vector registers a native reads and writes.
void Lifter::roles(Micro& m) {
    auto writes_vector = [&](unsigned v) {
        m.c = static_cast<std::uint8_t>(v & 31);
        m.pieces = 1;
    };
    switch (i.op) {
        case Code::integer_to_scalar:
        case Code::general_to_vector:
        case Code::vector_insert:
        case Code::vector_spread:
            if (!i.has_memory) m.a = i.rm & 15;
            return writes_vector(i.reg);
        case Code::vector_move:
            return writes_vector(i.to_reg ? i.reg : i.rm);
        case Code::vector_halves:
            return writes_vector(i.sub ? i.reg : i.rm);
        case Code::vector_narrow:
            return writes_vector(i.rm);
        case Code::vzeroupper:
            m.pieces = 2;  // all of them
            return;
        case Code::vector_to_general:
        case Code::vector_extract:
            m.d = i.rm & 15;
            return;
        case Code::vector_signs:
        case Code::scalar_to_integer:
            m.d = i.reg & 15;
            return;
        case Code::vector_to_opaque:
            m.d = i.reg & 15;
            m.flags = i.sub ? kAllFlags : 0;
            return;
        case Code::scalar_compare:
        case Code::ptest:
        case Code::kortest:
        case Code::vector_to_flags:
            m.flags = kAllFlags;
            return;
        case Code::kmov:
            if (i.is(X64MaskMove::from_general)) m.a = i.rm & 15;
            if (i.is(X64MaskMove::to_general)) m.d = i.reg & 15;
            return;
        case Code::vector_store:  // masked
        case Code::vector_compare:
        case Code::float_compare:
        case Code::mask_logic:
        case Code::kshift:
        case Code::vector_to_mask:
            return;
        default:
            writes_vector(i.reg);
    }
}

}  // namespace revisit::machine::x64
