// Element by element, or 16 bytes by 16 bytes, as nearly all of these instructions work: what one half
// of a register holds does not change the other. The few that cross are at the end.
#include "machine/x64/packed.h"

#include <string.h>

#include <type_traits>

#include "machine/x64/floats.h"

namespace revisit::machine::x64 {
namespace {

using P = X64Packed;

template <class T>
using Signed = std::make_signed_t<T>;

template <class T>
constexpr unsigned kBits = 8 * sizeof(T);

template <class T>
T saturated(std::int64_t value) {  // of at most 4 bytes
    using Limits = std::conditional_t<std::is_signed_v<T>, std::int64_t, std::uint64_t>;
    constexpr auto bits = kBits<T> - (std::is_signed_v<T> ? 1 : 0);
    constexpr auto high = static_cast<std::int64_t>((Limits{1} << bits) - 1);
    constexpr std::int64_t low = std::is_signed_v<T> ? -high - 1 : 0;
    return static_cast<T>(value < low ? low : value > high ? high : value);
}

// One element of the result from one of each operand.
template <class T>
T combined(P op, T a, T b) {
    auto as = static_cast<Signed<T>>(a), bs = static_cast<Signed<T>>(b);
    switch (op) {
        case P::add:
            return static_cast<T>(a + b);
        case P::subtract:
            return static_cast<T>(a - b);
        case P::min_signed:
            return as < bs ? a : b;
        case P::max_signed:
            return as > bs ? a : b;
        case P::min_unsigned:
            return a < b ? a : b;
        case P::max_unsigned:
            return a > b ? a : b;
        case P::equal:
            return a == b ? static_cast<T>(~T{0}) : T{0};
        case P::greater:
            return as > bs ? static_cast<T>(~T{0}) : T{0};
        case P::absolute:
            return static_cast<T>(bs < 0 ? T{0} - b : b);
        case P::shift_left_each:
            return b < kBits<T> ? static_cast<T>(a << b) : T{0};
        case P::shift_right_each:
            return b < kBits<T> ? static_cast<T>(a >> b) : T{0};
        case P::shift_signed_each:
            return static_cast<T>(as >> (b < kBits<T> ? b : kBits<T> - 1));
        default:
            break;
    }
    if constexpr (sizeof(T) <= 4) {
        std::int64_t x = as, y = bs;
        std::uint64_t ux = a, uy = b;
        switch (op) {
            case P::add_signed:
                return static_cast<T>(saturated<Signed<T>>(x + y));
            case P::subtract_signed:
                return static_cast<T>(saturated<Signed<T>>(x - y));
            case P::add_unsigned:
                return saturated<T>(static_cast<std::int64_t>(ux + uy));
            case P::subtract_unsigned:
                return ux > uy ? static_cast<T>(ux - uy) : T{0};
            case P::average:
                return static_cast<T>((ux + uy + 1) >> 1);
            case P::multiply_low:
                return static_cast<T>(ux * uy);
            case P::multiply_high_signed:
                return static_cast<T>((x * y) >> kBits<T>);
            case P::multiply_high_unsigned:
                return static_cast<T>((ux * uy) >> kBits<T>);
            default:
                break;
        }
    }
    return 0;
}

template <class T>
void each(P op, unsigned bytes, const X64Vector& a, const X64Vector& b, X64Vector& result) {
    T x[64 / sizeof(T)], y[64 / sizeof(T)], z[64 / sizeof(T)];
    memcpy(x, a.word, sizeof x);
    memcpy(y, b.word, sizeof y);
    unsigned count = bytes / static_cast<unsigned>(sizeof(T));
    // The commonest, in string functions, on their own: compilers make one instruction of these.
    if (op == P::equal)
        for (unsigned k = 0; k < count; k++) z[k] = combined(P::equal, x[k], y[k]);
    else if (op == P::min_unsigned)
        for (unsigned k = 0; k < count; k++) z[k] = combined(P::min_unsigned, x[k], y[k]);
    else
        for (unsigned k = 0; k < count; k++) z[k] = combined(op, x[k], y[k]);
    memcpy(result.word, z, bytes);
}

void each(P op, unsigned element, unsigned bytes, const X64Vector& a, const X64Vector& b,
          X64Vector& result) {
    switch (element) {
        case 1:
            return each<std::uint8_t>(op, bytes, a, b, result);
        case 2:
            return each<std::uint16_t>(op, bytes, a, b, result);
        case 4:
            return each<std::uint32_t>(op, bytes, a, b, result);
        default:
            return each<std::uint64_t>(op, bytes, a, b, result);
    }
}

std::uint64_t bits(P op, std::uint64_t a, std::uint64_t b) {
    return op == P::bits_and       ? a & b
           : op == P::bits_and_not ? ~a & b
           : op == P::bits_or      ? a | b
                                   : a ^ b;
}

// All elements by one count.
void shift(P op, unsigned element, unsigned bytes, const X64Vector& a, std::uint64_t count,
           X64Vector& result) {
    X64Vector by;
    if (count > 8 * element) count = 8 * element;
    for (unsigned k = 0; k < bytes / element; k++) set_element(by, element, k, count);
    P each_op = op == P::shift_left    ? P::shift_left_each
                : op == P::shift_right ? P::shift_right_each
                                       : P::shift_signed_each;
    each(each_op, element, bytes, a, by, result);
}

// 16 bytes: elements moved about.
void lane(const X64Instruction& i, const std::uint8_t* a, const std::uint8_t* b, std::uint8_t* result) {
    auto immediate = static_cast<unsigned>(i.immediate & 255);
    unsigned e = i.element;
    auto take = [&](unsigned to, const std::uint8_t* from, unsigned k) {
        memcpy(result + to * e, from + k * e, e);
    };
    switch (static_cast<P>(i.sub)) {
        case P::unpack_low:
        case P::unpack_high: {
            unsigned half = 8 / e, from = static_cast<P>(i.sub) == P::unpack_high ? half : 0;
            for (unsigned k = 0; k < half; k++) {
                take(2 * k, a, from + k);
                take(2 * k + 1, b, from + k);
            }
            return;
        }
        case P::pack_signed:
        case P::pack_unsigned: {  // e is that of the result
            bool is_signed = static_cast<P>(i.sub) == P::pack_signed;
            for (unsigned k = 0; k < 16 / e; k++) {
                const std::uint8_t* from = k < 8 / e ? a + 2 * e * k : b + 2 * e * (k - 8 / e);
                std::int32_t value;
                if (e == 1) {
                    std::int16_t word;
                    memcpy(&word, from, 2);
                    value = word;
                    result[k] = is_signed ? static_cast<std::uint8_t>(saturated<std::int8_t>(value))
                                          : saturated<std::uint8_t>(value);
                } else {
                    memcpy(&value, from, 4);
                    std::uint16_t packed =
                        is_signed ? static_cast<std::uint16_t>(saturated<std::int16_t>(value))
                                  : saturated<std::uint16_t>(value);
                    memcpy(result + 2 * k, &packed, 2);
                }
            }
            return;
        }
        case P::shuffle_bytes:
            for (unsigned k = 0; k < 16; k++) result[k] = b[k] & 0x80 ? 0 : a[b[k] & 15];
            return;
        case P::shuffle_words:
            for (unsigned k = 0; k < 4; k++) take(k, b, immediate >> 2 * k & 3);
            return;
        case P::shuffle_low:
        case P::shuffle_high: {
            unsigned from = static_cast<P>(i.sub) == P::shuffle_high ? 4 : 0;
            memcpy(result, b, 16);
            for (unsigned k = 0; k < 4; k++) take(from + k, b, from + (immediate >> 2 * k & 3));
            return;
        }
        case P::shuffle_two:  // of doubles: see packed
            for (unsigned k = 0; k < 4; k++) take(k, k < 2 ? a : b, immediate >> 2 * k & 3);
            return;
        case P::align: {
            std::uint8_t both[48] = {};
            memcpy(both, b, 16);
            memcpy(both + 16, a, 16);
            if (immediate < 32)
                memcpy(result, both + immediate, 16);
            else
                memset(result, 0, 16);
            return;
        }
        case P::bytes_left:
        case P::bytes_right: {
            bool left = static_cast<P>(i.sub) == P::bytes_left;
            std::uint8_t both[48] = {};
            unsigned by = immediate < 16 ? immediate : 16;
            memcpy(both + 16, b, 16);
            memcpy(result, left ? both + 16 - by : both + 16 + by, 16);
            return;
        }
        case P::double_low:
            take(0, b, 0);
            take(1, b, 0);
            return;
        case P::double_even:
        case P::double_odd: {
            unsigned odd = static_cast<P>(i.sub) == P::double_odd;
            for (unsigned k = 0; k < 4; k++) take(k, b, (k & 2) + odd);
            return;
        }
        case P::multiply_add:
            for (unsigned k = 0; k < 4; k++) {
                std::int16_t x[2], y[2];
                memcpy(x, a + 4 * k, 4);
                memcpy(y, b + 4 * k, 4);
                auto sum =
                    static_cast<std::uint32_t>(x[0] * y[0]) + static_cast<std::uint32_t>(x[1] * y[1]);
                memcpy(result + 4 * k, &sum, 4);
            }
            return;
        case P::sum_differences:
            for (unsigned half = 0; half < 16; half += 8) {
                std::uint64_t sum = 0;
                for (unsigned k = half; k < half + 8; k++)
                    sum += static_cast<unsigned>(a[k] > b[k] ? a[k] - b[k] : b[k] - a[k]);
                memcpy(result + half, &sum, 8);
            }
            return;
        default:
            return;
    }
}

bool float_holds(unsigned predicate, double a, double b) {
    bool unordered = a != a || b != b, result = false;
    switch (predicate & 3) {
        case 0:
            result = a == b;
            break;
        case 1:
            result = a < b;
            break;
        case 2:
            result = a <= b;
            break;
        default:
            result = unordered;
    }
    return predicate & 4 ? !result : result;
}

// Sums and so on, in lanes that are known: an element that is no number makes its lane unknown.
void floats(const X64Instruction& i, const X64Vector& a, const X64Vector& b, Operand& result) {
    auto op = static_cast<P>(i.sub);
    for (unsigned k = 0; k < i.bytes / i.element; k++) {
        std::uint64_t x = element_of(a, i.element, k), y = element_of(b, i.element, k);
        Computed one;
        if (op == P::float_compare)
            one = {float_holds(static_cast<unsigned>(i.immediate), widened(x, i.element),
                               widened(y, i.element))
                       ? ~std::uint64_t{0}
                       : 0,
                   true};
        else if (op == P::from_integer)
            one = from_integer(sign_extend(y, 32), i.element);
        else
            one = scalar(op, x, y, i.element);
        set_element(result.value, i.element, k, one.bits);
        if (!one.known)
            result.known = static_cast<std::uint8_t>(result.known & ~(1u << k * i.element / 16));
    }
}

// Those that take elements from other lanes: all of them must be known.
Operand crossing(const X64Instruction& i, const Operand& a, const Operand& b, const Operand& old) {
    Operand result;
    auto immediate = static_cast<unsigned>(i.immediate & 255);
    unsigned e = i.element, count = i.bytes / e;
    auto all = lanes(i.bytes);
    result.known = (b.known & all) == all ? all : 0;
    switch (static_cast<P>(i.sub)) {
        case P::spread:
            result.known = b.known & 1 ? all : 0;
            for (unsigned k = 0; k < count; k++)
                for (unsigned w = 0; w < (e > 8 ? e / 8 : 1); w++)
                    if (e > 8)
                        result.value.word[k * e / 8 + w] = b.value.word[w];
                    else
                        set_element(result.value, e, k, element_of(b.value, e, 0));
            return result;
        case P::widen_zero:
        case P::widen_signed:
            result.known = (b.known & lanes(count * i.from)) == lanes(count * i.from) ? all : 0;
            for (unsigned k = 0; k < count; k++) {
                std::uint64_t value = element_of(b.value, i.from, k);
                if (static_cast<P>(i.sub) == P::widen_signed)
                    value = static_cast<std::uint64_t>(sign_extend(value, 8 * i.from));
                set_element(result.value, e, k, value);
            }
            return result;
        case P::permute_words:  // of 8 bytes, in every 32
            for (unsigned k = 0; k < count; k++)
                result.value.word[k] = b.value.word[(k & ~3u) | (immediate >> 2 * (k & 3) & 3)];
            return result;
        case P::permute_halves: {
            result.known = 0;
            for (unsigned half = 0; half < 2; half++) {
                unsigned from = immediate >> 4 * half & 15;
                const Operand& source = from & 2 ? b : a;
                if (from & 8 || source.known >> (from & 1) & 1)
                    result.known = static_cast<std::uint8_t>(result.known | 1u << half);
                for (unsigned w = 0; w < 2 && !(from & 8); w++)
                    result.value.word[2 * half + w] = source.value.word[2 * (from & 1) + w];
            }
            return result;
        }
        case P::permute_by:
            if ((a.known & all) != all) result.known = 0;
            for (unsigned k = 0; k < count; k++)
                set_element(result.value, e, k,
                            element_of(b.value, e,
                                       static_cast<unsigned>(element_of(a.value, e, k)) & (count - 1)));
            return result;
        case P::low_half:
        case P::to_high_half:
        case P::high_to_low_half: {
            auto op = static_cast<P>(i.sub);
            result.value = a.value;
            result.known = a.known & b.known & 1;
            result.value.word[op == P::to_high_half] = b.value.word[op == P::high_to_low_half];
            return result;
        }
        default:  // ternary
            result.known = static_cast<std::uint8_t>(a.known & b.known & old.known & all);
            for (unsigned w = 0; w < 8; w++) {
                std::uint64_t bits = 0;
                for (unsigned k = 0; k < 8; k++) {
                    if (!(immediate >> k & 1)) continue;
                    std::uint64_t x = old.value.word[w], y = a.value.word[w], z = b.value.word[w];
                    bits |= (k & 4 ? x : ~x) & (k & 2 ? y : ~y) & (k & 1 ? z : ~z);
                }
                result.value.word[w] = bits;
            }
            if (immediate == 0 || immediate == 255) result.known = all;
            return result;
    }
}

}  // namespace

Operand packed(const X64Instruction& i, const Operand& a, const Operand& b, const Operand& old) {
    auto op = static_cast<P>(i.sub);
    Operand result;
    auto immediate = static_cast<unsigned>(i.immediate & 255);
    if (op >= P::float_add) {
        if (op == P::from_integer && i.element == 8) {  // each takes twice the room
            Operand wide;
            wide.known = b.known & lanes(i.bytes / 2) ? lanes(i.bytes) : 0;
            for (unsigned k = 0; k < i.bytes / 8; k++)
                set_element(wide.value, 8, k, element_of(b.value, 4, k));
            result.known = wide.known;
            floats(i, a.value, wide.value, result);
            return result;
        }
        result.known = static_cast<std::uint8_t>((op == P::from_integer ? b.known : a.known & b.known) &
                                                 lanes(i.bytes));
        floats(i, a.value, b.value, result);
        return result;
    }
    if (op == P::spread || op == P::widen_zero || op == P::widen_signed ||
        (op >= P::low_half && op <= P::high_to_low_half) || op >= P::permute_words)
        return crossing(i, a, b, old);
    bool unary = op == P::absolute || op == P::shuffle_words || op == P::shuffle_low ||
                 op == P::shuffle_high || op == P::bytes_left || op == P::bytes_right ||
                 (op >= P::double_low && op <= P::double_odd);
    result.known = static_cast<std::uint8_t>((unary ? b.known : a.known & b.known) & lanes(i.bytes));
    switch (op) {
        case P::bits_and:
        case P::bits_and_not:
        case P::bits_or:
        case P::bits_xor:
            for (unsigned w = 0; w < i.bytes / 8; w++)
                result.value.word[w] = bits(op, a.value.word[w], b.value.word[w]);
            break;
        case P::shift_left:
        case P::shift_right:
        case P::shift_signed: {  // by an immediate a is shifted: the decoder has put it into first
            std::uint64_t count = i.has_immediate ? immediate : b.value.word[0];
            result.known = static_cast<std::uint8_t>(a.known & lanes(i.bytes));
            if (!i.has_immediate && !(b.known & 1)) result.known = 0;
            shift(op, i.element, i.bytes, a.value, count, result.value);
            break;
        }
        case P::multiply_even_signed:
        case P::multiply_even_unsigned:
            for (unsigned w = 0; w < i.bytes / 8; w++) {
                std::uint64_t x = a.value.word[w], y = b.value.word[w];
                result.value.word[w] =
                    op == P::multiply_even_unsigned
                        ? (x & 0xffffffff) * (y & 0xffffffff)
                        : static_cast<std::uint64_t>(sign_extend(x, 32) * sign_extend(y, 32));
            }
            break;
        case P::blend:
            for (unsigned k = 0; k < i.bytes / i.element; k++)
                set_element(result.value, i.element, k,
                            element_of(immediate >> (k & 7) & 1 ? b.value : a.value, i.element, k));
            break;
        case P::blend_by_sign:  // the third operand is in `old`
            result.known = static_cast<std::uint8_t>(result.known & old.known);
            for (unsigned k = 0; k < i.bytes / i.element; k++) {
                bool second = element_of(old.value, i.element, k) >> (8 * i.element - 1) & 1;
                set_element(result.value, i.element, k,
                            element_of(second ? b.value : a.value, i.element, k));
            }
            break;
        case P::shuffle_two:
            if (i.element == 8) {
                for (unsigned w = 0; w < i.bytes / 8; w++)
                    result.value.word[w] =
                        (w & 1 ? b : a).value.word[(w & ~1u) + (immediate >> (w & 7) & 1)];
                break;
            }
            [[fallthrough]];
        case P::unpack_low:
        case P::unpack_high:
        case P::pack_signed:
        case P::pack_unsigned:
        case P::shuffle_bytes:
        case P::shuffle_words:
        case P::shuffle_low:
        case P::shuffle_high:
        case P::align:
        case P::bytes_left:
        case P::bytes_right:
        case P::double_low:
        case P::double_even:
        case P::double_odd:
        case P::multiply_add:
        case P::sum_differences: {
            std::uint8_t x[64], y[64], z[64];
            memcpy(x, a.value.word, 64);
            memcpy(y, b.value.word, 64);
            for (unsigned at = 0; at < i.bytes; at += 16) lane(i, x + at, y + at, z + at);
            memcpy(result.value.word, z, i.bytes);
            break;
        }
        default:
            each(op, i.element, i.bytes, a.value, b.value, result.value);
    }
    return result;
}

std::uint64_t packed_compare(const X64Instruction& i, const X64Vector& a, const X64Vector& b) {
    std::uint64_t mask = 0;
    for (unsigned k = 0; k < i.bytes / i.element; k++) {
        std::uint64_t x = element_of(a, i.element, k), y = element_of(b, i.element, k);
        bool holds = false;
        if (i.has_immediate) {
            std::uint64_t sign =
                i.sub ? std::uint64_t{1} << (8 * i.element - 1) : 0;  // by which it counts
            x ^= sign;
            y ^= sign;
            switch (i.immediate & 3) {
                case 0:
                    holds = x == y;
                    break;
                case 1:
                    holds = x < y;
                    break;
                case 2:
                    holds = x <= y;
                    break;
                default:
                    break;
            }
            if (i.immediate & 4) holds = !holds;
        } else
            switch (static_cast<P>(i.sub)) {
                case P::equal:
                    holds = x == y;
                    break;
                case P::greater:
                    holds = sign_extend(x, 8 * i.element) > sign_extend(y, 8 * i.element);
                    break;
                case P::test:
                    holds = (x & y) != 0;
                    break;
                default:
                    holds = (x & y) == 0;
            }
        mask |= std::uint64_t{holds} << k;
    }
    return mask;
}

}  // namespace revisit::machine::x64
