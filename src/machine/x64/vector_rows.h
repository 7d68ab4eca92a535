// The table of vector instructions of x86_64, in their three encodings: see x64/decode_vector.cpp.
//
// One rule says for opcodes of a map and their prefixes what is done, on elements of which size, and
// how much memory is touched. The old encoding, VEX and EVEX share rules but for what only one of them
// has. The compiler makes a row of it for every opcode and prefix, and an index to find these.
//
//     {1, {0xf8, 0xfb}, k66, P::psub, 1, kDoubling}     psubb, psubw, psubd, psubq
//     {1, {0x58, 0x59}, kAny, P::addps, kByPrefix, kNext}
//                                          addps, addpd, addss, addsd, mulps, mulpd, mulss, mulsd
#pragma once

#include "machine/x64/decode.h"

namespace revisit::machine::x64 {
namespace {

using P = X64Packed;

enum class Size : std::uint8_t { whole, half, quarter, eighth, element, width, b4, b8, b16, b32 };

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
    kDoubling = 1024,  // elements are twice as large with each opcode
    kNext = 2048,      // each opcode is the next operation
};

constexpr std::uint8_t kPlain = 1, k66 = 2, kF3 = 4, kF2 = 8, kAny = 15;
// Elements of 4 bytes, of 8 with 66 and f2; with f3 and f2 it is one of them.
constexpr unsigned kByPrefix = 0;

struct Opcodes {
    unsigned first, last;
    constexpr Opcodes(int one) : first(static_cast<unsigned>(one)), last(first) {}
    constexpr Opcodes(unsigned from, unsigned to) : first(from), last(to) {}
};
struct What {
    Op op;
    unsigned sub;
    constexpr What(Op which, unsigned more = 0) : op(which), sub(more) {}
    constexpr What(Op which, P packed) : op(which), sub(static_cast<unsigned>(packed)) {}
    constexpr What(Op which, X64Narrow how) : op(which), sub(static_cast<unsigned>(how)) {}
    constexpr What(P packed) : What(Op::packed, packed) {}
};
struct Rule {
    unsigned map;
    Opcodes opcodes;
    unsigned prefixes;
    What what;
    unsigned element;
    unsigned flags = 0;
    Size memory = Size::whole;
};

constexpr Rule kRules[] = {
    // moves
    {1, 0x10, kAny, Op::vector_load, kByPrefix},
    {1, 0x11, kAny, Op::vector_store, kByPrefix, kStores},
    {1, 0x12, kPlain | k66, P::movlps, 8, 0, Size::b8},
    {1, 0x12, kF3, P::movsldup, 4},
    {1, 0x12, kF2, P::movddup, 8},
    {1, 0x13, kPlain | k66, Op::vector_store, 8, kStores | kMemory | kScalar, Size::b8},
    {1, {0x14, 0x15}, kPlain | k66, P::punpckl, kByPrefix, kNext},
    {1, 0x16, kPlain | k66, P::movhps, 8, 0, Size::b8},
    {1, 0x16, kF3, P::movshdup, 4},
    {1, 0x17, kPlain | k66, P::movhps, 8, kStores | kMemory, Size::b8},
    {1, 0x28, kPlain | k66, Op::vector_load, kByPrefix},
    {1, 0x29, kPlain | k66, Op::vector_store, kByPrefix, kStores},
    {1, 0x2b, kPlain | k66, Op::vector_store, 8, kStores | kMemory},
    {1, 0x6e, k66, Op::general_to_vector, 4, 0, Size::width},
    {1, 0x6f, k66 | kF3, Op::vector_load, 4, kWide},
    {1, 0x6f, kF2, Op::vector_load, 1, kEvexOnly | kWide},
    {1, 0x7e, k66, Op::vector_to_general, 4, kStores, Size::width},
    {1, 0x7e, kF3, Op::vector_load, 8, kScalar, Size::b8},
    {1, 0x7f, k66 | kF3, Op::vector_store, 4, kWide | kStores},
    {1, 0x7f, kF2, Op::vector_store, 1, kEvexOnly | kWide | kStores},
    {1, 0xd6, k66, Op::vector_store, 8, kStores | kScalar, Size::b8},
    {1, 0xe7, k66, Op::vector_store, 4, kStores | kMemory},
    {1, 0xf0, kF2, Op::vector_load, 4, kNotEvex | kMemory},
    {2, 0x2a, k66, Op::vector_load, 4, kMemory},
    // one number with a fraction
    {1, 0x2a, kF3 | kF2, Op::integer_to_scalar, kByPrefix, 0, Size::width},
    {1, 0x7b, kF3 | kF2, {Op::integer_to_scalar, 1}, kByPrefix, kEvexOnly, Size::width},
    {1, 0x2c, kF3 | kF2, Op::scalar_to_integer, kByPrefix},
    {1, 0x2d, kF3 | kF2, Op::vector_to_opaque, kByPrefix},
    {1, {0x2e, 0x2f}, kPlain | k66, Op::scalar_compare, kByPrefix, 0, Size::element},
    // packed ones
    {1, 0x50, kPlain | k66, Op::vector_signs, kByPrefix, kNotEvex | kRegisters},
    {1, 0x51, kAny, P::sqrtps, kByPrefix},
    {1, {0x52, 0x53}, kPlain, Op::vector_other, 4, kNotEvex},
    {1, {0x52, 0x53}, kF3, Op::vector_other, 4, kNotEvex | kScalar, Size::element},
    {1, {0x54, 0x57}, kPlain | k66, P::pand, kByPrefix, kNext},
    {1, {0x58, 0x59}, kAny, P::addps, kByPrefix, kNext},
    {1, 0x5a, kPlain, P::cvtps2pd, 8, 0, Size::half},
    {1, 0x5a, k66, P::cvtpd2ps, 4},
    {1, 0x5a, kF3 | kF2, Op::scalar_convert, kByPrefix},
    {1, 0x5b, kPlain, P::cvtdq2ps, 4},
    {1, 0x5b, k66, P::cvtps2dq, 4},
    {1, 0x5b, kF3, P::cvttps2dq, 4},
    {1, {0x5c, 0x5f}, kAny, P::subps, kByPrefix, kNext},
    {1, {0x7c, 0x7d}, k66 | kF2, Op::vector_other, 4, kNotEvex},
    {1, 0xc2, kAny, P::cmpps, kByPrefix, kImmediate | kNotEvex},
    {1, 0xc2, kAny, Op::float_compare, kByPrefix, kImmediate | kEvexOnly},
    {1, 0xc6, kPlain | k66, P::shufps, kByPrefix, kImmediate},
    {1, 0xd0, k66 | kF2, Op::vector_other, 4, kNotEvex},
    {1, 0x7a, kF3, P::cvtudq2pd, 8, kEvexOnly, Size::half},
    {1, 0xe6, k66, P::cvttpd2dq, 4},
    {1, 0xe6, kF2, Op::vector_other, 8},
    {1, 0xe6, kF3, P::cvtdq2ps, 8, 0, Size::half},
    // integers
    {1, {0x60, 0x62}, k66, P::punpckl, 1, kDoubling},
    {1, 0x63, k66, P::packss, 1},
    {1, {0x64, 0x66}, k66, P::pcmpgt, 1, kDoubling},
    {1, 0x67, k66, P::packus, 1},
    {1, {0x68, 0x6a}, k66, P::punpckh, 1, kDoubling},
    {1, 0x6b, k66, P::packss, 2},
    {1, {0x6c, 0x6d}, k66, P::punpckl, 8, kNext},
    {1, 0x70, k66, P::pshufd, 4, kImmediate},
    {1, 0x70, kF3, P::pshufhw, 2, kImmediate},
    {1, 0x70, kF2, P::pshuflw, 2, kImmediate},
    {1, {0x71, 0x73}, k66, P::psll, 2, kImmediate | kDoubling | kRegisters},
    {1, {0x74, 0x76}, k66, P::pcmpeq, 1, kDoubling},
    {1, 0xc4, k66, Op::vector_insert, 2, kImmediate, Size::element},
    {1, 0xc5, k66, Op::vector_extract, 2, kImmediate | kRegisters},
    {1, {0xd1, 0xd3}, k66, P::psrl, 2, kDoubling, Size::b16},
    {1, 0xd4, k66, P::padd, 8},
    {1, 0xd5, k66, P::pmull, 2},
    {1, 0xd7, k66, Op::vector_signs, 1, kNotEvex | kRegisters},
    {1, {0xd8, 0xd9}, k66, P::psubus, 1, kDoubling},
    {1, 0xda, k66, P::pminu, 1},
    {1, 0xdb, k66, P::pand, 4, kWide},
    {1, {0xdc, 0xdd}, k66, P::paddus, 1, kDoubling},
    {1, 0xde, k66, P::pmaxu, 1},
    {1, 0xdf, k66, P::pandn, 4, kWide},
    {1, 0xe0, k66, P::pavg, 1},
    {1, 0xe1, k66, P::psra, 2, 0, Size::b16},
    {1, 0xe2, k66, P::psra, 4, kWide, Size::b16},
    {1, 0xe3, k66, P::pavg, 2},
    {1, 0xe4, k66, P::pmulhu, 2},
    {1, 0xe5, k66, P::pmulh, 2},
    {1, {0xe8, 0xe9}, k66, P::psubs, 1, kDoubling},
    {1, 0xea, k66, P::pmins, 2},
    {1, 0xeb, k66, P::por, 4, kWide},
    {1, {0xec, 0xed}, k66, P::padds, 1, kDoubling},
    {1, 0xee, k66, P::pmaxs, 2},
    {1, 0xef, k66, P::pxor, 4, kWide},
    {1, {0xf1, 0xf3}, k66, P::psll, 2, kDoubling, Size::b16},
    {1, 0xf4, k66, P::pmuludq, 8},
    {1, 0xf5, k66, P::pmaddwd, 2},
    {1, 0xf6, k66, P::psadbw, 1},
    {1, {0xf8, 0xfb}, k66, P::psub, 1, kDoubling},
    {1, {0xfc, 0xfe}, k66, P::padd, 1, kDoubling},
    // 0f 38
    {2, 0x00, k66, P::pshufb, 1},
    {2, {0x01, 0x03}, k66, Op::vector_other, 2, kNotEvex},
    {2, 0x04, k66, Op::vector_other, 2},
    {2, {0x05, 0x0a}, k66, Op::vector_other, 2, kNotEvex},
    {2, 0x0b, k66, Op::vector_other, 2},
    {2, {0x0c, 0x0d}, k66, P::vpermil, 4, kDoubling | kVexOnly},
    {2, {0x0e, 0x0f}, k66, Op::vector_to_flags, 4, kDoubling | kVexOnly | kNotEvex},
    {2, 0x16, k66, P::vpermd, 4, kVexOnly | kWide},
    {2, 0x17, k66, Op::ptest, 8, kNotEvex},
    {2, {0x18, 0x19}, k66, P::vpbroadcast, 4, kDoubling | kVexOnly, Size::element},
    {2, 0x1a, k66, P::vpbroadcast, 16, kVexOnly | kNotEvex | kMemory, Size::element},
    {2, {0x1c, 0x1e}, k66, P::pabs, 1, kDoubling},
    {2, 0x1f, k66, P::pabs, 8, kEvexOnly},
    {2, 0x20, k66, P::pmovsx, 2, 0, Size::half},
    {2, 0x21, k66, P::pmovsx, 4, 0, Size::quarter},
    {2, 0x22, k66, P::pmovsx, 8, 0, Size::eighth},
    {2, 0x23, k66, P::pmovsx, 4, 0, Size::half},
    {2, 0x24, k66, P::pmovsx, 8, 0, Size::quarter},
    {2, 0x25, k66, P::pmovsx, 8, 0, Size::half},
    {2, 0x26, k66, {Op::vector_compare, P::vptestm}, 1, kEvexOnly | kWide},
    {2, 0x26, kF3, {Op::vector_compare, P::vptestnm}, 1, kEvexOnly | kWide},
    {2, 0x27, k66, {Op::vector_compare, P::vptestm}, 4, kEvexOnly | kWide},
    {2, 0x27, kF3, {Op::vector_compare, P::vptestnm}, 4, kEvexOnly | kWide},
    {2, 0x28, k66, P::pmuldq, 8},
    {2, 0x28, kF3, Op::vector_of_mask, 1, kEvexOnly | kWide | kRegisters},
    {2, 0x29, k66, P::pcmpeq, 8},
    {2, 0x29, kF3, Op::vector_to_mask, 1, kEvexOnly | kRegisters},
    {2, 0x2b, k66, P::packus, 2},
    {2, 0x30, k66, P::pmovzx, 2, 0, Size::half},
    {2, 0x31, k66, P::pmovzx, 4, 0, Size::quarter},
    {2, 0x32, k66, P::pmovzx, 8, 0, Size::eighth},
    {2, 0x33, k66, P::pmovzx, 4, 0, Size::half},
    {2, 0x34, k66, P::pmovzx, 8, 0, Size::quarter},
    {2, 0x35, k66, P::pmovzx, 8, 0, Size::half},
    {2, 0x36, k66, P::vpermd, 4, kVexOnly | kWide},
    {2, 0x37, k66, P::pcmpgt, 8},
    {2, 0x38, k66, P::pmins, 1},
    {2, 0x38, kF3, Op::vector_of_mask, 4, kEvexOnly | kWide | kRegisters},
    {2, 0x39, k66, P::pmins, 4, kWide},
    {2, 0x39, kF3, Op::vector_to_mask, 4, kEvexOnly | kRegisters},
    {2, 0x3a, k66, P::pminu, 2},
    {2, 0x3b, k66, P::pminu, 4, kWide},
    {2, 0x3c, k66, P::pmaxs, 1},
    {2, 0x3d, k66, P::pmaxs, 4, kWide},
    {2, 0x3e, k66, P::pmaxu, 2},
    {2, 0x3f, k66, P::pmaxu, 4, kWide},
    {2, 0x40, k66, P::pmull, 4, kNotEvex},
    {2, 0x40, k66, P::pmull, 4, kEvexOnly | kWide},
    {2, 0x41, k66, Op::vector_other, 2, kNotEvex},
    {2, 0x45, k66, P::vpsrlv, 4, kVexOnly | kWideVex},
    {2, 0x46, k66, P::vpsrav, 4, kVexOnly | kWide},
    {2, 0x47, k66, P::vpsllv, 4, kVexOnly | kWideVex},
    {2, {0x58, 0x59}, k66, P::vpbroadcast, 4, kDoubling | kVexOnly, Size::element},
    {2, 0x5a, k66, P::vpbroadcast, 16, kVexOnly | kNotEvex | kMemory, Size::element},
    {2, 0x75, k66, P::vpermi2, 1, kEvexOnly | kWide},
    {2, {0x76, 0x77}, k66, P::vpermi2, 4, kEvexOnly | kWide},
    {2, {0x78, 0x79}, k66, P::vpbroadcast, 1, kDoubling | kVexOnly, Size::element},
    {2, {0x7a, 0x7b}, k66, Op::vector_spread, 1, kDoubling | kEvexOnly | kRegisters},
    {2, 0x7c, k66, Op::vector_spread, 4, kEvexOnly | kWide | kRegisters},
    {2, 0x7d, k66, P::vpermt2, 1, kEvexOnly | kWide},
    {2, {0x7e, 0x7f}, k66, P::vpermt2, 4, kEvexOnly | kWide},
    {2, 0x8d, k66, P::vpermd, 1, kEvexOnly | kWide},
    {2, {0xc8, 0xcd}, kPlain, Op::vector_other, 4, kNotEvex},
    {2, {0xdb, 0xdf}, k66, Op::vector_other, 8},
    // 0f 3a
    {3, {0x00, 0x01}, k66, P::vpermq, 8, kImmediate | kVexOnly},
    {3, 0x02, k66, P::pblend, 4, kImmediate | kVexOnly | kNotEvex},
    {3, 0x03, k66, P::valign, 4, kImmediate | kEvexOnly | kWide},
    {3, 0x04, k66, P::pshufd, 4, kImmediate | kVexOnly},
    {3, 0x05, k66, P::vpermilpd, 8, kImmediate | kVexOnly},
    {3, 0x06, k66, P::vperm2i128, 16, kImmediate | kVexOnly | kNotEvex},
    {3, {0x08, 0x09}, k66, P::roundps, 4, kImmediate | kDoubling},
    {3,
     {0x0a, 0x0b},
     k66,
     {Op::scalar, P::roundps},
     4,
     kImmediate | kDoubling | kScalar,
     Size::element},
    {3, {0x0c, 0x0d}, k66, P::pblend, 4, kImmediate | kDoubling | kNotEvex},
    {3, 0x0e, k66, P::pblend, 2, kImmediate | kNotEvex},
    {3, 0x0f, k66, P::palignr, 1, kImmediate},
    {3, {0x14, 0x15}, k66, Op::vector_extract, 1, kImmediate | kDoubling | kStores, Size::element},
    {3, 0x16, k66, Op::vector_extract, 4, kImmediate | kWideVex | kStores, Size::width},
    {3, 0x17, k66, Op::vector_extract, 4, kImmediate | kStores, Size::element},
    {3, 0x18, k66, {Op::vector_halves, 1}, 4, kImmediate | kVexOnly | kWide, Size::b16},
    {3, 0x19, k66, Op::vector_halves, 4, kImmediate | kVexOnly | kWide | kStores, Size::b16},
    {3, 0x1a, k66, {Op::vector_halves, 1}, 4, kImmediate | kEvexOnly | kWide, Size::b32},
    {3, 0x1b, k66, Op::vector_halves, 4, kImmediate | kEvexOnly | kWide | kStores, Size::b32},
    {3, {0x1e, 0x1f}, k66, Op::vector_compare, 4, kImmediate | kNext | kEvexOnly | kWide},
    {3, 0x20, k66, Op::vector_insert, 1, kImmediate, Size::element},
    {3, 0x21, k66, P::insertps, 4, kImmediate, Size::b4},
    {3, 0x22, k66, Op::vector_insert, 4, kImmediate | kWideVex, Size::width},
    {3, 0x23, k66, P::vshuff32x4, 4, kImmediate | kEvexOnly | kWide},
    {3, 0x25, k66, P::vpternlog, 4, kImmediate | kEvexOnly | kWide},
    {3, 0x38, k66, {Op::vector_halves, 1}, 4, kImmediate | kVexOnly | kWide, Size::b16},
    {3, 0x39, k66, Op::vector_halves, 4, kImmediate | kVexOnly | kWide | kStores, Size::b16},
    {3, 0x3a, k66, {Op::vector_halves, 1}, 4, kImmediate | kEvexOnly | kWide, Size::b32},
    {3, 0x3b, k66, Op::vector_halves, 4, kImmediate | kEvexOnly | kWide | kStores, Size::b32},
    {3, {0x3e, 0x3f}, k66, Op::vector_compare, 1, kImmediate | kNext | kEvexOnly | kWide},
    {3, {0x40, 0x42}, k66, Op::vector_other, 4, kImmediate | kNotEvex},
    {3, 0x43, k66, P::vshuff32x4, 4, kImmediate | kEvexOnly | kWide},
    {3, 0x44, k66, Op::vector_other, 8, kImmediate},
    {3, 0x46, k66, P::vperm2i128, 16, kImmediate | kVexOnly | kNotEvex},
    {3, {0x4a, 0x4b}, k66, P::pblendv, 4, kImmediate | kDoubling | kVexOnly | kNotEvex},
    {3, 0x4c, k66, P::pblendv, 1, kImmediate | kVexOnly | kNotEvex},
    {3, 0x61, k66, {Op::vector_to_opaque, 1}, 1, kImmediate | kNotEvex},
    {3, 0x63, k66, {Op::vector_to_opaque, 1}, 1, kImmediate | kNotEvex},
    {3, 0xcc, kPlain, Op::vector_other, 4, kImmediate | kNotEvex},
    {3, 0xdf, k66, Op::vector_other, 8, kImmediate | kNotEvex},
    // in the old encoding the third operand is the first register
    {2, 0x10, k66, P::pblendv, 1},
    {2, {0x14, 0x15}, k66, P::pblendv, 4, kDoubling},
    // in EVEX alone; what follows is found first
    {2, 0x10, k66, P::vpsrlv, 2, kEvexOnly},
    {2, 0x11, k66, P::vpsrav, 2, kEvexOnly},
    {2, 0x12, k66, P::vpsllv, 2, kEvexOnly},
    {2, {0x14, 0x15}, k66, Op::vector_other, 4, kEvexOnly | kWide},
    {2, 0x2c, k66, Op::vector_other, 4, kEvexOnly | kWide},
    {2, 0x42, k66, Op::vector_other, 4, kEvexOnly | kWide},
    {2, 0x44, k66, Op::vector_other, 4, kEvexOnly | kWide},
    {2, 0x4c, k66, Op::vector_other, 4, kEvexOnly | kWide},
    {2, 0x4d, k66, Op::vector_other, 4, kEvexOnly | kWide | kScalar, Size::element},
    {2, 0x4e, k66, Op::vector_other, 4, kEvexOnly | kWide},
    {2, 0x4f, k66, Op::vector_other, 4, kEvexOnly | kWide | kScalar, Size::element},
    {2, {0x54, 0x55}, k66, Op::vector_other, 4, kEvexOnly | kWide},
    {2, 0x64, k66, Op::vector_blend, 4, kEvexOnly | kWide},
    {2, 0x65, k66, Op::vector_blend, 4, kEvexOnly | kWide},
    {2, 0x66, k66, Op::vector_blend, 1, kEvexOnly | kWide},
    {2, 0xc4, k66, Op::vector_other, 4, kEvexOnly | kWide},
    {3, 0x26, k66, Op::vector_other, 4, kImmediate | kEvexOnly | kWide},
    {3, 0x50, k66, Op::vector_other, 4, kImmediate | kEvexOnly | kWide},
    {3, 0x54, k66, Op::vector_other, 4, kImmediate | kEvexOnly | kWide},
    {3, 0x56, k66, Op::vector_other, 4, kImmediate | kEvexOnly | kWide},
    {2, 0x10, kF3, {Op::vector_narrow, X64Narrow::unsigned_}, 1, kEvexOnly | kStores, Size::half},
    {2, 0x11, kF3, {Op::vector_narrow, X64Narrow::unsigned_}, 1, kEvexOnly | kStores, Size::quarter},
    {2, 0x12, kF3, {Op::vector_narrow, X64Narrow::unsigned_}, 1, kEvexOnly | kStores, Size::eighth},
    {2, 0x13, kF3, {Op::vector_narrow, X64Narrow::unsigned_}, 2, kEvexOnly | kStores, Size::half},
    {2, 0x14, kF3, {Op::vector_narrow, X64Narrow::unsigned_}, 2, kEvexOnly | kStores, Size::quarter},
    {2, 0x15, kF3, {Op::vector_narrow, X64Narrow::unsigned_}, 4, kEvexOnly | kStores, Size::half},
    {2, 0x20, kF3, {Op::vector_narrow, X64Narrow::signed_}, 1, kEvexOnly | kStores, Size::half},
    {2, 0x21, kF3, {Op::vector_narrow, X64Narrow::signed_}, 1, kEvexOnly | kStores, Size::quarter},
    {2, 0x22, kF3, {Op::vector_narrow, X64Narrow::signed_}, 1, kEvexOnly | kStores, Size::eighth},
    {2, 0x23, kF3, {Op::vector_narrow, X64Narrow::signed_}, 2, kEvexOnly | kStores, Size::half},
    {2, 0x24, kF3, {Op::vector_narrow, X64Narrow::signed_}, 2, kEvexOnly | kStores, Size::quarter},
    {2, 0x25, kF3, {Op::vector_narrow, X64Narrow::signed_}, 4, kEvexOnly | kStores, Size::half},
    {2, 0x30, kF3, {Op::vector_narrow, X64Narrow::cut}, 1, kEvexOnly | kStores, Size::half},
    {2, 0x31, kF3, {Op::vector_narrow, X64Narrow::cut}, 1, kEvexOnly | kStores, Size::quarter},
    {2, 0x32, kF3, {Op::vector_narrow, X64Narrow::cut}, 1, kEvexOnly | kStores, Size::eighth},
    {2, 0x33, kF3, {Op::vector_narrow, X64Narrow::cut}, 2, kEvexOnly | kStores, Size::half},
    {2, 0x34, kF3, {Op::vector_narrow, X64Narrow::cut}, 2, kEvexOnly | kStores, Size::quarter},
    {2, 0x35, kF3, {Op::vector_narrow, X64Narrow::cut}, 4, kEvexOnly | kStores, Size::half},
};

struct Row {
    std::uint8_t prefix = 0;
    Op op = Op::unknown;
    std::uint8_t sub = 0, element = 0;
    Size memory = Size::whole;
    unsigned flags = 0, next = 0;  // of the same opcode
};

// What a rule says of its k-th opcode, with a prefix.
constexpr Row row_of(const Rule& rule, unsigned k, unsigned prefix) {
    Row row{static_cast<std::uint8_t>(prefix),
            rule.what.op,
            static_cast<std::uint8_t>(rule.what.sub + (rule.flags & kNext ? k : 0)),
            static_cast<std::uint8_t>(rule.element << (rule.flags & kDoubling ? k : 0)),
            rule.memory,
            rule.flags};
    if (rule.element != kByPrefix) return row;
    row.element = prefix == kPlain || prefix == kF3 ? 4 : 8;
    if (prefix == kPlain || prefix == k66 || rule.memory != Size::whole) return row;
    row.memory = Size::element;
    row.flags |= kScalar;
    if (row.op == Op::packed) row.op = Op::scalar;
    return row;
}

template <class Take>
constexpr void for_rows(Take take) {
    for (const Rule& rule : kRules)
        for (unsigned op = rule.opcodes.first; op <= rule.opcodes.last; op++)
            for (unsigned prefix = kPlain; prefix <= kF2; prefix *= 2)
                if (rule.prefixes & prefix) take(rule, op, prefix);
}
constexpr unsigned kRows = [] {
    unsigned rows = 0;
    for_rows([&](const Rule&, unsigned, unsigned) { rows++; });
    return rows;
}();

struct Table {
    Row rows[kRows + 1];               // from 1 on
    std::uint16_t first[3][256] = {};  // 0 = none
    consteval Table() {
        unsigned used = 0;
        for_rows([&](const Rule& rule, unsigned op, unsigned prefix) {
            std::uint16_t& begin = first[rule.map - 1][op];
            rows[++used] = row_of(rule, op - rule.opcodes.first, prefix);
            rows[used].next = begin;
            begin = static_cast<std::uint16_t>(used);
        });
    }
};
constexpr Table kTable;

const Row* find_row(const Prefixes& p, unsigned op, unsigned pp) {
    if (p.map < 1 || p.map > 3) return nullptr;
    for (unsigned k = kTable.first[p.map - 1][op]; k != 0; k = kTable.rows[k].next) {
        const Row& r = kTable.rows[k];
        if (!(r.prefix >> pp & 1) || (r.flags & kEvexOnly && !p.evex) ||
            (r.flags & kNotEvex && p.evex) || (r.flags & kVexOnly && !p.vex))
            continue;
        return &r;
    }
    return nullptr;
}

}  // namespace
}  // namespace revisit::machine::x64
