// The table of vector instructions of x86_64, in their three encodings: see x64/decode_vector.cpp.
//
// One row says for an opcode, a map and a prefix what is done, on elements of which size, and how much
// memory is touched. The old encoding, VEX and EVEX share rows but for what only one of them has. Rows
// of an opcode lie together; an index by map and opcode, made by the compiler, finds them.
#pragma once

#include <iterator>

#include "machine/x64/decode.h"

namespace revisit::machine::x64 {
namespace {

using P = X64Packed;

enum class Size : std::uint8_t {
    whole,
    half,
    quarter,
    eighth,
    element,
    width,
    b1,
    b2,
    b4,
    b8,
    b16,
    b32
};

enum Flag : std::uint16_t {
    kImmediate = 1,
    kWide = 2,     // elements are twice as large with EVEX.W
    kWideVex = 4,  // … with VEX.W too
    kStores = 8,
    kVexOnly = 16,  // not in the old encoding
    kEvexOnly = 32,
    kNotEvex = 64,
    kMemory = 128,     // not between registers
    kRegisters = 256,  // only between registers
    kScalar = 512,     // its value is one element
};

constexpr std::uint8_t kPlain = 1, k66 = 2, kF3 = 4, kF2 = 8;

struct Row {
    std::uint8_t map, opcode, prefixes;
    Op op;
    std::uint8_t sub, element;
    Size memory;
    unsigned flags;
};

constexpr Row packed_row(unsigned map, unsigned opcode, P what, unsigned element, unsigned flags = 0,
                         unsigned prefixes = k66, Size memory = Size::whole) {
    return {static_cast<std::uint8_t>(map),
            static_cast<std::uint8_t>(opcode),
            static_cast<std::uint8_t>(prefixes),
            Op::packed,
            static_cast<std::uint8_t>(what),
            static_cast<std::uint8_t>(element),
            memory,
            flags};
}
constexpr Row row(unsigned map, unsigned opcode, unsigned prefixes, Op op, unsigned element,
                  Size memory, unsigned flags = 0, unsigned sub = 0) {
    return {static_cast<std::uint8_t>(map),
            static_cast<std::uint8_t>(opcode),
            static_cast<std::uint8_t>(prefixes),
            op,
            static_cast<std::uint8_t>(sub),
            static_cast<std::uint8_t>(element),
            memory,
            flags};
}
constexpr unsigned sub(P what) {
    return static_cast<unsigned>(what);
}

constexpr Row kRows[] = {
    // moves
    row(1, 0x10, kPlain, Op::vector_load, 4, Size::whole),
    row(1, 0x10, k66, Op::vector_load, 8, Size::whole),
    row(1, 0x10, kF3, Op::vector_load, 4, Size::b4, kScalar),
    row(1, 0x10, kF2, Op::vector_load, 8, Size::b8, kScalar),
    row(1, 0x11, kPlain, Op::vector_store, 4, Size::whole, kStores),
    row(1, 0x11, k66, Op::vector_store, 8, Size::whole, kStores),
    row(1, 0x11, kF3, Op::vector_store, 4, Size::b4, kStores | kScalar),
    row(1, 0x11, kF2, Op::vector_store, 8, Size::b8, kStores | kScalar),
    packed_row(1, 0x12, P::low_half, 8, 0, kPlain | k66, Size::b8),
    packed_row(1, 0x12, P::double_even, 4, 0, kF3),
    packed_row(1, 0x12, P::double_low, 8, 0, kF2),
    row(1, 0x13, kPlain | k66, Op::vector_store, 8, Size::b8, kStores | kMemory | kScalar),
    packed_row(1, 0x14, P::unpack_low, 4, 0, kPlain),
    packed_row(1, 0x14, P::unpack_low, 8),
    packed_row(1, 0x15, P::unpack_high, 4, 0, kPlain),
    packed_row(1, 0x15, P::unpack_high, 8),
    packed_row(1, 0x16, P::to_high_half, 8, 0, kPlain | k66, Size::b8),
    packed_row(1, 0x16, P::double_odd, 4, 0, kF3),
    packed_row(1, 0x17, P::to_high_half, 8, kStores | kMemory, kPlain | k66, Size::b8),
    row(1, 0x28, kPlain, Op::vector_load, 4, Size::whole),
    row(1, 0x28, k66, Op::vector_load, 8, Size::whole),
    row(1, 0x29, kPlain, Op::vector_store, 4, Size::whole, kStores),
    row(1, 0x29, k66, Op::vector_store, 8, Size::whole, kStores),
    row(1, 0x2b, kPlain | k66, Op::vector_store, 8, Size::whole, kStores | kMemory),
    row(1, 0x6e, k66, Op::general_to_vector, 4, Size::width),
    row(1, 0x6f, k66 | kF3, Op::vector_load, 4, Size::whole, kWide),
    row(1, 0x6f, kF2, Op::vector_load, 1, Size::whole, kWide | kEvexOnly),
    row(1, 0x7e, k66, Op::vector_to_general, 4, Size::width, kStores),
    row(1, 0x7e, kF3, Op::vector_load, 8, Size::b8, kScalar),
    row(1, 0x7f, k66 | kF3, Op::vector_store, 4, Size::whole, kWide | kStores),
    row(1, 0x7f, kF2, Op::vector_store, 1, Size::whole, kWide | kStores | kEvexOnly),
    row(1, 0xd6, k66, Op::vector_store, 8, Size::b8, kStores | kScalar),
    row(1, 0xe7, k66, Op::vector_store, 4, Size::whole, kStores | kMemory),
    row(1, 0xf0, kF2, Op::vector_load, 4, Size::whole, kMemory | kNotEvex),
    row(2, 0x2a, k66, Op::vector_load, 4, Size::whole, kMemory),
    // one number with a fraction
    row(1, 0x2a, kF3, Op::integer_to_scalar, 4, Size::width),
    row(1, 0x2a, kF2, Op::integer_to_scalar, 8, Size::width),
    row(1, 0x2c, kF3, Op::scalar_to_integer, 4, Size::element),
    row(1, 0x2c, kF2, Op::scalar_to_integer, 8, Size::element),
    row(1, 0x2d, kF3, Op::vector_to_opaque, 4, Size::element),
    row(1, 0x2d, kF2, Op::vector_to_opaque, 8, Size::element),
    row(1, 0x2e, kPlain, Op::scalar_compare, 4, Size::element),
    row(1, 0x2e, k66, Op::scalar_compare, 8, Size::element),
    row(1, 0x2f, kPlain, Op::scalar_compare, 4, Size::element),
    row(1, 0x2f, k66, Op::scalar_compare, 8, Size::element),
    // packed ones
    row(1, 0x50, kPlain, Op::vector_signs, 4, Size::whole, kRegisters | kNotEvex),
    row(1, 0x50, k66, Op::vector_signs, 8, Size::whole, kRegisters | kNotEvex),
    row(1, 0x51, kPlain, Op::vector_other, 4, Size::whole),
    row(1, 0x51, k66, Op::vector_other, 8, Size::whole),
    row(1, 0x51, kF3, Op::vector_other, 4, Size::element, kScalar),
    row(1, 0x51, kF2, Op::vector_other, 8, Size::element, kScalar),
    row(1, 0x52, kPlain, Op::vector_other, 4, Size::whole, kNotEvex),
    row(1, 0x52, kF3, Op::vector_other, 4, Size::element, kScalar | kNotEvex),
    row(1, 0x53, kPlain, Op::vector_other, 4, Size::whole, kNotEvex),
    row(1, 0x53, kF3, Op::vector_other, 4, Size::element, kScalar | kNotEvex),
    packed_row(1, 0x54, P::bits_and, 4, 0, kPlain),
    packed_row(1, 0x54, P::bits_and, 8),
    packed_row(1, 0x55, P::bits_and_not, 4, 0, kPlain),
    packed_row(1, 0x55, P::bits_and_not, 8),
    packed_row(1, 0x56, P::bits_or, 4, 0, kPlain),
    packed_row(1, 0x56, P::bits_or, 8),
    packed_row(1, 0x57, P::bits_xor, 4, 0, kPlain),
    packed_row(1, 0x57, P::bits_xor, 8),
    packed_row(1, 0x58, P::float_add, 4, 0, kPlain),
    packed_row(1, 0x58, P::float_add, 8),
    row(1, 0x58, kF3, Op::scalar, 4, Size::element),
    row(1, 0x58, kF2, Op::scalar, 8, Size::element),
    packed_row(1, 0x59, P::float_multiply, 4, 0, kPlain),
    packed_row(1, 0x59, P::float_multiply, 8),
    row(1, 0x59, kF3, Op::scalar, 4, Size::element, 0, 1),
    row(1, 0x59, kF2, Op::scalar, 8, Size::element, 0, 1),
    row(1, 0x5a, kPlain, Op::vector_other, 4, Size::half),
    row(1, 0x5a, k66, Op::vector_other, 8, Size::whole),
    row(1, 0x5a, kF3, Op::scalar_convert, 4, Size::element),
    row(1, 0x5a, kF2, Op::scalar_convert, 8, Size::element),
    packed_row(1, 0x5b, P::from_integer, 4, kNotEvex, kPlain),
    row(1, 0x5b, k66 | kF3, Op::vector_other, 4, Size::whole),
    packed_row(1, 0x5c, P::float_subtract, 4, 0, kPlain),
    packed_row(1, 0x5c, P::float_subtract, 8),
    row(1, 0x5c, kF3, Op::scalar, 4, Size::element, 0, 4),
    row(1, 0x5c, kF2, Op::scalar, 8, Size::element, 0, 4),
    packed_row(1, 0x5d, P::float_min, 4, 0, kPlain),
    packed_row(1, 0x5d, P::float_min, 8),
    row(1, 0x5d, kF3, Op::scalar, 4, Size::element, 0, 5),
    row(1, 0x5d, kF2, Op::scalar, 8, Size::element, 0, 5),
    packed_row(1, 0x5e, P::float_divide, 4, 0, kPlain),
    packed_row(1, 0x5e, P::float_divide, 8),
    row(1, 0x5e, kF3, Op::scalar, 4, Size::element, 0, 6),
    row(1, 0x5e, kF2, Op::scalar, 8, Size::element, 0, 6),
    packed_row(1, 0x5f, P::float_max, 4, 0, kPlain),
    packed_row(1, 0x5f, P::float_max, 8),
    row(1, 0x5f, kF3, Op::scalar, 4, Size::element, 0, 7),
    row(1, 0x5f, kF2, Op::scalar, 8, Size::element, 0, 7),
    row(1, 0x7c, k66 | kF2, Op::vector_other, 4, Size::whole, kNotEvex),
    row(1, 0x7d, k66 | kF2, Op::vector_other, 4, Size::whole, kNotEvex),
    packed_row(1, 0xc2, P::float_compare, 4, kImmediate | kNotEvex, kPlain),
    packed_row(1, 0xc2, P::float_compare, 8, kImmediate | kNotEvex),
    row(1, 0xc2, kF3, Op::vector_other, 4, Size::element, kImmediate | kNotEvex | kScalar),
    row(1, 0xc2, kF2, Op::vector_other, 8, Size::element, kImmediate | kNotEvex | kScalar),
    row(1, 0xc2, kPlain, Op::vector_to_mask, 4, Size::whole, kImmediate | kEvexOnly),
    row(1, 0xc2, k66, Op::vector_to_mask, 8, Size::whole, kImmediate | kEvexOnly),
    row(1, 0xc2, kF3, Op::vector_to_mask, 4, Size::element, kImmediate | kEvexOnly),
    row(1, 0xc2, kF2, Op::vector_to_mask, 8, Size::element, kImmediate | kEvexOnly),
    packed_row(1, 0xc6, P::shuffle_two, 4, kImmediate, kPlain),
    packed_row(1, 0xc6, P::shuffle_two, 8, kImmediate),
    row(1, 0xd0, k66 | kF2, Op::vector_other, 4, Size::whole, kNotEvex),
    row(1, 0xe6, k66 | kF2, Op::vector_other, 8, Size::whole),
    packed_row(1, 0xe6, P::from_integer, 8, kNotEvex, kF3, Size::half),
    row(1, 0xe6, kF3, Op::vector_other, 4, Size::half, kEvexOnly | kWide),
    // integers
    packed_row(1, 0x60, P::unpack_low, 1),
    packed_row(1, 0x61, P::unpack_low, 2),
    packed_row(1, 0x62, P::unpack_low, 4),
    packed_row(1, 0x63, P::pack_signed, 1),
    packed_row(1, 0x64, P::greater, 1, kNotEvex),
    row(1, 0x64, k66, Op::vector_compare, 1, Size::whole, kEvexOnly, sub(P::greater)),
    packed_row(1, 0x65, P::greater, 2, kNotEvex),
    row(1, 0x65, k66, Op::vector_compare, 2, Size::whole, kEvexOnly, sub(P::greater)),
    packed_row(1, 0x66, P::greater, 4, kNotEvex),
    row(1, 0x66, k66, Op::vector_compare, 4, Size::whole, kEvexOnly, sub(P::greater)),
    packed_row(1, 0x67, P::pack_unsigned, 1),
    packed_row(1, 0x68, P::unpack_high, 1),
    packed_row(1, 0x69, P::unpack_high, 2),
    packed_row(1, 0x6a, P::unpack_high, 4),
    packed_row(1, 0x6b, P::pack_signed, 2),
    packed_row(1, 0x6c, P::unpack_low, 8),
    packed_row(1, 0x6d, P::unpack_high, 8),
    packed_row(1, 0x70, P::shuffle_words, 4, kImmediate),
    packed_row(1, 0x70, P::shuffle_high, 2, kImmediate, kF3),
    packed_row(1, 0x70, P::shuffle_low, 2, kImmediate, kF2),
    packed_row(1, 0x71, P::shift_left, 2, kImmediate | kRegisters),
    packed_row(1, 0x72, P::shift_left, 4, kImmediate | kRegisters),
    packed_row(1, 0x73, P::shift_left, 8, kImmediate | kRegisters),
    packed_row(1, 0x74, P::equal, 1, kNotEvex),
    row(1, 0x74, k66, Op::vector_compare, 1, Size::whole, kEvexOnly, sub(P::equal)),
    packed_row(1, 0x75, P::equal, 2, kNotEvex),
    row(1, 0x75, k66, Op::vector_compare, 2, Size::whole, kEvexOnly, sub(P::equal)),
    packed_row(1, 0x76, P::equal, 4, kNotEvex),
    row(1, 0x76, k66, Op::vector_compare, 4, Size::whole, kEvexOnly, sub(P::equal)),
    row(1, 0xc4, k66, Op::vector_insert, 2, Size::element, kImmediate),
    row(1, 0xc5, k66, Op::vector_extract, 2, Size::whole, kImmediate | kRegisters),
    packed_row(1, 0xd1, P::shift_right, 2, 0, k66, Size::b16),
    packed_row(1, 0xd2, P::shift_right, 4, 0, k66, Size::b16),
    packed_row(1, 0xd3, P::shift_right, 8, 0, k66, Size::b16),
    packed_row(1, 0xd4, P::add, 8),
    packed_row(1, 0xd5, P::multiply_low, 2),
    row(1, 0xd7, k66, Op::vector_signs, 1, Size::whole, kRegisters | kNotEvex),
    packed_row(1, 0xd8, P::subtract_unsigned, 1),
    packed_row(1, 0xd9, P::subtract_unsigned, 2),
    packed_row(1, 0xda, P::min_unsigned, 1),
    packed_row(1, 0xdb, P::bits_and, 4, kWide),
    packed_row(1, 0xdc, P::add_unsigned, 1),
    packed_row(1, 0xdd, P::add_unsigned, 2),
    packed_row(1, 0xde, P::max_unsigned, 1),
    packed_row(1, 0xdf, P::bits_and_not, 4, kWide),
    packed_row(1, 0xe0, P::average, 1),
    packed_row(1, 0xe1, P::shift_signed, 2, 0, k66, Size::b16),
    packed_row(1, 0xe2, P::shift_signed, 4, kWide, k66, Size::b16),
    packed_row(1, 0xe3, P::average, 2),
    packed_row(1, 0xe4, P::multiply_high_unsigned, 2),
    packed_row(1, 0xe5, P::multiply_high_signed, 2),
    packed_row(1, 0xe8, P::subtract_signed, 1),
    packed_row(1, 0xe9, P::subtract_signed, 2),
    packed_row(1, 0xea, P::min_signed, 2),
    packed_row(1, 0xeb, P::bits_or, 4, kWide),
    packed_row(1, 0xec, P::add_signed, 1),
    packed_row(1, 0xed, P::add_signed, 2),
    packed_row(1, 0xee, P::max_signed, 2),
    packed_row(1, 0xef, P::bits_xor, 4, kWide),
    packed_row(1, 0xf1, P::shift_left, 2, 0, k66, Size::b16),
    packed_row(1, 0xf2, P::shift_left, 4, 0, k66, Size::b16),
    packed_row(1, 0xf3, P::shift_left, 8, 0, k66, Size::b16),
    packed_row(1, 0xf4, P::multiply_even_unsigned, 8),
    packed_row(1, 0xf5, P::multiply_add, 2),
    packed_row(1, 0xf6, P::sum_differences, 1),
    packed_row(1, 0xf8, P::subtract, 1),
    packed_row(1, 0xf9, P::subtract, 2),
    packed_row(1, 0xfa, P::subtract, 4),
    packed_row(1, 0xfb, P::subtract, 8),
    packed_row(1, 0xfc, P::add, 1),
    packed_row(1, 0xfd, P::add, 2),
    packed_row(1, 0xfe, P::add, 4),
    // 0f 38
    packed_row(2, 0x00, P::shuffle_bytes, 1),
    row(2, 0x01, k66, Op::vector_other, 2, Size::whole, kNotEvex),
    row(2, 0x02, k66, Op::vector_other, 4, Size::whole, kNotEvex),
    row(2, 0x03, k66, Op::vector_other, 2, Size::whole, kNotEvex),
    row(2, 0x04, k66, Op::vector_other, 2, Size::whole),
    row(2, 0x05, k66, Op::vector_other, 2, Size::whole, kNotEvex),
    row(2, 0x06, k66, Op::vector_other, 4, Size::whole, kNotEvex),
    row(2, 0x07, k66, Op::vector_other, 2, Size::whole, kNotEvex),
    row(2, 0x08, k66, Op::vector_other, 1, Size::whole, kNotEvex),
    row(2, 0x09, k66, Op::vector_other, 2, Size::whole, kNotEvex),
    row(2, 0x0a, k66, Op::vector_other, 4, Size::whole, kNotEvex),
    row(2, 0x0b, k66, Op::vector_other, 2, Size::whole),
    row(2, 0x0c, k66, Op::vector_other, 4, Size::whole, kVexOnly),
    row(2, 0x0d, k66, Op::vector_other, 8, Size::whole, kVexOnly),
    row(2, 0x0e, k66, Op::vector_to_flags, 4, Size::whole, kVexOnly | kNotEvex),
    row(2, 0x0f, k66, Op::vector_to_flags, 8, Size::whole, kVexOnly | kNotEvex),
    packed_row(2, 0x16, P::permute_by, 4, kVexOnly | kWide),
    row(2, 0x17, k66, Op::vector_test, 8, Size::whole, kNotEvex),
    packed_row(2, 0x18, P::spread, 4, kVexOnly, k66, Size::element),
    packed_row(2, 0x19, P::spread, 8, kVexOnly, k66, Size::element),
    packed_row(2, 0x1a, P::spread, 16, kVexOnly | kMemory | kNotEvex, k66, Size::element),
    packed_row(2, 0x1c, P::absolute, 1),
    packed_row(2, 0x1d, P::absolute, 2),
    packed_row(2, 0x1e, P::absolute, 4),
    packed_row(2, 0x1f, P::absolute, 8, kEvexOnly),
    packed_row(2, 0x20, P::widen_signed, 2, 0, k66, Size::half),
    packed_row(2, 0x21, P::widen_signed, 4, 0, k66, Size::quarter),
    packed_row(2, 0x22, P::widen_signed, 8, 0, k66, Size::eighth),
    packed_row(2, 0x23, P::widen_signed, 4, 0, k66, Size::half),
    packed_row(2, 0x24, P::widen_signed, 8, 0, k66, Size::quarter),
    packed_row(2, 0x25, P::widen_signed, 8, 0, k66, Size::half),
    row(2, 0x26, k66, Op::vector_compare, 1, Size::whole, kEvexOnly | kWide, sub(P::test)),
    row(2, 0x26, kF3, Op::vector_compare, 1, Size::whole, kEvexOnly | kWide, sub(P::test_none)),
    row(2, 0x27, k66, Op::vector_compare, 4, Size::whole, kEvexOnly | kWide, sub(P::test)),
    row(2, 0x27, kF3, Op::vector_compare, 4, Size::whole, kEvexOnly | kWide, sub(P::test_none)),
    packed_row(2, 0x28, P::multiply_even_signed, 8),
    row(2, 0x28, kF3, Op::vector_of_mask, 1, Size::whole, kEvexOnly | kWide | kRegisters),
    packed_row(2, 0x29, P::equal, 8, kNotEvex),
    row(2, 0x29, k66, Op::vector_compare, 8, Size::whole, kEvexOnly, sub(P::equal)),
    row(2, 0x29, kF3, Op::vector_to_mask, 1, Size::whole, kEvexOnly | kRegisters),
    packed_row(2, 0x2b, P::pack_unsigned, 2),
    packed_row(2, 0x30, P::widen_zero, 2, 0, k66, Size::half),
    packed_row(2, 0x31, P::widen_zero, 4, 0, k66, Size::quarter),
    packed_row(2, 0x32, P::widen_zero, 8, 0, k66, Size::eighth),
    packed_row(2, 0x33, P::widen_zero, 4, 0, k66, Size::half),
    packed_row(2, 0x34, P::widen_zero, 8, 0, k66, Size::quarter),
    packed_row(2, 0x35, P::widen_zero, 8, 0, k66, Size::half),
    packed_row(2, 0x36, P::permute_by, 4, kVexOnly | kWide),
    packed_row(2, 0x37, P::greater, 8, kNotEvex),
    row(2, 0x37, k66, Op::vector_compare, 8, Size::whole, kEvexOnly, sub(P::greater)),
    packed_row(2, 0x38, P::min_signed, 1),
    row(2, 0x38, kF3, Op::vector_of_mask, 4, Size::whole, kEvexOnly | kWide | kRegisters),
    packed_row(2, 0x39, P::min_signed, 4, kWide),
    row(2, 0x39, kF3, Op::vector_to_mask, 4, Size::whole, kEvexOnly | kRegisters),
    packed_row(2, 0x3a, P::min_unsigned, 2),
    packed_row(2, 0x3b, P::min_unsigned, 4, kWide),
    packed_row(2, 0x3c, P::max_signed, 1),
    packed_row(2, 0x3d, P::max_signed, 4, kWide),
    packed_row(2, 0x3e, P::max_unsigned, 2),
    packed_row(2, 0x3f, P::max_unsigned, 4, kWide),
    packed_row(2, 0x40, P::multiply_low, 4, kNotEvex),
    row(2, 0x40, k66, Op::vector_other, 4, Size::whole, kEvexOnly | kWide),
    row(2, 0x41, k66, Op::vector_other, 2, Size::whole, kNotEvex),
    packed_row(2, 0x45, P::shift_right_each, 4, kVexOnly | kWideVex),
    packed_row(2, 0x46, P::shift_signed_each, 4, kVexOnly | kWide),
    packed_row(2, 0x47, P::shift_left_each, 4, kVexOnly | kWideVex),
    packed_row(2, 0x58, P::spread, 4, kVexOnly, k66, Size::element),
    packed_row(2, 0x59, P::spread, 8, kVexOnly, k66, Size::element),
    packed_row(2, 0x5a, P::spread, 16, kVexOnly | kMemory | kNotEvex, k66, Size::element),
    row(2, 0x75, k66, Op::vector_other, 1, Size::whole, kEvexOnly | kWide),
    row(2, 0x76, k66, Op::vector_other, 4, Size::whole, kEvexOnly | kWide),
    row(2, 0x77, k66, Op::vector_other, 4, Size::whole, kEvexOnly | kWide),
    packed_row(2, 0x78, P::spread, 1, kVexOnly, k66, Size::element),
    packed_row(2, 0x79, P::spread, 2, kVexOnly, k66, Size::element),
    row(2, 0x7a, k66, Op::vector_spread, 1, Size::whole, kEvexOnly | kRegisters),
    row(2, 0x7b, k66, Op::vector_spread, 2, Size::whole, kEvexOnly | kRegisters),
    row(2, 0x7c, k66, Op::vector_spread, 4, Size::whole, kEvexOnly | kWide | kRegisters),
    row(2, 0x7d, k66, Op::vector_other, 1, Size::whole, kEvexOnly | kWide),
    row(2, 0x7e, k66, Op::vector_other, 4, Size::whole, kEvexOnly | kWide),
    row(2, 0x7f, k66, Op::vector_other, 4, Size::whole, kEvexOnly | kWide),
    row(2, 0x8d, k66, Op::vector_other, 1, Size::whole, kEvexOnly | kWide),
    row(2, 0xc8, kPlain, Op::vector_other, 4, Size::whole, kNotEvex),
    row(2, 0xc9, kPlain, Op::vector_other, 4, Size::whole, kNotEvex),
    row(2, 0xca, kPlain, Op::vector_other, 4, Size::whole, kNotEvex),
    row(2, 0xcb, kPlain, Op::vector_other, 4, Size::whole, kNotEvex),
    row(2, 0xcc, kPlain, Op::vector_other, 4, Size::whole, kNotEvex),
    row(2, 0xcd, kPlain, Op::vector_other, 4, Size::whole, kNotEvex),
    row(2, 0xdb, k66, Op::vector_other, 8, Size::whole),
    row(2, 0xdc, k66, Op::vector_other, 8, Size::whole),
    row(2, 0xdd, k66, Op::vector_other, 8, Size::whole),
    row(2, 0xde, k66, Op::vector_other, 8, Size::whole),
    row(2, 0xdf, k66, Op::vector_other, 8, Size::whole),
    // 0f 3a
    packed_row(3, 0x00, P::permute_words, 8, kImmediate | kVexOnly),
    packed_row(3, 0x01, P::permute_words, 8, kImmediate | kVexOnly),
    packed_row(3, 0x02, P::blend, 4, kImmediate | kVexOnly | kNotEvex),
    row(3, 0x03, k66, Op::vector_other, 4, Size::whole, kImmediate | kEvexOnly | kWide),
    packed_row(3, 0x04, P::shuffle_words, 4, kImmediate | kVexOnly),
    row(3, 0x05, k66, Op::vector_other, 8, Size::whole, kImmediate | kVexOnly),
    packed_row(3, 0x06, P::permute_halves, 16, kImmediate | kVexOnly | kNotEvex),
    row(3, 0x08, k66, Op::vector_other, 4, Size::whole, kImmediate | kNotEvex),
    row(3, 0x09, k66, Op::vector_other, 8, Size::whole, kImmediate | kNotEvex),
    row(3, 0x0a, k66, Op::vector_other, 4, Size::element, kImmediate | kScalar | kNotEvex),
    row(3, 0x0b, k66, Op::vector_other, 8, Size::element, kImmediate | kScalar | kNotEvex),
    packed_row(3, 0x0c, P::blend, 4, kImmediate | kNotEvex),
    packed_row(3, 0x0d, P::blend, 8, kImmediate | kNotEvex),
    packed_row(3, 0x0e, P::blend, 2, kImmediate | kNotEvex),
    packed_row(3, 0x0f, P::align, 1, kImmediate),
    row(3, 0x14, k66, Op::vector_extract, 1, Size::element, kImmediate | kStores),
    row(3, 0x15, k66, Op::vector_extract, 2, Size::element, kImmediate | kStores),
    row(3, 0x16, k66, Op::vector_extract, 4, Size::width, kImmediate | kStores | kWideVex),
    row(3, 0x17, k66, Op::vector_extract, 4, Size::element, kImmediate | kStores),
    row(3, 0x18, k66, Op::vector_halves, 4, Size::b16, kImmediate | kVexOnly | kWide, 1),
    row(3, 0x19, k66, Op::vector_halves, 4, Size::b16, kImmediate | kVexOnly | kWide | kStores),
    row(3, 0x1a, k66, Op::vector_halves, 4, Size::b32, kImmediate | kEvexOnly | kWide, 1),
    row(3, 0x1b, k66, Op::vector_halves, 4, Size::b32, kImmediate | kEvexOnly | kWide | kStores),
    row(3, 0x1e, k66, Op::vector_compare, 4, Size::whole, kImmediate | kEvexOnly | kWide),
    row(3, 0x1f, k66, Op::vector_compare, 4, Size::whole, kImmediate | kEvexOnly | kWide, 1),
    row(3, 0x20, k66, Op::vector_insert, 1, Size::element, kImmediate),
    row(3, 0x21, k66, Op::vector_other, 4, Size::b4, kImmediate | kScalar),
    row(3, 0x22, k66, Op::vector_insert, 4, Size::width, kImmediate | kWideVex),
    row(3, 0x23, k66, Op::vector_other, 4, Size::whole, kImmediate | kEvexOnly | kWide),
    packed_row(3, 0x25, P::ternary, 4, kImmediate | kEvexOnly | kWide),
    row(3, 0x38, k66, Op::vector_halves, 4, Size::b16, kImmediate | kVexOnly | kWide, 1),
    row(3, 0x39, k66, Op::vector_halves, 4, Size::b16, kImmediate | kVexOnly | kWide | kStores),
    row(3, 0x3a, k66, Op::vector_halves, 4, Size::b32, kImmediate | kEvexOnly | kWide, 1),
    row(3, 0x3b, k66, Op::vector_halves, 4, Size::b32, kImmediate | kEvexOnly | kWide | kStores),
    row(3, 0x3e, k66, Op::vector_compare, 1, Size::whole, kImmediate | kEvexOnly | kWide),
    row(3, 0x3f, k66, Op::vector_compare, 1, Size::whole, kImmediate | kEvexOnly | kWide, 1),
    row(3, 0x40, k66, Op::vector_other, 4, Size::whole, kImmediate | kNotEvex),
    row(3, 0x41, k66, Op::vector_other, 8, Size::whole, kImmediate | kNotEvex),
    row(3, 0x42, k66, Op::vector_other, 1, Size::whole, kImmediate | kNotEvex),
    row(3, 0x43, k66, Op::vector_other, 4, Size::whole, kImmediate | kEvexOnly | kWide),
    row(3, 0x44, k66, Op::vector_other, 8, Size::whole, kImmediate),
    packed_row(3, 0x46, P::permute_halves, 16, kImmediate | kVexOnly | kNotEvex),
    packed_row(3, 0x4a, P::blend_by_sign, 4, kImmediate | kVexOnly | kNotEvex),
    packed_row(3, 0x4b, P::blend_by_sign, 8, kImmediate | kVexOnly | kNotEvex),
    packed_row(3, 0x4c, P::blend_by_sign, 1, kImmediate | kVexOnly | kNotEvex),
    row(3, 0x61, k66, Op::vector_to_opaque, 1, Size::whole, kImmediate | kNotEvex, 1),
    row(3, 0x63, k66, Op::vector_to_opaque, 1, Size::whole, kImmediate | kNotEvex, 1),
    row(3, 0xcc, kPlain, Op::vector_other, 4, Size::whole, kImmediate | kNotEvex),
    row(3, 0xdf, k66, Op::vector_other, 8, Size::whole, kImmediate | kNotEvex),
    // in the old encoding the third operand is the first register
    packed_row(2, 0x10, P::blend_by_sign, 1),
    packed_row(2, 0x14, P::blend_by_sign, 4),
    packed_row(2, 0x15, P::blend_by_sign, 8),
};

struct Index {
    std::uint16_t first[3][256] = {};  // 0 = none, else one more
    consteval Index() {
        for (std::size_t k = std::size(kRows); k-- > 0;)
            first[kRows[k].map - 1][kRows[k].opcode] = static_cast<std::uint16_t>(k + 1);
    }
};
constexpr Index kIndex;

consteval bool is_grouped() {
    for (std::size_t k = 1; k < std::size(kRows); k++)
        for (std::size_t j = 0; j + 1 < k; j++)
            if (kRows[j].map == kRows[k].map && kRows[j].opcode == kRows[k].opcode &&
                (kRows[k - 1].map != kRows[k].map || kRows[k - 1].opcode != kRows[k].opcode))
                return false;
    return true;
}
static_assert(is_grouped());

const Row* find_row(const Prefixes& p, unsigned op, unsigned pp) {
    if (p.map < 1 || p.map > 3 || kIndex.first[p.map - 1][op] == 0) return nullptr;
    for (const Row* r = kRows + kIndex.first[p.map - 1][op] - 1; r != std::end(kRows); r++) {
        if (r->map != p.map || r->opcode != op) return nullptr;
        if (!(r->prefixes >> pp & 1) || (r->flags & kEvexOnly && !p.evex) ||
            (r->flags & kNotEvex && p.evex) || (r->flags & kVexOnly && !p.vex))
            continue;
        return r;
    }
    return nullptr;
}

}  // namespace
}  // namespace revisit::machine::x64
