#include "traces.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace revisit::bench {
namespace {

// xorshift128+ (Vigna 2014): fast, and good enough to place accesses.
class Random {
 public:
    std::uint64_t next() {
        std::uint64_t a = state_[0];
        const std::uint64_t b = state_[1];
        state_[0] = b;
        a ^= a << 23;
        state_[1] = a ^ b ^ a >> 17 ^ b >> 26;
        return state_[1] + b;
    }
    double unit() { return static_cast<double>(next() >> 11) * 0x1p-53; }  // [0, 1)

 private:
    std::uint64_t state_[2] = {0x9e3779b97f4a7c15u, 0xd1b54a32d192ed03u};
};

// Zipf ranks by rejection-inversion (Hörmann and Derflinger 1996): O(1) a draw whatever the number of
// ranks.
class Zipf {
 public:
    Zipf(double ranks, double exponent) : ranks_(ranks), exponent_(exponent) {
        low_ = integral(1.5) - 1;
        high_ = integral(ranks + 0.5);
        accept_ = 1 - inverse(integral(1.5) - std::pow(2, -exponent));
    }
    std::uint64_t draw(Random& random) const {
        for (;;) {
            const double u = high_ + random.unit() * (low_ - high_);
            const double x = inverse(u);
            const double rank = std::clamp(std::floor(x + 0.5), 1.0, ranks_);
            if (rank - x <= accept_ || u >= integral(rank + 0.5) - std::pow(rank, -exponent_))
                return static_cast<std::uint64_t>(rank);
        }
    }

 private:
    double integral(double x) const { return (std::pow(x, 1 - exponent_) - 1) / (1 - exponent_); }
    double inverse(double y) const { return std::pow(1 + (1 - exponent_) * y, 1 / (1 - exponent_)); }

    double ranks_, exponent_, low_, high_, accept_;
};

// An LRU stack that finds the block at any depth: a Fenwick tree over the times of last accesses.
class LruStack {
 public:
    explicit LruStack(std::uint32_t blocks)
        : times_(std::bit_ceil(blocks) * 16),
          tree_(times_ + 1),
          block_at_(times_, kNone),
          live_(blocks) {
        for (std::uint32_t block = 0; block < blocks; block++) block_at_[block] = block;
        now_ = blocks;
        rebuild();
    }
    // Takes the block at `depth` (0 = last touched) to the top.
    std::uint32_t touch(std::uint32_t depth) {
        if (now_ == times_) compact();
        std::uint32_t left = live_ - depth, time = 0;
        for (std::uint32_t step = times_; step != 0; step /= 2)
            if (time + step <= times_ && tree_[time + step] < left) {
                time += step;
                left -= tree_[time];
            }
        const std::uint32_t block = block_at_[time];
        block_at_[time] = kNone;
        add(time, ~0u);
        block_at_[now_] = block;
        add(now_++, 1);
        return block;
    }

 private:
    static constexpr std::uint32_t kNone = ~0u;

    void add(std::uint32_t time, std::uint32_t change) {
        for (std::uint32_t i = time + 1; i <= times_; i += i & -i) tree_[i] += change;
    }
    void compact() {
        now_ = 0;
        for (std::uint32_t time = 0; time < times_; time++)
            if (block_at_[time] != kNone) block_at_[now_++] = block_at_[time];
        for (std::uint32_t time = now_; time < times_; time++) block_at_[time] = kNone;
        rebuild();
    }
    void rebuild() {
        for (std::uint32_t i = 1; i <= times_; i++) tree_[i] = block_at_[i - 1] != kNone;
        for (std::uint32_t i = 1; i <= times_; i++)
            if (i + (i & -i) <= times_) tree_[i + (i & -i)] += tree_[i];
    }

    std::uint32_t times_;
    std::vector<std::uint32_t> tree_;
    std::vector<std::uint32_t> block_at_;
    std::uint32_t live_;
    std::uint32_t now_ = 0;
};

std::vector<std::uint64_t> zipf_trace(std::size_t accesses) {
    constexpr std::uint64_t kBlocks = std::uint64_t{1} << 24;
    Random random;
    const Zipf zipf(kBlocks, 0.99);
    std::vector<std::uint64_t> out(accesses);
    // Popular blocks are scattered, not neighbours: an odd factor permutes the ids.
    for (auto& block : out) block = ((zipf.draw(random) - 1) * 0x9e3779b1u + 12345) & (kBlocks - 1);
    return out;
}

// Depths are exponential with mean 1000, and one in a hundred is anywhere in the stack.
std::vector<std::uint64_t> stack_trace(std::size_t accesses) {
    constexpr std::uint32_t kBlocks = 1u << 18;
    Random random;
    LruStack stack(kBlocks);
    std::vector<std::uint64_t> out(accesses);
    for (auto& block : out) {
        const bool deep = random.unit() < 0.01;
        const double depth = deep ? random.unit() * kBlocks : -std::log1p(-random.unit()) * 1000;
        block = stack.touch(static_cast<std::uint32_t>(std::min(depth, kBlocks - 1.0)));
    }
    return out;
}

// for i, j, k: c[i][j] += a[i][k] * b[k][j], an id an element.
std::vector<std::uint64_t> matrix_trace(std::size_t accesses) {
    constexpr std::uint64_t kSide = 400, kMatrix = kSide * kSide + 512;
    std::vector<std::uint64_t> out;
    out.reserve(accesses + 3);
    for (std::uint64_t i = 0; out.size() < accesses; i = (i + 1) % kSide)
        for (std::uint64_t j = 0; j < kSide && out.size() < accesses; j++)
            for (std::uint64_t k = 0; k < kSide && out.size() < accesses; k++) {
                out.push_back(i * kSide + k);
                out.push_back(kMatrix + k * kSide + j);
                out.push_back(2 * kMatrix + i * kSide + j);
            }
    out.resize(accesses);
    return out;
}

std::vector<std::uint64_t> scan_trace(std::size_t accesses) {
    std::vector<std::uint64_t> out(accesses);
    for (std::size_t i = 0; i < accesses; i++) out[i] = i % (4u << 20);
    return out;
}

}  // namespace

std::vector<std::uint64_t> uniform_trace(std::size_t accesses, std::uint64_t blocks) {
    Random random;
    std::vector<std::uint64_t> out(accesses);
    for (auto& block : out) block = random.next() % blocks;
    return out;
}

std::vector<TraceKind> trace_kinds() {
    return {
        {"uniform", "uniform over 2^20 blocks",
         [](std::size_t n) { return uniform_trace(n, 1u << 20); }},
        {"zipf", "Zipf 0.99 over 2^24 blocks", zipf_trace},
        {"stack", "geometric stack distances, mean 1000", stack_trace},
        {"matrix", "elements of a 400^3 matrix multiply, ijk", matrix_trace},
        {"scan", "cyclic scan of 2^22 blocks", scan_trace},
    };
}

std::vector<std::uint64_t> scrambled(std::vector<std::uint64_t> blocks) {
    for (auto& block : blocks) {  // the finalizer of MurmurHash3, a bijection
        block ^= block >> 33;
        block *= 0xff51afd7ed558ccdu;
        block ^= block >> 33;
        block *= 0xc4ceb9fe1a85ec53u;
        block ^= block >> 33;
    }
    return blocks;
}

}  // namespace revisit::bench
