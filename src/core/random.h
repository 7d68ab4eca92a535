// A small fast generator of random numbers (splitmix64, Steele et al. 2014): 64 good bits from one
// multiply chain, the same on every machine, unlike the standard library's distributions.
#pragma once

#include <cstdint>

namespace revisit {

class Random {
 public:
    explicit Random(std::uint64_t seed) : state_(seed) {}

    std::uint64_t next() {
        state_ += 0x9e3779b97f4a7c15u;
        return scramble(state_);
    }
    // In [0, bound), for bounds far below 2^32.
    std::uint32_t below(std::uint32_t bound) {
        return static_cast<std::uint32_t>((next() >> 32) * bound >> 32);
    }
    double unit() { return static_cast<double>(next() >> 11) * 0x1p-53; }  // in [0, 1)

    static std::uint64_t scramble(std::uint64_t x) {
        x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
        x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
        return x ^ (x >> 31);
    }

 private:
    std::uint64_t state_;
};

}  // namespace revisit
