// The traces of the parallel benchmarks, made by all cores: access i depends on i alone.
#pragma once

#include <cmath>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/parallel.h"

namespace revisit::bench {

inline std::uint64_t mixed(std::uint64_t x) {  // splitmix64
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

struct TraceKind {
    std::string name;
    std::uint64_t (*block)(std::uint64_t i);
};

// Zipf with exponent 1, by its continuous form: block k with probability about 1 / (k ln blocks).
template <unsigned kLog2Blocks>
std::uint64_t zipf(std::uint64_t i) {
    const double u = static_cast<double>(mixed(i) >> 11) * 0x1p-53;
    return static_cast<std::uint64_t>(std::exp(u * (kLog2Blocks * 0.6931471805599453))) - 1;
}

inline std::vector<TraceKind> parallel_traces() {
    return {
        {"uniform 2^20", [](std::uint64_t i) { return mixed(i) >> 44; }},
        {"zipf 2^24", zipf<24>},
        {"zipf 2^24, 48-bit ids",
         [](std::uint64_t i) { return (zipf<24>(i) + 1) * 0x9e3779b97f4a7c15u >> 16; }},
        {"scan 2^24", [](std::uint64_t i) { return i & 0xffffff; }},
        // Rows of a times columns of b: 512 x 512 matrices of 8-byte elements, 64-byte lines, c in a
        // register.
        {"matrix multiply 512",
         [](std::uint64_t i) {
             const std::uint64_t step = i / 2, k = step % 512, column = step / 512 % 512,
                                 row = step / 512 / 512 % 512;
             return i % 2 == 0 ? (row * 512 + k) / 8 : 32768 + (k * 512 + column) / 8;
         }},
        // Mostly near, seldom far: distances fall off by powers of two.
        {"local",
         [](std::uint64_t i) {
             const std::uint64_t r = mixed(i);
             const unsigned reach = static_cast<unsigned>(__builtin_ctzll(r | 1u << 17));
             return (i >> 9) + (r >> 20) % (std::uint64_t{8} << reach);
         }},
    };
}

inline void fill(const TraceKind& kind, std::span<std::uint64_t> out) {
    constexpr std::size_t kPiece = 1 << 20;
    parallel_for(thread_count(0), (out.size() + kPiece - 1) / kPiece, [&](std::size_t piece) {
        const std::size_t low = piece * kPiece, high = std::min(out.size(), low + kPiece);
        for (std::size_t i = low; i < high; ++i) out[i] = kind.block(i);
    });
}

}  // namespace revisit::bench
