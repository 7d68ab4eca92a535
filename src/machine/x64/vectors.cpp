#include "machine/x64/vectors.h"

#include <algorithm>

#include "machine/x64/floats.h"

namespace revisit::machine::x64 {

using Op = X64Instruction::Op;

static Value low_of(const Operand& operand) {
    return {operand.value.word[0], (operand.known & 1) != 0};
}

void Vectors::put_mask(unsigned k, Value value, unsigned bytes) {
    s_.k[k] = cut(value.bits, bytes);
    s_.k_known =
        static_cast<std::uint8_t>(value.known ? s_.k_known | 1u << k : s_.k_known & ~(1u << k));
}

// What the mask leaves out is not set.
void Vectors::put_compared(Native i, Value result) {
    if (i.mask != 0) {
        result.known &= mask_known(i.mask);
        result.bits &= s_.k[i.mask];
    }
    put_mask(i.reg, result, 8);
}

void Vectors::write(Native i, const Operand& result, unsigned bytes, unsigned reg) {
    X64Vector& to = s_.v[reg];
    std::uint8_t& known = s_.v_known[reg];
    std::uint8_t all = lanes(bytes);
    if (i.mask != 0) {
        Operand masked = result;
        if (!i.zeroes) masked.known = static_cast<std::uint8_t>(result.known & known);
        if (!mask_known(i.mask)) masked.known = 0;
        for (unsigned k = 0; k < bytes / i.element(); k++)
            if (!(s_.k[i.mask] >> k & 1))
                set_element(masked.value, i.element(), k,
                            i.zeroes ? 0 : element_of(to, i.element(), k));
        i.mask = 0;
        return write(i, masked, bytes, reg);
    }
    for (unsigned w = 0; w < bytes / 8; w++) to.word[w] = result.value.word[w];
    known = static_cast<std::uint8_t>((known & ~all) | (result.known & all));
    if (i.clears_above) {
        for (unsigned w = bytes / 8; w < 8; w++) to.word[w] = 0;
        known = static_cast<std::uint8_t>(known | (15 & ~all));
    }
}

void Vectors::forget(Native i, unsigned bytes) {
    left_out_ = true;
    write(i, {}, bytes < 16 ? 16 : bytes);
}

Operand Vectors::stored(Native i) const {
    Operand value = get_vector(i.reg);
    switch (i.op) {
        case Op::vector_store:
        case Op::vector_to_general:
            return value;
        case Op::vector_extract:
            value.value.word[0] = element_of(
                value.value, i.element(), static_cast<unsigned>(i.immediate) & (16u / i.element() - 1));
            return value;
        case Op::vector_halves: {
            unsigned words = i.from / 8u,
                     at = static_cast<unsigned>(i.immediate) & (i.bytes / i.from - 1u);
            Operand part;
            for (unsigned w = 0; w < words; w++) part.value.word[w] = value.value.word[at * words + w];
            part.known = static_cast<std::uint8_t>(value.known >> at * i.from / 16 & lanes(i.from));
            return part;
        }
        case Op::vector_narrow: {
            const unsigned count = i.bytes / i.element(), bits = 8 * i.element();
            const std::uint8_t all = lanes(count * i.from);
            Operand narrow;
            narrow.known = (value.known & all) == all ? 15 : 0;
            narrow.value = made(i.element(), i.bytes, [&](unsigned k) {
                const std::uint64_t wide = element_of(value.value, i.from, k);
                const std::int64_t number = sign_extend(wide, 8 * i.from), top = 1LL << (bits - 1);
                if (i.is(X64Narrow::signed_))
                    return static_cast<std::uint64_t>(std::clamp(number, -top, top - 1));
                return i.is(X64Narrow::unsigned_) ? std::min(wide, ones(bits)) : wide;
            });
            return narrow;
        }
        case Op::packed:  // the high half, by movhps
            value.value.word[0] = value.value.word[1];
            return value;
        case Op::kmov:
            value.value.word[0] = s_.k[i.reg];
            value.known = mask_known(i.reg);
            return value;
        default:
            return {};
    }
}

bool Vectors::touched_elements(Native i, std::uint64_t& elements) const {
    using P = X64Packed;
    elements = ~std::uint64_t{0};
    // What moves elements about reads all of them.
    const auto op = static_cast<P>(i.sub);
    const bool is_each = i.op != Op::packed || (op <= P::pblendv && (op < P::psll || op > P::psra)) ||
                         (op >= P::addps && op < P::cvtdq2ps);
    if (i.mask == 0 || i.broadcasts || !is_each) return true;
    elements = s_.k[i.mask];
    return mask_known(i.mask);
}

// Scalar floating point: the low part is computed, the rest is that of the first source.
void Vectors::floats(Native i, const Operand& operand) {
    unsigned from = i.op == Op::scalar_move ? i.bytes : i.from;
    Value b{cut(operand.value.word[0], from), (operand.known & 1) != 0};
    if (i.op == Op::integer_to_scalar && !i.has_memory) b = get(i.rm, from);
    const bool flushes = s_.flushes_floats();
    bool known = b.known && s_.has_plain_floats();
    Operand first = get_vector(i.first);
    Computed result;
    switch (i.op) {
        case Op::scalar_to_integer:
            result = to_integer(widened(b.bits, from), i.bytes);
            put(i.reg, {result.bits, known}, i.bytes);
            return;
        case Op::scalar_compare: {
            double x = widened(flush(cut(s_.v[i.reg].word[0], from), from, flushes), from),
                   y = widened(flush(b.bits, from, flushes), from);
            unsigned flags = x > y    ? 0u
                             : x < y  ? kCarry
                             : x == y ? kZero
                                      : 0u + kZero + kParity + kCarry;
            set_flags(kAllFlags, flags, known && s_.v_known[i.reg] & 1);
            return;
        }
        case Op::scalar_move:
            result = {b.bits, true};
            known = b.known;
            break;
        case Op::scalar:
            result = scalar(static_cast<X64Packed>(i.sub), cut(first.value.word[0], i.bytes), b.bits,
                            i.bytes, i.immediate & 255u, flushes);
            break;
        case Op::scalar_convert:
            result =
                flush(narrowed(widened(flush(b.bits, from, flushes), from), i.bytes), i.bytes, flushes);
            break;
        default:
            result = i.sub ? from_unsigned(b.bits, i.bytes)
                           : from_integer(sign_extend(b.bits, 8 * from), i.bytes);
    }
    first.value.word[0] = (first.value.word[0] & ~ones(8u * i.bytes)) | result.bits;
    first.known = first.known & 1 && known && result.known;
    write(i, first, 16);
}

void Vectors::masks(Native i, const Operand& b) {
    unsigned bytes = i.bytes, width = 8 * bytes;
    Value x = get_mask(i.first & 7, bytes), y = get_mask(i.rm & 7, bytes);
    switch (i.op) {
        case Op::kmov:
            if (i.is(X64MaskMove::to_general)) return put(i.reg, y, bytes < 4 ? 4 : bytes);
            if (i.is(X64MaskMove::from_general)) y = get(i.rm, bytes);
            if (i.has_memory) y = low_of(b);
            return put_mask(i.reg, y, bytes);
        case Op::kshift: {
            unsigned by = i.immediate & 255u;
            y.bits = by >= width ? 0 : i.sub ? y.bits << by : y.bits >> by;
            return put_mask(i.reg, y, bytes);
        }
        case Op::kortest: {
            x = get_mask(i.reg, bytes);
            std::uint64_t zero = i.sub ? x.bits & y.bits : x.bits | y.bits;
            bool carry = i.sub ? (~x.bits & y.bits) == 0 : zero == ones(width);
            return set_zero_and_carry(zero == 0, carry, x.known && y.known);
        }
        default: {
            using M = X64Mask;
            std::uint64_t result = i.is(M::kand)    ? x.bits & y.bits
                                   : i.is(M::kandn) ? ~x.bits & y.bits
                                   : i.is(M::knot)  ? ~y.bits
                                   : i.is(M::kor)   ? x.bits | y.bits
                                   : i.is(M::kxnor) ? ~(x.bits ^ y.bits)
                                   : i.is(M::kxor)  ? x.bits ^ y.bits
                                   : i.is(M::kadd)  ? x.bits + y.bits
                                                    : x.bits << width / 2 | cut(y.bits, bytes / 2);
            bool same = i.first == i.rm && (i.is(M::kxnor) || i.is(M::kxor));
            bool known = same || ((x.known || i.is(M::knot)) && y.known);
            put_mask(i.reg, {result, known}, bytes);
        }
    }
}

// A part of 16 or 32 bytes, out of a register or into one.
void Vectors::halves(Native i, const Operand& b) {
    if (i.sub == 0) return write(i, stored(i), i.from, i.rm);
    Operand result = get_vector(i.first);
    unsigned words = i.from / 8u, at = static_cast<unsigned>(i.immediate) & (i.bytes / i.from - 1u);
    for (unsigned w = 0; w < words; w++) result.value.word[at * words + w] = b.value.word[w];
    unsigned part = lanes(i.from), by = at * i.from / 16;
    result.known = static_cast<std::uint8_t>((result.known & ~(part << by)) | (b.known & part) << by);
    write(i, result, i.bytes);
}

void Vectors::end_gather(Native i, Operand value) {
    const Native masked = i;
    i.mask = 0;
    if (i.op == Op::gather) {
        // What is above the elements becomes zero, to the end of 16 bytes as well.
        for (unsigned k = i.bytes; k < 16; k++) set_element(value.value, 1, k, 0);
        write(i, value, i.bytes < 16 ? 16 : i.bytes);
    }
    if (!masked.sub) return put_mask(masked.mask, {0, true}, 8);
    i.clears_above = true;
    write(i, {{}, 15}, 16, i.first);
}

void Vectors::vector(Native i, const Operand& b) {
    using P = X64Packed;
    switch (i.op) {
        case Op::vector_load:
            return write(i, b, i.bytes < 16 ? 16 : i.bytes);
        case Op::vector_move: {
            Operand value = get_vector(i.to_reg ? i.rm : i.reg);
            if (i.bytes < 16) value.value.word[1] = 0;
            return write(i, value, i.bytes < 16 ? 16 : i.bytes, i.to_reg ? i.reg : i.rm);
        }
        case Op::packed: {
            auto op = static_cast<P>(i.sub);
            bool same = i.first == i.rm && !i.has_memory;
            Operand a = get_vector(i.first), old = get_vector(i.reg), result;
            if (op == P::pblendv) old = get_vector(i.from);
            if (!s_.has_plain_floats() && op >= P::addps) return forget(i, i.bytes);
            if (same && (op == P::pxor || op == P::psub || op == P::pandn || op == P::psubus ||
                         op == P::pcmpgt))
                result.known = 15;
            else if (same && op == P::pcmpeq) {
                result.known = 15;
                for (std::uint64_t& word : result.value.word) word = ~std::uint64_t{0};
            } else
                result = packed(i, a, b, old, s_.flushes_floats());
            return write(i, result, i.bytes < 16 ? 16 : i.bytes);
        }
        case Op::scalar:
        case Op::scalar_move:
        case Op::scalar_compare:
        case Op::scalar_convert:
        case Op::integer_to_scalar:
        case Op::scalar_to_integer:
            if (i.mask != 0) return forget(i, 16);
            return floats(i, b);
        case Op::general_to_vector: {
            Value value = i.has_memory ? low_of(b) : get(i.rm, i.bytes);
            Operand result;
            result.value.word[0] = cut(value.bits, i.bytes);
            result.known = value.known;
            return write(i, result, 16);
        }
        case Op::vector_to_general:
            return put(i.rm, low_of(get_vector(i.reg)), i.bytes);
        case Op::vector_insert: {
            Value value = i.has_memory ? low_of(b) : get(i.rm, i.element());
            Operand result = get_vector(i.first);
            set_element(result.value, i.element(),
                        static_cast<unsigned>(i.immediate) & (16u / i.element() - 1), value.bits);
            result.known = result.known & 1 && value.known;
            return write(i, result, 16);
        }
        case Op::vector_extract:  // the decoder has swapped them for pextrw
            return put(i.rm, low_of(stored(i)), i.bytes);
        case Op::vector_halves:
            return halves(i, b);
        case Op::vector_spread: {
            Value value = get(i.rm, i.element());
            Operand result;
            result.known = value.known ? 15 : 0;
            result.value = made(i.element(), i.bytes, [&](unsigned) { return value.bits; });
            return write(i, result, i.bytes);
        }
        case Op::vector_signs: {
            std::uint64_t signs = 0;
            for (unsigned k = 0; k < i.bytes / i.element(); k++)
                signs |= (element_of(b.value, i.element(), k) >> (8 * i.element() - 1) & 1) << k;
            return put(i.reg, {signs, (b.known & lanes(i.bytes)) == lanes(i.bytes)}, 8);
        }
        case Op::vector_compare: {
            Operand a = get_vector(i.first);
            std::uint8_t all = lanes(i.bytes);
            return put_compared(
                i, {packed_compare(i, a.value, b.value), (a.known & b.known & all) == all});
        }
        case Op::float_compare: {
            Operand a = get_vector(i.first);
            const std::uint8_t all = lanes(i.bytes);
            return put_compared(i, {float_compare(i, a.value, b.value, s_.flushes_floats()),
                                    (a.known & b.known & all) == all && s_.has_plain_floats()});
        }
        case Op::fused: {
            if (!s_.has_plain_floats() || (i.mask != 0 && i.from != 0)) return forget(i, i.bytes);
            return write(i, fused(i, get_vector(i.reg), get_vector(i.first), b, s_.flushes_floats()),
                         i.bytes);
        }
        case Op::vector_blend: {
            const Operand a = get_vector(i.first);
            Operand result;
            result.known = mask_known(i.mask) || i.mask == 0 ? a.known & b.known : 0;
            result.value = made(i.element(), i.bytes, [&](unsigned k) {
                const bool second = i.mask == 0 || s_.k[i.mask] >> k & 1;
                return second     ? element_of(b.value, i.element(), k)
                       : i.zeroes ? 0
                                  : element_of(a.value, i.element(), k);
            });
            i.mask = 0;
            return write(i, result, i.bytes);
        }
        case Op::vector_narrow:
            if (i.mask != 0) {
                i.reg = i.rm;
                return forget(i, 16);
            }
            return write(i, stored(i), i.bytes < 16 ? 16 : i.bytes, i.rm);
        case Op::ptest: {
            Operand a = get_vector(i.reg);
            std::uint8_t all = lanes(i.bytes);
            bool zero = true, carry = true;
            for (unsigned w = 0; w < i.bytes / 8; w++) {
                zero &= (a.value.word[w] & b.value.word[w]) == 0;
                carry &= (~a.value.word[w] & b.value.word[w]) == 0;
            }
            return set_zero_and_carry(zero, carry, (a.known & b.known & all) == all);
        }
        case Op::vzeroupper:
            for (unsigned v = 0; v < 16; v++) {
                for (unsigned w = i.sub ? 0 : 2; w < 8; w++) s_.v[v].word[w] = 0;
                s_.v_known[v] = static_cast<std::uint8_t>(s_.v_known[v] | (i.sub ? 15 : 14));
            }
            return;
        case Op::vector_of_mask: {
            Operand result;
            result.known = mask_known(i.rm & 7) ? 15 : 0;
            result.value = made(i.element(), i.bytes, [&](unsigned k) {
                return s_.k[i.rm & 7] >> k & 1 ? ~std::uint64_t{0} : 0;
            });
            return write(i, result, i.bytes);
        }
        case Op::kmov:
        case Op::mask_logic:
        case Op::kortest:
        case Op::kshift:
            return masks(i, b);
        case Op::vector_to_mask:
            put_mask(i.reg & 7, {0, false}, 8);
            break;
        case Op::vector_to_flags:
            set_flags(kAllFlags, 0, false);
            break;
        case Op::vector_to_opaque:
            put(i.reg, {0, false}, 8);
            if (i.sub) set_flags(kAllFlags, 0, false);
            break;
        default:
            return forget(i, i.bytes);
    }
    left_out_ = true;
}

}  // namespace revisit::machine::x64
