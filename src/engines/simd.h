// The few vector operations the engines need, for aarch64 and x86_64.
//
// Plain lane arithmetic is written with the compilers' vector types, 16 bytes at a time, which become
// NEON or SSE instructions as they are. Only what those types cannot say is written per machine here:
// turning 64 comparisons into the 64 bits of a word. A third, scalar form serves any other machine and
// the tests.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#if defined(__aarch64__)
#include <arm_neon.h>
#elif defined(__x86_64__)
#include <emmintrin.h>
#endif

#define REVISIT_INLINE [[gnu::always_inline]] inline

namespace revisit::simd {

using u8x16 = std::uint8_t __attribute__((vector_size(16)));
using s8x16 = std::int8_t __attribute__((vector_size(16)));
using u16x8 = std::uint16_t __attribute__((vector_size(16)));
using u32x4 = std::uint32_t __attribute__((vector_size(16)));
using s32x4 = std::int32_t __attribute__((vector_size(16)));

template <class Vector>
REVISIT_INLINE Vector load(const void* from) {
    Vector v;
    std::memcpy(&v, from, sizeof v);
    return v;
}

template <class Vector>
REVISIT_INLINE void store(void* to, Vector v) {
    std::memcpy(to, &v, sizeof v);
}

// How 64 numbers lie to two bounds, a bit a number: bit j of `below_low` is values[j] < low.
struct Comparison {
    std::uint64_t zero = 0;
    std::uint64_t below_low = 0;
    std::uint64_t below_high = 0;
};

inline Comparison compare_scalar(const std::uint32_t* values, std::uint32_t low, std::uint32_t high) {
    Comparison c;
    for (unsigned j = 0; j < 64; j++) {
        c.zero |= std::uint64_t{values[j] == 0} << j;
        c.below_low |= std::uint64_t{values[j] < low} << j;
        c.below_high |= std::uint64_t{values[j] < high} << j;
    }
    return c;
}

// Index of the first of kCount numbers that equals `value`, kCount when none does. Eight are read.
template <unsigned kCount>
unsigned first_equal_scalar(const std::uint32_t* values, std::uint32_t value) {
    for (unsigned i = 0; i < kCount; i++)
        if (values[i] == value) return i;
    return kCount;
}

// Which of 16 bytes, or of eight numbers of 32 bits, equal `value`, a bit a number.
template <class Number>
unsigned equal_bits_scalar(const Number* values, Number value) {
    unsigned bits = 0;
    for (unsigned i = 0; i < (sizeof value == 1 ? 16 : 8); i++)
        bits |= unsigned{values[i] == value} << i;
    return bits;
}

#if defined(__aarch64__)

REVISIT_INLINE unsigned equal_bits(const std::uint8_t* values, std::uint8_t value) {
    const uint8x16_t weight = vreinterpretq_u8_u64(vdupq_n_u64(0x8040201008040201u));
    const uint8x16_t equal = vandq_u8(vceqq_u8(vld1q_u8(values), vdupq_n_u8(value)), weight);
    return vaddv_u8(vget_low_u8(equal)) | unsigned{vaddv_u8(vget_high_u8(equal))} << 8;
}

REVISIT_INLINE unsigned equal_bits(const std::uint32_t* values, std::uint32_t value) {
    const uint32x4_t v = vdupq_n_u32(value);
    const uint32x4_t a = vceqq_u32(vld1q_u32(values), v), b = vceqq_u32(vld1q_u32(values + 4), v);
    const uint8x8_t bytes = vmovn_u16(vuzp1q_u16(vreinterpretq_u16_u32(a), vreinterpretq_u16_u32(b)));
    return vaddv_u8(vand_u8(bytes, vcreate_u8(0x8040201008040201u)));
}

template <unsigned kCount>
REVISIT_INLINE unsigned first_equal(const std::uint32_t* values, std::uint32_t value) {
    const uint32x4_t v = vdupq_n_u32(value);
    const uint32x4_t a = vceqq_u32(vld1q_u32(values), v), b = vceqq_u32(vld1q_u32(values + 4), v);
    const uint8x8_t bytes = vmovn_u16(vuzp1q_u16(vreinterpretq_u16_u32(a), vreinterpretq_u16_u32(b)));
    const std::uint64_t lanes = vget_lane_u64(vreinterpret_u64_u8(bytes), 0) | std::uint64_t{1}
                                                                                   << (8 * kCount);
    return static_cast<unsigned>(std::countr_zero(lanes)) / 8;
}

// All-ones or zero lanes, 64 of them in sixteen vectors, to 64 bits: narrow twice, weigh, add pairwise.
struct LaneBits {
    uint8x16_t quarter[4];

    REVISIT_INLINE void set(unsigned i, uint32x4_t a, uint32x4_t b, uint32x4_t c, uint32x4_t d) {
        const uint16x8_t low = vuzp1q_u16(vreinterpretq_u16_u32(a), vreinterpretq_u16_u32(b));
        const uint16x8_t high = vuzp1q_u16(vreinterpretq_u16_u32(c), vreinterpretq_u16_u32(d));
        quarter[i] = vuzp1q_u8(vreinterpretq_u8_u16(low), vreinterpretq_u8_u16(high));
    }
    REVISIT_INLINE std::uint64_t bits() const {
        const uint8x16_t weight = vreinterpretq_u8_u64(vdupq_n_u64(0x8040201008040201u));
        const uint8x16_t a = vpaddq_u8(vandq_u8(quarter[0], weight), vandq_u8(quarter[1], weight));
        const uint8x16_t b = vpaddq_u8(vandq_u8(quarter[2], weight), vandq_u8(quarter[3], weight));
        const uint8x16_t c = vpaddq_u8(a, b);
        return vgetq_lane_u64(vreinterpretq_u64_u8(vpaddq_u8(c, c)), 0);
    }
};

REVISIT_INLINE Comparison compare(const std::uint32_t* values, std::uint32_t low, std::uint32_t high) {
    const uint32x4_t vl = vdupq_n_u32(low), vh = vdupq_n_u32(high);
    LaneBits zero, below_low, below_high;
#pragma GCC unroll 4
    for (unsigned i = 0; i < 4; i++) {
        const uint32x4_t a = vld1q_u32(values + 16 * i), b = vld1q_u32(values + 16 * i + 4);
        const uint32x4_t c = vld1q_u32(values + 16 * i + 8), d = vld1q_u32(values + 16 * i + 12);
        zero.set(i, vceqzq_u32(a), vceqzq_u32(b), vceqzq_u32(c), vceqzq_u32(d));
        below_low.set(i, vcltq_u32(a, vl), vcltq_u32(b, vl), vcltq_u32(c, vl), vcltq_u32(d, vl));
        below_high.set(i, vcltq_u32(a, vh), vcltq_u32(b, vh), vcltq_u32(c, vh), vcltq_u32(d, vh));
    }
    return {zero.bits(), below_low.bits(), below_high.bits()};
}

#elif defined(__x86_64__)

REVISIT_INLINE unsigned equal_bits(const std::uint8_t* values, std::uint8_t value) {
    const __m128i v = _mm_set1_epi8(static_cast<char>(value));
    const __m128i equal = _mm_cmpeq_epi8(_mm_loadu_si128(reinterpret_cast<const __m128i*>(values)), v);
    return static_cast<unsigned>(_mm_movemask_epi8(equal));
}

REVISIT_INLINE unsigned equal_bits(const std::uint32_t* values, std::uint32_t value) {
    const __m128i v = _mm_set1_epi32(static_cast<int>(value));
    const __m128i a = _mm_cmpeq_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(values)), v);
    const __m128i b = _mm_cmpeq_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(values + 4)), v);
    return static_cast<unsigned>(_mm_movemask_ps(_mm_castsi128_ps(a))) |
           static_cast<unsigned>(_mm_movemask_ps(_mm_castsi128_ps(b))) << 4;
}

template <unsigned kCount>
REVISIT_INLINE unsigned first_equal(const std::uint32_t* values, std::uint32_t value) {
    return static_cast<unsigned>(std::countr_zero(equal_bits(values, value) | 1u << kCount));
}

REVISIT_INLINE std::uint64_t lane_bits(__m128i a, __m128i b, __m128i c, __m128i d) {
    return static_cast<std::uint32_t>(
        _mm_movemask_epi8(_mm_packs_epi16(_mm_packs_epi32(a, b), _mm_packs_epi32(c, d))));
}

// Unsigned order is signed order with the top bit flipped, which is what the machine compares.
REVISIT_INLINE Comparison compare(const std::uint32_t* values, std::uint32_t low, std::uint32_t high) {
    const __m128i flip = _mm_set1_epi32(static_cast<int>(0x80000000u));
    const __m128i vl = _mm_set1_epi32(static_cast<int>(low ^ 0x80000000u));
    const __m128i vh = _mm_set1_epi32(static_cast<int>(high ^ 0x80000000u));
    Comparison result;
    for (unsigned i = 0; i < 4; i++) {
        __m128i v[4];
        for (unsigned q = 0; q < 4; q++)
            v[q] = _mm_xor_si128(
                _mm_loadu_si128(reinterpret_cast<const __m128i*>(values + 16 * i + 4 * q)), flip);
        result.zero |= lane_bits(_mm_cmpeq_epi32(v[0], flip), _mm_cmpeq_epi32(v[1], flip),
                                 _mm_cmpeq_epi32(v[2], flip), _mm_cmpeq_epi32(v[3], flip))
                       << (16 * i);
        result.below_low |= lane_bits(_mm_cmplt_epi32(v[0], vl), _mm_cmplt_epi32(v[1], vl),
                                      _mm_cmplt_epi32(v[2], vl), _mm_cmplt_epi32(v[3], vl))
                            << (16 * i);
        result.below_high |= lane_bits(_mm_cmplt_epi32(v[0], vh), _mm_cmplt_epi32(v[1], vh),
                                       _mm_cmplt_epi32(v[2], vh), _mm_cmplt_epi32(v[3], vh))
                             << (16 * i);
    }
    return result;
}

#else

REVISIT_INLINE unsigned equal_bits(const std::uint8_t* values, std::uint8_t value) {
    return equal_bits_scalar(values, value);
}

REVISIT_INLINE unsigned equal_bits(const std::uint32_t* values, std::uint32_t value) {
    return equal_bits_scalar(values, value);
}

template <unsigned kCount>
REVISIT_INLINE unsigned first_equal(const std::uint32_t* values, std::uint32_t value) {
    return first_equal_scalar<kCount>(values, value);
}

REVISIT_INLINE Comparison compare(const std::uint32_t* values, std::uint32_t low, std::uint32_t high) {
    return compare_scalar(values, low, high);
}

#endif

// Where the least of some numbers under 2^31 is, the first of them. A multiple of eight, up to 64.
REVISIT_INLINE unsigned least_at(const std::uint32_t* numbers, std::size_t count) {
    auto least = load<s32x4>(numbers);
    for (std::size_t at = 4; at < count; at += 4) {
        const auto next = load<s32x4>(numbers + at);
        least = next < least ? next : least;
    }
    auto other = __builtin_shufflevector(least, least, 2, 3, 0, 1);
    least = other < least ? other : least;
    other = __builtin_shufflevector(least, least, 1, 0, 3, 2);
    least = other < least ? other : least;
    std::uint64_t equal = 0;
    for (std::size_t at = 0; at < count; at += 8)
        equal |= std::uint64_t{equal_bits(numbers + at, static_cast<std::uint32_t>(least[0]))} << at;
    return static_cast<unsigned>(std::countr_zero(equal));
}

}  // namespace revisit::simd
