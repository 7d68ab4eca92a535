// Element by element, or 16 bytes by 16 bytes, as nearly all of these instructions work: what one half
// of a register holds does not change the other. The few that cross are at the end.
#include "machine/x64/packed.h"

#include <string.h>

#include "machine/x64/floats.h"

namespace revisit::machine::x64 {
namespace {

using P = X64Packed;

std::uint64_t saturated(std::int64_t value, unsigned bits, bool is_signed) {
    auto high = static_cast<std::int64_t>(ones(is_signed ? bits - 1 : bits));
    std::int64_t low = is_signed ? -high - 1 : 0;
    return static_cast<std::uint64_t>(value < low ? low : value > high ? high : value);
}

// One element of the result from one of each operand; what is above its bits is dropped.
[[gnu::always_inline]] inline std::uint64_t combined(P op, std::uint64_t a, std::uint64_t b,
                                                     unsigned bits) {
    std::int64_t as = sign_extend(a, bits), bs = sign_extend(b, bits);
    auto all_if = [](bool is) { return is ? ~std::uint64_t{0} : 0; };
    switch (op) {
        case P::padd:
            return a + b;
        case P::psub:
            return a - b;
        case P::pmins:
            return as < bs ? a : b;
        case P::pmaxs:
            return as > bs ? a : b;
        case P::pminu:
            return a < b ? a : b;
        case P::pmaxu:
            return a > b ? a : b;
        case P::pcmpeq:
            return all_if(a == b);
        case P::pcmpgt:
            return all_if(as > bs);
        case P::vptestm:
            return all_if(a & b);
        case P::vptestnm:
            return all_if(!(a & b));
        case P::pabs:
            return bs < 0 ? 0 - b : b;
        case P::psll:
        case P::vpsllv:
            return b < bits ? a << b : 0;
        case P::psrl:
        case P::vpsrlv:
            return b < bits ? a >> b : 0;
        case P::psra:
        case P::vpsrav:
            return static_cast<std::uint64_t>(as >> (b < bits ? b : bits - 1));
        case P::padds:
            return saturated(as + bs, bits, true);
        case P::psubs:
            return saturated(as - bs, bits, true);
        case P::paddus:
            return saturated(static_cast<std::int64_t>(a + b), bits, false);
        case P::psubus:
            return a > b ? a - b : 0;
        case P::pavg:
            return (a + b + 1) >> 1;
        case P::pmull:
            return a * b;
        case P::pmulh:
            return static_cast<std::uint64_t>((as * bs) >> bits);
        case P::pmulhu:
            return (a * b) >> bits;
        case P::pmuldq:
            return static_cast<std::uint64_t>(sign_extend(a, 32) * sign_extend(b, 32));
        case P::pmuludq:
            return cut(a, 4) * cut(b, 4);
        default:
            return 0;
    }
}

template <class T>
void each(P op, unsigned bytes, const X64Vector& a, const X64Vector& b, X64Vector& result) {
    T x[64 / sizeof(T)], y[64 / sizeof(T)], z[64 / sizeof(T)];
    memcpy(x, a.word, sizeof x);
    memcpy(y, b.word, sizeof y);
    auto all = [&](P one) {
        for (unsigned k = 0; k < bytes / sizeof(T); k++)
            z[k] = static_cast<T>(combined(one, x[k], y[k], 8 * sizeof(T)));
    };
    // The commonest, in string functions, on their own: compilers make one instruction of these.
    if (op == P::pcmpeq)
        all(P::pcmpeq);
    else if (op == P::pminu)
        all(P::pminu);
    else
        all(op);
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
    return op == P::pand ? a & b : op == P::pandn ? ~a & b : op == P::por ? a | b : a ^ b;
}

// 16 bytes: elements moved about.
void lane(Native i, const std::uint8_t* a, const std::uint8_t* b, std::uint8_t* result) {
    unsigned e = i.element(), immediate = i.immediate & 255u;
    auto op = static_cast<P>(i.sub);
    auto take = [&](unsigned to, const std::uint8_t* from, unsigned k) {
        memcpy(result + to * e, from + k * e, e);
    };
    switch (op) {
        case P::punpckl:
        case P::punpckh: {
            unsigned half = 8 / e, from = op == P::punpckh ? half : 0;
            for (unsigned k = 0; k < half; k++) {
                take(2 * k, a, from + k);
                take(2 * k + 1, b, from + k);
            }
            return;
        }
        case P::packss:
        case P::packus:  // e is that of the result
            for (unsigned k = 0; k < 16 / e; k++) {
                std::uint64_t value = 0;
                memcpy(&value, k < 8 / e ? a + 2 * e * k : b + 2 * e * (k - 8 / e), 2 * e);
                value = saturated(sign_extend(value, 16 * e), 8 * e, op == P::packss);
                memcpy(result + e * k, &value, e);
            }
            return;
        case P::pshufb:
            for (unsigned k = 0; k < 16; k++) result[k] = b[k] & 0x80 ? 0 : a[b[k] & 15];
            return;
        case P::pshufd:
            for (unsigned k = 0; k < 4; k++) take(k, b, immediate >> 2 * k & 3);
            return;
        case P::pshuflw:
        case P::pshufhw: {
            unsigned from = op == P::pshufhw ? 4 : 0;
            memcpy(result, b, 16);
            for (unsigned k = 0; k < 4; k++) take(from + k, b, from + (immediate >> 2 * k & 3));
            return;
        }
        case P::palignr:
        case P::pslldq:
        case P::psrldq: {  // 16 of the bytes of two operands, from one on
            std::uint8_t both[64] = {};
            unsigned by = immediate < 32 ? immediate : 32;
            if (op == P::palignr)
                memcpy(both, b, 16);
            else
                by = op == P::pslldq ? 16 - (by < 16 ? by : 16) : 16 + (by < 16 ? by : 16);
            memcpy(both + 16, op == P::palignr ? a : b, 16);
            memcpy(result, both + by, 16);
            return;
        }
        case P::movddup:
            take(0, b, 0);
            take(1, b, 0);
            return;
        case P::movsldup:
        case P::movshdup:
            for (unsigned k = 0; k < 4; k++) take(k, b, (k & 2) + (op == P::movshdup));
            return;
        case P::pmaddwd:
            for (unsigned k = 0; k < 4; k++) {
                std::int16_t x[2], y[2];
                memcpy(x, a + 4 * k, 4);
                memcpy(y, b + 4 * k, 4);
                auto sum =
                    static_cast<std::uint32_t>(x[0] * y[0]) + static_cast<std::uint32_t>(x[1] * y[1]);
                memcpy(result + 4 * k, &sum, 4);
            }
            return;
        case P::psadbw:
            for (unsigned half = 0; half < 16; half += 8) {
                std::uint64_t sum = 0;
                for (unsigned k = half; k < half + 8; k++)
                    sum += static_cast<unsigned>(a[k] > b[k] ? a[k] - b[k] : b[k] - a[k]);
                memcpy(result + half, &sum, 8);
            }
            return;
        default:  // shuffle_two; of 8 bytes: see packed
            for (unsigned k = 0; k < 4; k++) take(k, k < 2 ? a : b, immediate >> 2 * k & 3);
    }
}

// Elements of a result, each in a lane that is known if all that it is of are.
template <class Of>
Operand each_float(unsigned element, unsigned bytes, std::uint8_t known, Of of) {
    Operand result;
    result.known = known & lanes(bytes);
    result.value = made(element, bytes, [&](unsigned k) {
        const Computed one = of(k);
        if (!one.known)
            result.known = static_cast<std::uint8_t>(result.known & ~(1u << k * element / 16));
        return one.bits;
    });
    return result;
}

// Elements of one size from those of another: where these are not as wide, all must be known.
Operand converted(Native i, const Operand& b, bool flushes) {
    using enum X64Packed;
    auto op = static_cast<P>(i.sub);
    const unsigned e = i.element(), count = i.bytes / e;
    const bool is_wide = op == cvtpd2ps || op == cvttpd2dq || op == cvtqq2pd || op == cvtuqq2pd;
    const unsigned from = is_wide ? 8 : 4;
    const std::uint8_t all = lanes(count * from);
    const auto known = static_cast<std::uint8_t>(from == e ? b.known : (b.known & all) == all ? 15 : 0);
    return each_float(e, i.bytes, known, [&](unsigned k) -> Computed {
        const std::uint64_t y = element_of(b.value, from, k);
        if (op == cvtdq2ps || op == cvtqq2pd) return from_integer(sign_extend(y, 8 * from), e);
        if (op == cvtudq2pd || op == cvtuqq2pd) return from_unsigned(y, e);
        const double value = widened(flush(y, from, flushes), from);
        if (op == cvtps2pd || op == cvtpd2ps) return flush(narrowed(value, e), e, flushes);
        return to_integer(op == cvtps2dq ? rounded(value, 0) : value, e);
    });
}

// Sums and so on.
Operand floats(Native i, const Operand& a, const Operand& b, bool flushes) {
    auto op = static_cast<P>(i.sub);
    if (op >= P::cvtdq2ps) return converted(i, b, flushes);
    const unsigned e = i.element();
    const bool is_unary = op == P::sqrtps || op == P::roundps;
    const auto known = static_cast<std::uint8_t>(is_unary ? b.known : a.known & b.known);
    return each_float(e, i.bytes, known, [&](unsigned k) {
        return scalar(op, element_of(a.value, e, k), element_of(b.value, e, k), e, i.immediate & 255u,
                      flushes);
    });
}

// Those that take elements from other lanes: all of them must be known.
Operand crossing(Native i, const Operand& a, const Operand& b, const Operand& old) {
    Operand result;
    auto op = static_cast<P>(i.sub);
    unsigned e = i.element(), count = i.bytes / e, immediate = i.immediate & 255u;
    auto all = lanes(i.bytes);
    result.known = (b.known & all) == all ? all : 0;
    switch (op) {
        case P::vpbroadcast:
            result.known = b.known & 1 ? all : 0;
            result.value = made(e < 8 ? e : 8, i.bytes, [&](unsigned k) {
                return e > 8 ? b.value.word[k & 1] : element_of(b.value, e, 0);
            });
            return result;
        case P::pmovzx:
        case P::pmovsx:
            result.known = (b.known & lanes(count * i.from)) == lanes(count * i.from) ? all : 0;
            result.value = made(e, i.bytes, [&](unsigned k) {
                std::uint64_t value = element_of(b.value, i.from, k);
                return op == P::pmovzx ? value
                                       : static_cast<std::uint64_t>(sign_extend(value, 8u * i.from));
            });
            return result;
        case P::vpermq:  // of 8 bytes, in every 32
            for (unsigned k = 0; k < count; k++)
                result.value.word[k] = b.value.word[(k & ~3u) | (immediate >> 2 * (k & 3) & 3)];
            return result;
        case P::vperm2i128: {
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
        case P::vpermd:
            if ((a.known & all) != all) result.known = 0;
            result.value = made(e, i.bytes, [&](unsigned k) {
                auto from = static_cast<unsigned>(element_of(a.value, e, k)) & (count - 1);
                return element_of(b.value, e, from);
            });
            return result;
        case P::vpermi2:
        case P::vpermt2: {  // out of two vectors
            const Operand &first = op == P::vpermi2 ? a : old, &indices = op == P::vpermi2 ? old : a;
            if ((a.known & old.known & all) != all) result.known = 0;
            result.value = made(e, i.bytes, [&](unsigned k) {
                auto from = static_cast<unsigned>(element_of(indices.value, e, k)) & (2 * count - 1);
                return element_of((from < count ? first : b).value, e, from & (count - 1));
            });
            return result;
        }
        case P::valign:
            if ((a.known & all) != all) result.known = 0;
            result.value = made(e, i.bytes, [&](unsigned k) {
                const unsigned from = k + (immediate & (count - 1));
                return element_of((from < count ? b : a).value, e, from & (count - 1));
            });
            return result;
        case P::vpermil:
            if ((a.known & all) != all) result.known = 0;
            result.value = made(e, i.bytes, [&](unsigned k) {
                auto by = static_cast<unsigned>(element_of(b.value, e, k));
                const unsigned lane = 16 / e - 1;
                return element_of(a.value, e, (k & ~lane) | (e == 8 ? by >> 1 & 1 : by & 3));
            });
            return result;
        case P::vpermilpd:
            result.value = made(e, i.bytes, [&](unsigned k) {
                return element_of(b.value, e, (k & ~1u) | (immediate >> k & 1));
            });
            return result;
        case P::vshuff32x4:  // 16 bytes at a time, the lower half of the first
            if ((a.known & all) != all) result.known = 0;
            for (unsigned k = 0, n = i.bytes / 16u; k < n; k++)
                for (unsigned w = 0; w < 2; w++)
                    result.value.word[2 * k + w] =
                        (k < n / 2 ? a : b).value.word[2 * (immediate >> (n / 2) * k & (n - 1)) + w];
            return result;
        case P::insertps: {
            result.value = a.value;
            result.known = a.known & b.known & 1;
            set_element(result.value, 4, immediate >> 4 & 3,
                        element_of(b.value, 4, i.has_memory ? 0 : immediate >> 6 & 3));
            for (unsigned k = 0; k < 4; k++)
                if (immediate >> k & 1) set_element(result.value, 4, k, 0);
            return result;
        }
        case P::movlps:
        case P::movhps:
        case P::movhlps:
            result.value = a.value;
            result.known = a.known & b.known & 1;
            result.value.word[op == P::movhps] = b.value.word[op == P::movhlps];
            return result;
        default:  // ternary
            result.known = static_cast<std::uint8_t>(a.known & b.known & old.known & all);
            for (unsigned w = 0; w < 8; w++) {
                std::uint64_t x = old.value.word[w], y = a.value.word[w], z = b.value.word[w];
                for (unsigned k = 0; k < 8; k++)
                    if (immediate >> k & 1)
                        result.value.word[w] |= (k & 4 ? x : ~x) & (k & 2 ? y : ~y) & (k & 1 ? z : ~z);
            }
            if (immediate == 0 || immediate == 255) result.known = all;
            return result;
    }
}

}  // namespace

Operand packed(Native i, const Operand& a, const Operand& b, const Operand& old, bool flushes) {
    auto op = static_cast<P>(i.sub);
    unsigned e = i.element(), immediate = i.immediate & 255u;
    if (op >= P::addps) return floats(i, a, b, flushes);
    if (op >= P::vpbroadcast) return crossing(i, a, b, old);
    bool unary = op == P::pabs || (op >= P::pshufd && op <= P::movshdup);
    Operand result;
    result.known = static_cast<std::uint8_t>((unary ? b.known : a.known & b.known) & lanes(i.bytes));
    auto chosen = [&](auto is_second) {
        result.value = made(e, i.bytes,
                            [&](unsigned k) { return element_of((is_second(k) ? b : a).value, e, k); });
    };
    if (op <= P::pxor)
        for (unsigned w = 0; w < i.bytes / 8u; w++)
            result.value.word[w] = bits(op, a.value.word[w], b.value.word[w]);
    else if (op == P::pblend)
        chosen([&](unsigned k) { return immediate >> (k & 7) & 1; });
    else if (op == P::pblendv) {  // the third operand is in `old`
        result.known = static_cast<std::uint8_t>(result.known & old.known);
        chosen([&](unsigned k) { return element_of(old.value, e, k) >> (8 * e - 1) & 1; });
    } else if (op == P::shufps && e == 8)
        for (unsigned w = 0; w < i.bytes / 8u; w++)
            result.value.word[w] = (w & 1 ? b : a).value.word[(w & ~1u) + (immediate >> (w & 7) & 1)];
    else if (op >= P::punpckl) {
        std::uint8_t x[64], y[64], z[64];
        memcpy(x, a.value.word, 64);
        memcpy(y, b.value.word, 64);
        for (unsigned at = 0; at < i.bytes; at += 16) lane(i, x + at, y + at, z + at);
        memcpy(result.value.word, z, i.bytes);
    } else if (op >= P::psll) {
        // All by one count. By an immediate a is shifted: the decoder has put it into first.
        std::uint64_t count = i.has_immediate ? immediate : b.value.word[0];
        result.known = static_cast<std::uint8_t>(a.known & lanes(i.bytes));
        if (!i.has_immediate && !(b.known & 1)) result.known = 0;
        X64Vector by = made(e, i.bytes, [&](unsigned) { return count > 8 * e ? 8 * e : count; });
        each(op, e, i.bytes, a.value, by, result.value);
    } else
        each(op, e, i.bytes, a.value, b.value, result.value);
    return result;
}

Operand fused(Native i, const Operand& old, const Operand& a, const Operand& b, bool flushes) {
    const unsigned e = i.element(), form = i.sub >> 4;  // 9: 132, a: 213, b: 231
    const auto known = static_cast<std::uint8_t>(old.known & a.known & b.known);
    Operand result = each_float(e, i.from ? e : i.bytes, known, [&](unsigned k) {
        const std::uint64_t x = element_of(old.value, e, k), y = element_of(a.value, e, k),
                            z = element_of(b.value, e, k);
        return fused(static_cast<unsigned>(i.sub), k & 1, form == 11 ? y : x, form == 10 ? y : z,
                     form == 9    ? y
                     : form == 10 ? z
                                  : x,
                     e, flushes);
    });
    if (i.from == 0) return result;
    Operand one = old;  // the rest of it stays
    set_element(one.value, e, 0, result.value.word[0]);
    one.known = static_cast<std::uint8_t>((one.known & ~1) | (result.known & 1));
    return one;
}

std::uint64_t float_compare(Native i, const X64Vector& a, const X64Vector& b, bool flushes) {
    std::uint64_t mask = 0;
    const unsigned e = i.element();
    for (unsigned k = 0; k < i.bytes / e; k++)
        mask |= (scalar(X64Packed::cmpps, element_of(a, e, k), element_of(b, e, k), e,
                        i.immediate & 31u, flushes)
                     .bits &
                 1)
                << k;
    return mask;
}

std::uint64_t packed_compare(Native i, const X64Vector& a, const X64Vector& b) {
    std::uint64_t mask = 0;
    unsigned e = i.element();
    std::uint64_t sign = i.sub ? std::uint64_t{1} << (8 * e - 1) : 0;  // by which it counts
    for (unsigned k = 0; k < i.bytes / e; k++) {
        std::uint64_t x = element_of(a, e, k), y = element_of(b, e, k);
        // Of integers, the third is never and the seventh always.
        bool is = i.has_immediate ? holds(i.immediate & 7u, x ^ sign, y ^ sign)
                                  : combined(static_cast<P>(i.sub), x, y, 8 * e) != 0;
        mask |= std::uint64_t{is} << k;
    }
    return mask;
}

}  // namespace revisit::machine::x64
