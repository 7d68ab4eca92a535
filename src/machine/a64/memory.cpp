// Loads, stores and atomics of aarch64: what they touch. See a64.h.
#include "machine/a64/a64.h"

namespace revisit::machine {
namespace {

using Kind = MemoryOperation::Kind;

std::uint64_t signed_field(std::uint32_t instruction, unsigned low, unsigned bits) {
    return static_cast<std::uint64_t>(sign_extend(field(instruction, low, bits), bits));
}

// Base register plus offset; `mode` is 0 offset, 1 after the access, 3 before it.
void address_from_base(MemoryOperation& op, const A64State& s, unsigned base, std::uint64_t offset,
                       unsigned mode) {
    op.address_known = true;
    std::uint64_t at = s.read_sp(base, op.address_known);
    op.address = mode == 1 ? at : at + offset;
    op.writes_back = (mode & 1) != 0;
    op.base = static_cast<std::uint8_t>(base);
    op.written_back = at + offset;
}

void atomic(MemoryOperation& op, std::uint32_t i, const A64State& s) {
    unsigned operation = field(i, 12, 3);
    op.bytes = static_cast<std::uint8_t>(1u << (i >> 30));
    if (i >> 15 & 1) {
        if (operation == 4 && field(i, 16, 5) == 31)
            op.kind = Kind::load;  // ldapr
        else if (operation == 0)
            op.kind = Kind::atomic;
        else
            return;
        operation = 8;
    } else
        op.kind = Kind::atomic;
    op.operation = static_cast<std::uint8_t>(operation);
    op.rs = static_cast<std::uint8_t>(field(i, 16, 5));
    address_from_base(op, s, field(i, 5, 5), 0, 0);
}

void single(MemoryOperation& op, std::uint32_t i, const A64State& s) {
    bool vector = i >> 26 & 1;
    unsigned size = i >> 30, opc = field(i, 22, 2), scale = size, rn = field(i, 5, 5);
    if (!(i >> 24 & 1) && (i >> 21 & 1) && field(i, 10, 2) == 0) {
        if (!vector) atomic(op, i, s);
        return;
    }
    Kind kind;
    if (vector) {
        scale |= (opc & 2) << 1;
        if (scale > 4) return;
        kind = opc & 1 ? Kind::load : Kind::store;
    } else if (size == 3 && opc >= 2) {
        if (opc == 3) return;
        kind = Kind::none;  // prfm
    } else {
        if (size == 2 && opc == 3) return;
        kind = opc == 0 ? Kind::store : Kind::load;
        op.extend = static_cast<std::uint8_t>(opc >= 2 ? opc - 1 : 0);
    }
    op.vector = vector;
    op.bytes = static_cast<std::uint8_t>(1u << scale);
    if (i >> 24 & 1) {
        address_from_base(op, s, rn, std::uint64_t{field(i, 10, 12)} << scale, 0);
    } else if (i >> 21 & 1) {
        unsigned option = field(i, 13, 3);
        if (field(i, 10, 2) != 2 || !(option & 2)) return;
        bool known = true;
        std::uint64_t index = s.read(field(i, 16, 5), known);
        if (option == 2) index = static_cast<std::uint32_t>(index);
        if (option == 6)
            index = static_cast<std::uint64_t>(
                std::int64_t{static_cast<std::int32_t>(static_cast<std::uint32_t>(index))});
        address_from_base(op, s, rn, index << (i >> 12 & 1 ? scale : 0), 0);
        op.address_known &= known;
    } else {
        unsigned mode = field(i, 10, 2);
        if ((kind == Kind::none && mode != 0) || (vector && mode == 2)) return;
        address_from_base(op, s, rn, signed_field(i, 12, 9), mode == 2 ? 0 : mode);
    }
    op.kind = kind;
}

void pair(MemoryOperation& op, std::uint32_t i, const A64State& s) {
    bool vector = i >> 26 & 1, load = i >> 22 & 1;
    unsigned opc = i >> 30, mode = field(i, 23, 2);
    if (opc == 3 || (!vector && opc == 1 && (!load || mode == 0))) return;
    unsigned scale = vector ? 2 + opc : 2 + (opc >> 1);
    op.kind = load ? Kind::load : Kind::store;
    op.vector = vector;
    op.pieces = 2;
    op.bytes = static_cast<std::uint8_t>(1u << scale);
    op.extend = !vector && opc == 1;
    op.rt[1] = static_cast<std::uint8_t>(field(i, 10, 5));
    address_from_base(op, s, field(i, 5, 5), signed_field(i, 15, 7) << scale, mode == 2 ? 0 : mode);
}

void literal_or_ordered(MemoryOperation& op, std::uint32_t i, const A64State& s) {
    bool vector = i >> 26 & 1;
    unsigned size = i >> 30, opc = field(i, 22, 2);
    if (!(i >> 24 & 1)) {  // relative to pc
        if (vector && size == 3) return;
        op.kind = !vector && size == 3 ? Kind::none : Kind::load;
        op.vector = vector;
        op.bytes = static_cast<std::uint8_t>(vector ? 4u << size : size == 1 ? 8 : 4);
        op.extend = !vector && size == 2;
        op.address_known = true;
        op.address = s.pc + signed_field(i, 5, 19) * 4;
        return;
    }
    if (vector || (i >> 21 & 1) || field(i, 10, 2) != 0 || (size == 3 && opc >= 2) ||
        (size == 2 && opc == 3))
        return;
    op.kind = opc == 0 ? Kind::store : Kind::load;
    op.bytes = static_cast<std::uint8_t>(1u << size);
    op.extend = static_cast<std::uint8_t>(opc >= 2 ? opc - 1 : 0);
    address_from_base(op, s, field(i, 5, 5), signed_field(i, 12, 9), 0);
}

void exclusive(MemoryOperation& op, std::uint32_t i, const A64State& s) {
    unsigned size = i >> 30;
    bool ordered = i >> 23 & 1, load = i >> 22 & 1, both = i >> 21 & 1;
    if (i >> 24 & 1) return;
    op.bytes = static_cast<std::uint8_t>(1u << size);
    op.rs = static_cast<std::uint8_t>(field(i, 16, 5));
    if (ordered && both) {
        if (field(i, 10, 5) != 31) return;
        op.kind = Kind::compare_swap;
    } else if (both && size < 2) {  // casp
        if (field(i, 10, 5) != 31 || (op.rs & 1) || (op.rt[0] & 1)) return;
        op.kind = Kind::compare_swap;
        op.pieces = 2;
        op.bytes = size == 0 ? 4 : 8;
    } else {
        op.kind = load ? Kind::load : ordered ? Kind::store : Kind::exclusive_store;
        if (both) {
            op.pieces = 2;
            op.rt[1] = static_cast<std::uint8_t>(field(i, 10, 5));
        }
    }
    address_from_base(op, s, field(i, 5, 5), 0, 0);
}

void structures(MemoryOperation& op, std::uint32_t i, const A64State& s) {
    bool load = i >> 22 & 1, after = i >> 23 & 1, lanes = i >> 24 & 1;
    unsigned rm = field(i, 16, 5);
    if (i >> 31 || (!after && (i & (lanes ? 0x001f0000u : 0x003f0000u))) || (!lanes && (i >> 21 & 1)))
        return;
    if (!lanes) {
        static constexpr std::uint8_t kRegisters[16] = {4, 0, 4, 0, 3, 0, 3, 1, 2, 0, 2};
        op.pieces = kRegisters[field(i, 12, 4)];
        if (op.pieces == 0) return;
        op.bytes = i >> 30 & 1 ? 16 : 8;
        op.keeps_lanes = !(field(i, 12, 4) & 2);
    } else {
        unsigned opcode = field(i, 13, 3), size = field(i, 10, 2), scale = opcode >> 1;
        op.pieces = static_cast<std::uint8_t>(((opcode & 1) << 1 | (i >> 21 & 1)) + 1);
        if (scale == 3) {
            if (!load || (i >> 12 & 1)) return;
            scale = size;
        } else if (scale == 2) {
            if (size > 1 || (size == 1 && (i >> 12 & 1))) return;
            scale += size & 1;
        } else if (scale == 1 && (size & 1))
            return;
        op.bytes = static_cast<std::uint8_t>(1u << scale);
        op.keeps_lanes = true;
    }
    op.vector = true;
    for (unsigned k = 0; k < op.pieces; k++) op.rt[k] = static_cast<std::uint8_t>((i + k) & 31);
    bool known = true;
    std::uint64_t step = rm == 31 ? std::uint64_t{op.pieces} * op.bytes : s.read(rm, known);
    address_from_base(op, s, field(i, 5, 5), after ? step : 0, after ? 1 : 0);
    // An unknown step makes the base unknown, not this address.
    if (!known) op.written_back = 0;
    op.kind = known || !after ? (load ? Kind::load : Kind::store) : Kind::unknown;
}

}  // namespace

MemoryOperation decode_memory(std::uint32_t i, const A64State& s) {
    MemoryOperation op;
    op.rt[0] = i & 31;
    if (is_zero_block(i)) {
        // Blocks of 64 bytes on every processor met so far; others end the look-ahead (a64/ahead.h).
        op.kind = Kind::zero;
        op.bytes = 64;
        op.address_known = true;
        op.address = s.read(i & 31, op.address_known) & ~std::uint64_t{63};
        return op;
    }
    switch (field(i, 28, 2)) {
        case 0:
            if (i >> 26 & 1)
                structures(op, i, s);
            else
                exclusive(op, i, s);
            break;
        case 1:
            literal_or_ordered(op, i, s);
            break;
        case 2:
            pair(op, i, s);
            break;
        default:
            single(op, i, s);
    }
    return op;
}

}  // namespace revisit::machine
