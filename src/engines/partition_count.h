// Reuse distances of a whole chunk at once, without a sequential state: see partition_count.cpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/parallel.h"
#include "engines/big_vector.h"

namespace revisit {

inline constexpr std::uint32_t kNoAccess = ~std::uint32_t{0};
inline constexpr std::uint32_t kMostAtOnce = std::uint32_t{1} << 31;  // accesses in one chunk

// previous[i] = index of the access before i to the same block, kNoAccess for a first touch.
std::vector<std::uint32_t> previous_accesses(std::span<const std::uint64_t> blocks, unsigned threads);

// The reuses in time order. `key` is the rank of the previous access among those that are reused later,
// so the keys are a permutation of 0 … count-1; `span` is the number of accesses in between.
struct Reuses {
    std::vector<std::uint32_t> key;
    std::vector<std::uint32_t> span;
};
Reuses reuses_of(std::span<const std::uint32_t> previous);

// The same in arrays that are not cleared first, which one thread would do for all.
struct ReuseArrays {
    explicit ReuseArrays(std::size_t reuses) : count(reuses), key(reuses), span(reuses) {}
    std::size_t count;
    BigVector<std::uint32_t> key, span;
};

struct PartitionShape {
    unsigned tail = 14;   // log2 of the tile that is finished in fast memory, 14 at most
    unsigned widest = 4;  // bits of a digit at most
};

// Subtracts from every span the number of earlier elements with a larger key, which leaves the reuse
// distance, and returns the distances in order of key.
std::vector<std::uint32_t> distances_by_key(const Reuses& reuses, unsigned threads,
                                            const PartitionShape& shape = {});
// In place: afterwards `span` holds the distances in order of key.
void count_distances_by_key(ReuseArrays& reuses, Crew& crew, const PartitionShape& shape = {});

}  // namespace revisit
