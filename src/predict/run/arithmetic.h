// What an instruction of the slice calculates: shared by the machine, which does one at a time, and by
// the paths of affine_path.cpp.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "predict/slice/slice.h"

namespace revisit::predict {

// Overflow wraps: all sums are taken as bits.
inline std::uint64_t bits(std::int64_t value) {
    return static_cast<std::uint64_t>(value);
}
inline std::int64_t signed_of(std::uint64_t value) {
    return static_cast<std::int64_t>(value);
}

inline std::int64_t sign_extend(std::int64_t value, unsigned width) {
    if (width >= 64) return value;
    if (width == 1) return value & 1;
    const unsigned shift = 64 - width;
    return signed_of(bits(value) << shift) >> shift;
}
inline std::uint64_t zero_extend(std::int64_t value, unsigned width) {
    return width >= 64 ? bits(value) : bits(value) & ((std::uint64_t{1} << width) - 1);
}

// Sets the register the instruction writes, and whether it is known. False: it is no plain calculation
// (memory, calls, divisions), and nothing was done.
inline bool calculate(const Instruction& i, std::vector<std::int64_t>& v,
                      std::vector<std::uint8_t>& k) {
    const auto set = [&](std::int64_t value) { v[i.dst] = sign_extend(value, i.width); };
    const auto binary_known = [&] { k[i.dst] = k[i.a] & k[i.b]; };
    switch (i.op) {
        case Op::offset:
            v[i.dst] = signed_of(bits(v[i.a]) + bits(v[i.b]) * bits(i.imm));
            binary_known();
            return true;
        case Op::add:
            set(signed_of(bits(v[i.a]) + bits(v[i.b])));
            binary_known();
            return true;
        case Op::sub:
            set(signed_of(bits(v[i.a]) - bits(v[i.b])));
            binary_known();
            return true;
        case Op::mul:
            set(signed_of(bits(v[i.a]) * bits(v[i.b])));
            binary_known();
            return true;
        case Op::eq:
            v[i.dst] = v[i.a] == v[i.b];
            binary_known();
            return true;
        case Op::ne:
            v[i.dst] = v[i.a] != v[i.b];
            binary_known();
            return true;
        case Op::slt:
            v[i.dst] = v[i.a] < v[i.b];
            binary_known();
            return true;
        case Op::sle:
            v[i.dst] = v[i.a] <= v[i.b];
            binary_known();
            return true;
        case Op::ult:
            v[i.dst] = bits(v[i.a]) < bits(v[i.b]);
            binary_known();
            return true;
        case Op::ule:
            v[i.dst] = bits(v[i.a]) <= bits(v[i.b]);
            binary_known();
            return true;
        case Op::shl:
            set(signed_of(bits(v[i.a]) << (v[i.b] & 63)));
            binary_known();
            return true;
        case Op::lshr:
            set(signed_of(zero_extend(v[i.a], i.width) >> (v[i.b] & 63)));
            binary_known();
            return true;
        case Op::ashr:
            set(v[i.a] >> (v[i.b] & 63));
            binary_known();
            return true;
        case Op::bit_and:
            v[i.dst] = v[i.a] & v[i.b];
            binary_known();
            return true;
        case Op::bit_or:
            v[i.dst] = v[i.a] | v[i.b];
            binary_known();
            return true;
        case Op::bit_xor:
            v[i.dst] = v[i.a] ^ v[i.b];
            binary_known();
            return true;
        case Op::smin:
            v[i.dst] = std::min(v[i.a], v[i.b]);
            binary_known();
            return true;
        case Op::smax:
            v[i.dst] = std::max(v[i.a], v[i.b]);
            binary_known();
            return true;
        case Op::umin:
            v[i.dst] = signed_of(std::min(bits(v[i.a]), bits(v[i.b])));
            binary_known();
            return true;
        case Op::umax:
            v[i.dst] = signed_of(std::max(bits(v[i.a]), bits(v[i.b])));
            binary_known();
            return true;
        case Op::abs:
            set(v[i.a] < 0 ? signed_of(0 - bits(v[i.a])) : v[i.a]);
            k[i.dst] = k[i.a];
            return true;
        case Op::select: {
            const auto from = v[i.a] ? i.b : i.c;
            v[i.dst] = v[from];
            k[i.dst] = k[i.a] ? k[from] : (k[i.b] && k[i.c] && v[i.b] == v[i.c]);
            return true;
        }
        case Op::trunc:
            set(v[i.a]);
            k[i.dst] = k[i.a];
            return true;
        case Op::zext:
            v[i.dst] = signed_of(zero_extend(v[i.a], i.width));
            k[i.dst] = k[i.a];
            return true;
        case Op::sext:
            v[i.dst] = i.width == 1 ? -v[i.a] : v[i.a];
            k[i.dst] = k[i.a];
            return true;
        case Op::copy:
            v[i.dst] = v[i.a];
            k[i.dst] = k[i.a];
            return true;
        default:
            return false;
    }
}

}  // namespace revisit::predict
