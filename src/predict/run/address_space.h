// Where the machine puts what a program has: globals one after the other, the heap, the stack, and
// arrays that arguments point to, far apart.
#pragma once

#include <cstdint>

namespace revisit::predict {

inline constexpr std::uint64_t kLine = 64;
inline constexpr std::uint64_t kGlobalBase = std::uint64_t{1} << 32;
inline constexpr std::uint64_t kHeapBase = std::uint64_t{1} << 44;
inline constexpr std::uint64_t kStackBase = std::uint64_t{1} << 46;
inline constexpr std::uint64_t kArgumentBase = std::uint64_t{1} << 47;
inline constexpr std::uint64_t kArgumentSpan = std::uint64_t{1} << 41;

inline std::uint64_t align_up(std::uint64_t value, std::uint64_t to) {
    return (value + to - 1) / to * to;
}

// Skewed by an odd number of lines, so that arrays do not all start in one cache set.
inline std::uint64_t argument_base(std::uint64_t pointer) {
    return kArgumentBase + (pointer + 1) * (kArgumentSpan + 65 * kLine);
}

}  // namespace revisit::predict
