// The arithmetic of the partition passes, shared by the threads' form and the GPU's (C++20, no
// library).
//
// Elements carry keys that are a permutation of 0 … count-1. A pass looks at some bits of the key:
// elements whose higher bits agree lie together in a bucket, in time order, and the pass splits each
// bucket stably by the digit. Because the keys are dense, bucket b of a pass that leaves `shift` bits
// below its digit is exactly the positions [b << (shift + bits), (b + 1) << (shift + bits)), cut off at
// `count`: no counting is needed to know where a bucket or a digit begins. When only `tail` bits are
// left, a bucket is a tile small enough for fast memory and is finished there.
//
// A tile has 2^tail elements, so it never straddles two buckets. The table of counts is laid out
// (bucket, digit, tile in the bucket): one exclusive sum over it gives every tile its places to write
// to.
#pragma once

#include <cstdint>

#ifdef __CUDACC__
#define REVISIT_HOST_DEVICE __host__ __device__
#else
#define REVISIT_HOST_DEVICE
#endif

namespace revisit {

struct PartitionPass {
    unsigned shift = 0;  // bits of the key below the digit
    unsigned bits = 0;   // of the digit
    unsigned tail = 0;   // log2 of the tile

    REVISIT_HOST_DEVICE unsigned digits() const { return 1u << bits; }
    REVISIT_HOST_DEVICE unsigned digit(std::uint32_t key) const {
        return key >> shift & (digits() - 1);
    }
    REVISIT_HOST_DEVICE std::uint32_t bucket_of_tile(std::uint32_t tile) const {
        return tile >> (shift + bits - tail);
    }
    // Where digit `digit` of bucket `bucket` begins, when it exists.
    REVISIT_HOST_DEVICE std::uint64_t begin(std::uint64_t bucket, unsigned digit) const {
        return bucket << (shift + bits) | std::uint64_t{digit} << shift;
    }
    REVISIT_HOST_DEVICE std::uint64_t count_index(std::uint32_t tile, unsigned digit) const {
        const unsigned tiles_log2 = shift + bits - tail;
        const std::uint64_t in_bucket = tile & ((1u << tiles_log2) - 1);
        return (std::uint64_t{bucket_of_tile(tile)} << bits | digit) << tiles_log2 | in_bucket;
    }
    REVISIT_HOST_DEVICE std::uint64_t count_size(std::uint64_t count) const {
        const std::uint64_t buckets =
            (count + (std::uint64_t{1} << (shift + bits)) - 1) >> (shift + bits);
        return buckets << (shift + 2 * bits - tail);
    }
};

struct PartitionPlan {
    static constexpr unsigned kMost = 32;
    PartitionPass passes[kMost];
    unsigned count = 0;
};

// Passes of at most `widest` bits, as even as can be, until buckets are tiles of 2^tail elements.
constexpr PartitionPlan plan_partition(std::uint64_t elements, unsigned tail, unsigned widest) {
    unsigned bits = 0;
    while ((std::uint64_t{1} << bits) < elements) ++bits;
    PartitionPlan plan;
    if (bits <= tail) return plan;
    const unsigned above = bits - tail;
    plan.count = (above + widest - 1) / widest;
    unsigned left = above;
    for (unsigned i = 0; i < plan.count; ++i) {
        const unsigned width = (left + plan.count - i - 1) / (plan.count - i);
        left -= width;
        plan.passes[i] = {tail + left, width, tail};
    }
    return plan;
}

}  // namespace revisit
