// Scalar floating point of x86_64, by that of the machine at hand.
//
// Sums, products and so on are those of IEEE 754 on every machine, bit for bit, as long as both round
// to nearest and flush nothing; that is asked before (X64State::plain_floats). Results that are no
// numbers differ between machines, and are not followed.
#pragma once

#include "machine/x64/x64.h"

namespace revisit::machine::x64 {

struct Computed {
    std::uint64_t bits = 0;
    bool known = false;
};

template <class Float, class Bits>
Computed scalar(X64Packed operation, std::uint64_t first, std::uint64_t second) {
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
        default:
            return {};
    }
    return {__builtin_bit_cast(Bits, result), result == result};
}
inline Computed scalar(X64Packed operation, std::uint64_t first, std::uint64_t second, unsigned bytes) {
    return bytes == 8 ? scalar<double, std::uint64_t>(operation, first, second)
                      : scalar<float, std::uint32_t>(operation, first, second);
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
// What does not fit becomes the least number.
inline Computed to_integer(double value, unsigned bytes) {
    double limit = bytes == 8 ? 0x1p63 : 0x1p31;
    if (bytes == 4 ? value > -limit - 1 && value < limit : value >= -limit && value < limit)
        return {static_cast<std::uint64_t>(static_cast<std::int64_t>(value)), true};
    return {std::uint64_t{1} << (8 * bytes - 1), true};
}

}  // namespace revisit::machine::x64
