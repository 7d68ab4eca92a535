// What micro-operations compute, from bits to bits: the one place that says so. See micro.h.
#pragma once

#include <bit>

#include "machine/micro.h"

namespace revisit::machine {

constexpr std::uint64_t ones(unsigned bits) {
    return bits >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << bits) - 1;
}
constexpr std::int64_t sign_extend(std::uint64_t value, unsigned bits) {
    return static_cast<std::int64_t>(value << (64 - bits)) >> (64 - bits);
}
// The low bytes.
constexpr std::uint64_t cut(std::uint64_t value, unsigned bytes) {
    unsigned drop = 64 - 8 * bytes;
    return value << drop >> drop;
}

constexpr std::uint8_t result_flags(std::uint64_t result, unsigned bytes) {
    // std::popcount is a call where the processor is not known to have it.
    bool is_even = ~0x6996u >> ((result ^ result >> 4) & 15) & 1;
    return static_cast<std::uint8_t>((result == 0 ? kZero : 0) | (is_even ? kParity : 0) |
                                     (result >> (8 * bytes - 1) & 1 ? kSign : 0));
}

struct Sum {
    std::uint64_t result;
    std::uint8_t flags;
};
// a + b + carry, of so many bytes; both are cut.
constexpr Sum sum_of(std::uint64_t a, std::uint64_t b, unsigned carry, unsigned bytes) {
    std::uint64_t partial = a + b, whole = partial + carry, result = cut(whole, bytes);
    bool carries = bytes == 8 ? partial < a || whole < partial : whole >> 8 * bytes != 0;
    bool overflows = (~(a ^ b) & (a ^ result)) >> (8 * bytes - 1) & 1;
    return {result, static_cast<std::uint8_t>(result_flags(result, bytes) | (carries ? kCarry : 0) |
                                              (overflows ? kOverflow : 0))};
}
// The carry of a subtraction is set where it does not borrow on aarch64, where it does on x86_64.
template <class Arch>
constexpr Sum difference_of(std::uint64_t a, std::uint64_t b, unsigned borrow, unsigned bytes) {
    Sum sum = sum_of(a, cut(~b, bytes), 1 - borrow, bytes);
    if constexpr (Arch::kCarryIsBorrow) sum.flags ^= kCarry;
    return sum;
}

// Those of a shift by `count`, which is not 0; the carry is the last bit shifted out.
constexpr std::uint8_t shift_flags(Micro::Op op, std::uint64_t a, unsigned count, std::uint64_t result,
                                   unsigned bytes) {
    unsigned width = 8 * bytes;
    bool is_left = op == Micro::Op::shift_left;
    bool carry = a >> (is_left ? width - count : count - 1) & 1, top = result >> (width - 1) & 1;
    bool overflow = is_left ? top != carry : op == Micro::Op::shift_right && a >> (width - 1) & 1;
    return static_cast<std::uint8_t>(result_flags(result, bytes) | (carry ? kCarry : 0) |
                                     (overflow ? kOverflow : 0));
}
// Whether the product is more than its low half, with a sign.
constexpr std::uint8_t product_flags(std::uint64_t a, std::uint64_t b, unsigned bytes) {
    __int128 product = static_cast<__int128>(sign_extend(a, 8 * bytes)) * sign_extend(b, 8 * bytes);
    bool fits = product == sign_extend(static_cast<std::uint64_t>(product), 8 * bytes);
    return fits ? 0 : kCarry | kOverflow;
}

// The flags that an operation with this result sets; a shift by nothing sets none.
template <class Arch>
constexpr std::uint8_t flags_of(Micro::Op op, std::uint64_t a, std::uint64_t b, std::uint64_t result,
                                unsigned bytes) {
    if (op == Micro::Op::subtract) return difference_of<Arch>(a, b, 0, bytes).flags;
    if (op == Micro::Op::add) return sum_of(a, b, 0, bytes).flags;
    if (op == Micro::Op::multiply) return product_flags(a, b, bytes);
    if (is_shift(op)) return shift_flags(op, a, b & (8 * bytes - 1), result, bytes);
    return result_flags(result, bytes);
}

constexpr std::uint64_t reverse_bits(std::uint64_t a) {
    std::uint64_t out = 0;
    for (unsigned k = 0; k < 64; k++) out |= (a >> k & 1) << (63 - k);
    return out;
}

// d of a value, without flags; a and b are cut to `bytes` already. Those that depend on flags are
// ahead.h's.
constexpr std::uint64_t compute(Micro::Op op, std::uint64_t a, std::uint64_t b, unsigned bytes) {
    using Op = Micro::Op;
    unsigned width = 8 * bytes;
    switch (op) {
        case Op::add:
            return a + b;
        case Op::subtract:
            return a - b;
        case Op::bit_and:
            return a & b;
        case Op::bit_or:
            return a | b;
        case Op::bit_xor:
            return a ^ b;
        case Op::and_not:
            return a & ~b;
        case Op::or_not:
            return a | ~b;
        case Op::xor_not:
            return a ^ ~b;
        case Op::multiply:
            return a * b;
        case Op::multiply_high:
            return static_cast<std::uint64_t>(static_cast<unsigned __int128>(a) * b >> 64);
        case Op::multiply_high_signed:
            return static_cast<std::uint64_t>(static_cast<__int128>(static_cast<std::int64_t>(a)) *
                                                  static_cast<std::int64_t>(b) >>
                                              64);
        case Op::divide:
            return b ? a / b : 0;
        case Op::divide_signed: {
            std::int64_t n = sign_extend(a, width), d = sign_extend(b, width);
            return d == 0 ? 0 : d == -1 ? 0 - a : static_cast<std::uint64_t>(n / d);
        }
        case Op::shift_left:
            return a << (b & (width - 1));
        case Op::shift_right:
            return a >> (b & (width - 1));
        case Op::shift_signed:
            return static_cast<std::uint64_t>(sign_extend(a, width) >> (b & (width - 1)));
        case Op::rotate_right:
            b &= width - 1;
            return b ? a >> b | a << (width - b) : a;
        case Op::field:
            return a << (b & 63) >> (b >> 8);
        case Op::signed_field:
            return static_cast<std::uint64_t>(static_cast<std::int64_t>(a << (b & 63)) >> (b >> 8));
        case Op::leading_signs:  // those equal to the sign, itself not counted
            a = sign_extend(a, width) < 0 ? cut(~a, bytes) : a;
            return (a ? static_cast<unsigned>(std::countl_zero(a)) - (64 - width) : width) - 1;
        case Op::leading_zeros:
            return a ? static_cast<unsigned>(std::countl_zero(a)) - (64 - width) : width;
        case Op::reverse_bits:
            return reverse_bits(a) >> (64 - width);
        case Op::reverse_bytes: {
            std::uint64_t out = 0;
            for (unsigned k = 0; k < 8; k++)
                out |= (a >> 8 * k & 0xff) << 8 * (k / b * b + b - 1 - k % b);
            return out;
        }
        case Op::min:
            return a < b ? a : b;
        case Op::max:
            return a < b ? b : a;
        case Op::min_signed:
            return sign_extend(a, width) < sign_extend(b, width) ? a : b;
        case Op::max_signed:
            return sign_extend(a, width) < sign_extend(b, width) ? b : a;
        case Op::equal:
            return a == b;
        default:
            return 0;
    }
}

}  // namespace revisit::machine
