// Floating point of x86_64, an element at a time, by that of the machine at hand.
//
// Sums, products, roots and so on are those of IEEE 754 on every machine, bit for bit, as long as both
// round to nearest; that is asked before (X64State::has_plain_floats). Where numbers next to zero are
// taken for zero, they are before and after. Results that are no numbers differ between machines, and
// are not followed.
#pragma once

#include <cmath>

#include "machine/x64/x64.h"

namespace revisit::machine::x64 {

struct Computed {
    std::uint64_t bits = 0;
    bool known = false;
};

// As an immediate of 0 to 31 names it; what is above 15 differs in what it signals.
template <class T>
bool holds(unsigned predicate, T a, T b) {
    const bool is_unordered = a != a || b != b;
    switch (predicate & 15) {
        case 0:
            return a == b;
        case 1:
            return a < b;
        case 2:
            return a <= b;
        case 3:
            return is_unordered;
        case 4:
            return !(a == b);
        case 5:
            return !(a < b);
        case 6:
            return !(a <= b);
        case 7:
            return !is_unordered;
        case 8:
            return a == b || is_unordered;
        case 9:
            return !(a >= b);
        case 10:
            return !(a > b);
        case 11:
            return false;
        case 12:
            return !(a == b) && !is_unordered;
        case 13:
            return a >= b;
        case 14:
            return a > b;
        default:
            return true;
    }
}

template <class Float>
Float rounded(Float value, unsigned how) {
    if (how & 4) return std::nearbyint(value);
    switch (how & 3) {
        case 1:
            return std::floor(value);
        case 2:
            return std::ceil(value);
        case 3:
            return std::trunc(value);
        default:
            return std::nearbyint(value);
    }
}

template <class Float, class Bits>
Computed scalar(X64Packed operation, std::uint64_t first, std::uint64_t second, unsigned immediate) {
    auto a = __builtin_bit_cast(Float, static_cast<Bits>(first)),
         b = __builtin_bit_cast(Float, static_cast<Bits>(second)), result = b;
    switch (operation) {
        case X64Packed::addps:
            result = a + b;
            break;
        case X64Packed::mulps:
            result = a * b;
            break;
        case X64Packed::subps:
            result = a - b;
            break;
        case X64Packed::minps:
            result = a < b ? a : b;
            break;
        case X64Packed::divps:
            result = a / b;
            break;
        case X64Packed::maxps:
            result = a > b ? a : b;
            break;
        case X64Packed::sqrtps:
            if (!(b >= 0)) return {};
            result = std::sqrt(b);
            break;
        case X64Packed::roundps:
            result = rounded(b, immediate);
            break;
        case X64Packed::cmpps:
            return {holds(immediate, a, b) ? ones(8 * sizeof(Float)) : 0, true};
        default:
            return {};
    }
    return {__builtin_bit_cast(Bits, result), result == result};
}

// What is next to zero, as zero, where all such numbers are.
inline std::uint64_t flush(std::uint64_t bits, unsigned bytes, bool flushes) {
    const std::uint64_t exponent = bits >> (bytes == 8 ? 52 : 23) & (bytes == 8 ? 0x7ff : 0xff);
    return flushes && exponent == 0 ? bits & std::uint64_t{1} << (8 * bytes - 1) : bits;
}
// The least number that is not next to zero may have been rounded to from one that is.
inline Computed flush(Computed one, unsigned bytes, bool flushes) {
    const std::uint64_t least = std::uint64_t{1} << (bytes == 8 ? 52 : 23);
    if (flushes && cut(one.bits, bytes) << (64 - 8 * bytes + 1) >> (64 - 8 * bytes + 1) == least)
        return {};
    return {flush(one.bits, bytes, flushes), one.known};
}

inline Computed scalar(X64Packed operation, std::uint64_t first, std::uint64_t second, unsigned bytes,
                       unsigned immediate, bool flushes) {
    first = flush(first, bytes, flushes);
    second = flush(second, bytes, flushes);
    Computed one = bytes == 8 ? scalar<double, std::uint64_t>(operation, first, second, immediate)
                              : scalar<float, std::uint32_t>(operation, first, second, immediate);
    return operation == X64Packed::cmpps ? one : flush(one, bytes, flushes);
}

// a * b + c, rounded once; the opcode says which signs change. `odd` elements of some do the other way.
template <class Float, class Bits>
Computed fused(unsigned opcode, bool odd, std::uint64_t x, std::uint64_t y, std::uint64_t z) {
    auto a = __builtin_bit_cast(Float, static_cast<Bits>(x)),
         b = __builtin_bit_cast(Float, static_cast<Bits>(y)),
         c = __builtin_bit_cast(Float, static_cast<Bits>(z));
    const unsigned what = opcode & 15;
    const bool subtracts = what == 6   ? !odd
                           : what == 7 ? odd
                                       : what == 10 || what == 11 || what >= 14,
               negates = what >= 12;
    const Float result = std::fma(negates ? -a : a, b, subtracts ? -c : c);
    return {__builtin_bit_cast(Bits, result), result == result};
}
inline Computed fused(unsigned opcode, bool odd, std::uint64_t a, std::uint64_t b, std::uint64_t c,
                      unsigned bytes, bool flushes) {
    a = flush(a, bytes, flushes);
    b = flush(b, bytes, flushes);
    c = flush(c, bytes, flushes);
    return flush(bytes == 8 ? fused<double, std::uint64_t>(opcode, odd, a, b, c)
                            : fused<float, std::uint32_t>(opcode, odd, a, b, c),
                 bytes, flushes);
}

inline double widened(std::uint64_t bits, unsigned bytes) {
    return bytes == 8 ? __builtin_bit_cast(double, bits)
                      : double{__builtin_bit_cast(float, static_cast<std::uint32_t>(bits))};
}
inline Computed narrowed(double value, unsigned bytes) {
    if (value != value) return {};
    if (bytes == 8) return {__builtin_bit_cast(std::uint64_t, value), true};
    return {__builtin_bit_cast(std::uint32_t, static_cast<float>(value)), true};
}

inline Computed from_integer(std::int64_t value, unsigned bytes) {
    if (bytes == 8) return {__builtin_bit_cast(std::uint64_t, static_cast<double>(value)), true};
    return {__builtin_bit_cast(std::uint32_t, static_cast<float>(value)), true};
}
inline Computed from_unsigned(std::uint64_t value, unsigned bytes) {
    if (bytes == 8) return {__builtin_bit_cast(std::uint64_t, static_cast<double>(value)), true};
    return {__builtin_bit_cast(std::uint32_t, static_cast<float>(value)), true};
}
// What does not fit becomes the least number.
inline Computed to_integer(double value, unsigned bytes) {
    double limit = bytes == 8 ? 0x1p63 : 0x1p31;
    if (bytes == 4 ? value > -limit - 1 && value < limit : value >= -limit && value < limit)
        return {static_cast<std::uint64_t>(static_cast<std::int64_t>(value)), true};
    return {std::uint64_t{1} << (8 * bytes - 1), true};
}

}  // namespace revisit::machine::x64
