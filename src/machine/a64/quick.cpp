// Decoding of the common instructions: see a64/quick.h.
#include "machine/a64/quick.h"

namespace revisit::machine {
namespace quick {

using Kind = QuickInstruction::Kind;
using Mode = QuickInstruction::Mode;

static std::int64_t signed_field(std::uint32_t i, unsigned low, unsigned bits) {
    return sign_extend(field(i, low, bits), bits);
}

static void immediate(QuickInstruction& q, std::uint32_t i) {
    unsigned opc = field(i, 29, 2);
    switch (field(i, 23, 3)) {
        case 0:
        case 1:
            q.value = sign_extend(field(i, 5, 19) << 2 | opc, 21) * (q.wide ? 4096 : 1);
            q.kind = q.d == 31 ? Kind::general : q.wide ? Kind::page_address : Kind::address;
            q.wide = true;
            break;
        case 2:
            q.value = std::int64_t{field(i, 10, 12)} << (i >> 22 & 1 ? 12 : 0);
            q.needs = 1u << q.n;
            if (opc & 1) {
                if (opc == 3) q.kind = Kind::compare_immediate;
            } else {
                if (opc & 2) q.value = -q.value;
                q.kind = Kind::add_immediate;
            }
            break;
        case 4: {
            std::uint64_t mask;
            if (opc == 3 || q.d == 31 ||
                !bit_mask(field(i, 22, 1), field(i, 10, 6), field(i, 16, 6), mask))
                break;
            q.value = static_cast<std::int64_t>(mask);
            q.needs = 1u << q.n;
            if (q.n == 31) {  // a constant by another name
                if (opc != 1) break;
                if (!q.wide) q.value = static_cast<std::uint32_t>(mask);
                q.needs = 0;
                q.kind = Kind::constant;
            } else
                q.kind = opc == 0   ? Kind::and_immediate
                         : opc == 1 ? Kind::or_immediate
                                    : Kind::xor_immediate;
            break;
        }
        case 5: {
            unsigned by = 16 * field(i, 21, 2);
            if (q.d == 31 || opc == 1 || opc == 3 || (!q.wide && by > 16)) break;
            std::uint64_t value = std::uint64_t{field(i, 5, 16)} << by;
            if (opc == 0) value = ~value;
            q.value = static_cast<std::int64_t>(q.wide ? value : static_cast<std::uint32_t>(value));
            q.kind = Kind::constant;
            break;
        }
        case 6: {
            unsigned r = field(i, 16, 6), top = field(i, 10, 6), width = q.wide ? 64 : 32;
            if (opc == 1 || opc == 3 || r >= width || top >= width || q.d == 31 || q.n == 31) break;
            if (q.wide != (i >> 22 & 1)) break;
            q.shift = static_cast<std::uint8_t>(63 - top);
            q.shift_right = static_cast<std::uint8_t>(top >= r ? 63 - top + r : 63 - top - (width - r));
            q.needs = 1u << q.n;
            q.kind = opc == 0 ? Kind::signed_field : Kind::field;
            break;
        }
        default:
            break;
    }
}

static void registers(QuickInstruction& q, std::uint32_t i) {
    unsigned opc = field(i, 29, 2);
    q.needs = 1u << q.n | 1u << q.m;
    if ((i & 0x1fe08000) == 0x0a000000) {  // and, orr, eor; shifted left at most
        q.shift = static_cast<std::uint8_t>(field(i, 10, 6));
        if (opc == 3 || q.d == 31 || q.m == 31 || (!q.wide && q.shift > 31)) return;
        if (q.n == 31) {
            if (opc != 1 || q.shift != 0) return;
            q.needs = 1u << q.m;
            q.kind = Kind::move;
        } else
            q.kind = opc == 0 ? Kind::bit_and : opc == 1 ? Kind::bit_or : Kind::bit_xor;
    } else if ((i & 0x1fe00000) == 0x0b000000) {  // add, sub
        q.shift = static_cast<std::uint8_t>(field(i, 10, 6));
        if (q.n == 31 || q.m == 31 || (!q.wide && q.shift > 31)) return;
        if (opc & 1) {
            if (opc == 3) q.kind = Kind::compare;
        } else if (q.d != 31)
            q.kind = opc & 2 ? Kind::subtract : Kind::add;
    } else if ((i & 0x7fe00800) == 0x1a800000) {  // csel, csinc
        q.shift = static_cast<std::uint8_t>(field(i, 12, 4));
        q.is_negative = i >> 10 & 1;
        q.needs &= 0x7fffffff;  // 31 reads as zero
        if (q.d != 31 && q.shift < 14) q.kind = Kind::select;
    }
}

static void branch(QuickInstruction& q, std::uint32_t i) {
    q.is_negative = i >> 24 & 1;
    if ((i & 0x7c000000) == 0x14000000) {
        q.kind = i >> 31 ? Kind::call : Kind::jump;
        q.value = 4 * signed_field(i, 0, 26);
    } else if ((i & 0xff000010) == 0x54000000 && (i & 15) < 14) {
        q.kind = Kind::jump_if;
        q.shift = i & 15;
        q.value = 4 * signed_field(i, 5, 19);
    } else if ((i & 0x7e000000) == 0x34000000 && q.d != 31) {
        q.kind = Kind::jump_zero;
        q.needs = 1u << q.d;
        q.value = 4 * signed_field(i, 5, 19);
    } else if ((i & 0x7e000000) == 0x36000000 && q.d != 31) {
        q.kind = Kind::jump_bit;
        q.needs = 1u << q.d;
        q.shift = static_cast<std::uint8_t>(i >> 31 << 5 | field(i, 19, 5));
        q.value = 4 * signed_field(i, 5, 14);
    } else if ((i & 0xff9ffc1f) == 0xd61f0000 && field(i, 21, 2) < 3 && q.n != 31) {
        q.kind = Kind::jump_register;
        q.is_negative = field(i, 21, 2) == 1;  // blr
        q.needs = 1u << q.n;
    }
}

// The general way has said what it is; here is how its address is made.
static void memory(QuickInstruction& q, std::uint32_t i) {
    A64State nothing;
    MemoryOperation op = decode_memory(i, nothing);
    bool load = op.kind == MemoryOperation::Kind::load;
    if ((!load && op.kind != MemoryOperation::Kind::store) || op.keeps_lanes) return;
    bool pair = (i & 0x3a000000) == 0x28000000, single = (i & 0x3a000000) == 0x38000000;
    if (!pair && !single) return;
    q.bytes = op.bytes;
    q.pieces = op.pieces;
    q.extend = op.extend;
    q.needs = 1u << q.n;
    if (pair) {
        unsigned mode = field(i, 23, 2), scale = static_cast<unsigned>(__builtin_ctz(op.bytes));
        q.m = static_cast<std::uint8_t>(field(i, 10, 5));
        q.value = signed_field(i, 15, 7) * (1 << scale);
        q.mode = mode == 1 ? Mode::after : mode == 3 ? Mode::before : Mode::offset;
    } else if (i >> 24 & 1)
        q.value = std::int64_t{field(i, 10, 12)} * op.bytes;
    else if (i >> 21 & 1) {
        if (field(i, 10, 2) != 2 || q.m == 31) return;
        unsigned option = field(i, 13, 3);
        q.mode = option == 2 ? Mode::unsigned_index : option == 6 ? Mode::signed_index : Mode::index;
        q.shift = static_cast<std::uint8_t>(i >> 12 & 1 ? __builtin_ctz(op.bytes) : 0);
        q.needs |= 1u << q.m;
    } else {
        unsigned mode = field(i, 10, 2);
        q.value = signed_field(i, 12, 9);
        q.mode = mode == 1 ? Mode::after : mode == 3 ? Mode::before : Mode::offset;
    }
    if (op.vector) {
        q.kind = load ? Kind::vector_load : Kind::vector_store;
        return;
    }
    if (load ? q.d == 31 || (pair && q.m == 31) : false) return;
    // The address is computed before anything is written, but a base that is also loaded is left alone.
    if (q.mode == Mode::after || q.mode == Mode::before)
        if (q.d == q.n || (pair && q.m == q.n)) return;
    q.kind = pair ? (load ? Kind::load_pair : Kind::store_pair) : load ? Kind::load : Kind::store;
}

}  // namespace quick

QuickInstruction decode_quick(std::uint32_t i) {
    QuickInstruction q;
    q.instruction = i;
    q.d = i & 31;
    q.n = static_cast<std::uint8_t>(field(i, 5, 5));
    q.m = static_cast<std::uint8_t>(field(i, 16, 5));
    q.wide = i >> 31;
    switch (field(i, 25, 4)) {
        case 8:
        case 9:
            quick::immediate(q, i);
            break;
        case 10:
        case 11:
            quick::branch(q, i);
            break;
        case 5:
        case 13:
            quick::registers(q, i);
            break;
        default:
            if (is_memory_class(i))
                quick::memory(q, i);
            else if (is_vector_class(i) && VectorUnit::stays_inside(i))
                q.kind = QuickInstruction::Kind::vector_skip;
    }
    return q;
}

}  // namespace revisit::machine
