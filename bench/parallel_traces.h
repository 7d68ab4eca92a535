// The traces of the parallel benchmarks, made by all cores: access i depends on i alone.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <deque>
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

// A stack of 2^18 blocks; depths are exponential with mean 1000, one in a hundred anywhere. No access
// can be told without those before it, so 2^22 of them are made once and go round: block 0 of the stack
// is as good as any other.
inline std::uint64_t stack_block(std::uint64_t i) {
    static const std::vector<std::uint64_t> round = [] {
        constexpr std::uint32_t kBlocks = 1u << 18, kBucket = 512;
        // Buckets of a few hundred blocks, so that taking one out moves little.
        std::deque<std::vector<std::uint32_t>> buckets;
        for (std::uint32_t block = 0; block < kBlocks; ++block) {
            if (block % kBucket == 0) buckets.emplace_back();
            buckets.back().push_back(block);
        }
        std::vector<std::uint64_t> out(1u << 22);
        for (std::uint64_t n = 0; n < out.size(); ++n) {
            const std::uint64_t r = mixed(n);
            const double unit = static_cast<double>(r >> 11) * 0x1p-53;
            std::size_t depth = mixed(~n) % 100 == 0
                                    ? r % kBlocks
                                    : static_cast<std::size_t>(-std::log1p(-unit) * 1000);
            depth = std::min<std::size_t>(depth, kBlocks - 1);
            std::size_t bucket = 0;
            while (depth >= buckets[bucket].size()) depth -= buckets[bucket++].size();
            auto& from = buckets[bucket];  // the front bucket's last is the top
            const auto at = from.end() - 1 - static_cast<std::ptrdiff_t>(depth);
            const std::uint32_t block = *at;
            from.erase(at);
            if (from.empty()) buckets.erase(buckets.begin() + static_cast<std::ptrdiff_t>(bucket));
            if (buckets.front().size() >= 2 * kBucket) buckets.emplace_front();
            buckets.front().push_back(block);
            out[n] = block;
        }
        return out;
    }();
    return round[i & (round.size() - 1)];
}

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
        {"scan 2^22", [](std::uint64_t i) { return i & 0x3fffff; }},
        // Rows of a times columns of b: 512 x 512 matrices of 8-byte elements, 64-byte lines, c in a
        // register.
        {"matrix multiply 512",
         [](std::uint64_t i) {
             const std::uint64_t step = i / 2, k = step % 512, column = step / 512 % 512,
                                 row = step / 512 / 512 % 512;
             return i % 2 == 0 ? (row * 512 + k) / 8 : 32768 + (k * 512 + column) / 8;
         }},
        {"geometric stack", stack_block},
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
