// The passes of engines/partition_count.cpp as kernels: same plan, same tiles.
//
// A tile is a block's work: 2^13 elements, 16 a thread. A row is the 32 elements a warp holds at a
// time, in time order. Within a row, one ballot a bit tells each lane who has its digit and who a
// larger one; a table of counts by (digit, row), summed, does the same between rows; the table of
// counts by (digit, tile), summed, between tiles. What is left after that are the smaller digits: in
// the last kernel two rounds in shared memory bring the elements into rows of 32 equal but for five
// bits, and a ballot a bit ends it. A pass reads 4 + 8 bytes an element and writes 8.
#pragma once

#include "engines/partition_plan.h"
#include "gpu/cuda_support.cuh"
#include "gpu/device_bins.cuh"

namespace revisit::gpu {

constexpr u32 kTail = 13, kTile = 1u << kTail, kItems = 16, kThreads = kTile / kItems;
constexpr u32 kWarps = kThreads / 32, kRows = kTile / 32;
constexpr u32 kWidest = 5;  // bits of a digit

struct Elements {
    u32* key;
    u32* span;
};

// Replaces the table's counts by their exclusive sum in order of index.
template <u32 kCount>
__device__ __forceinline__ void sum_table(u16* table, u32* warp_sums) {
    constexpr u32 kEach = kCount >= kThreads ? kCount / kThreads : 1;
    const u32 first = threadIdx.x * kEach;
    const bool mine = first < kCount;
    u32 counts[kEach], sum = 0;
    if (mine) {
        if constexpr (kEach % 8 == 0) {
#pragma unroll
            for (u32 q = 0; q < kEach; q += 8) {
                const uint4 packed = *reinterpret_cast<const uint4*>(table + first + q);
                const u32 words[4] = {packed.x, packed.y, packed.z, packed.w};
#pragma unroll
                for (u32 w = 0; w < 4; ++w) {
                    counts[q + 2 * w] = words[w] & 0xffff;
                    counts[q + 2 * w + 1] = words[w] >> 16;
                }
            }
        } else {
#pragma unroll
            for (u32 q = 0; q < kEach; ++q) counts[q] = table[first + q];
        }
#pragma unroll
        for (u32 q = 0; q < kEach; ++q) sum += counts[q];
    }
    u32 before = exclusive_sum<kThreads>(sum, warp_sums);
    if (!mine) return;
#pragma unroll
    for (u32 q = 0; q < kEach; ++q) {
        const u32 count = counts[q];
        counts[q] = before;
        before += count;
    }
    if constexpr (kEach % 8 == 0) {
#pragma unroll
        for (u32 q = 0; q < kEach; q += 8)
            *reinterpret_cast<uint4*>(table + first + q) =
                make_uint4(counts[q] | counts[q + 1] << 16, counts[q + 2] | counts[q + 3] << 16,
                           counts[q + 4] | counts[q + 5] << 16, counts[q + 6] | counts[q + 7] << 16);
    } else {
#pragma unroll
        for (u32 q = 0; q < kEach; ++q) table[first + q] = static_cast<u16>(counts[q]);
    }
}

// One round inside a tile: the tables of a digit of kBits over groups of kGroupRows rows. `place`
// becomes where in the tile the first element of (group, digit, row) goes, `larger` how many elements
// of earlier rows of the group have a larger digit.
template <u32 kBits, u32 kGroupRows>
struct Round {
    static constexpr u32 kDigits = 1u << kBits, kCount = kDigits * kRows;
    alignas(16) u16 place[kCount];
    alignas(16) u16 larger[kCount];

    __device__ static __forceinline__ u32 index(u32 digit, u32 row) {
        return (row / kGroupRows * kDigits + digit) * kGroupRows + row % kGroupRows;
    }
    __device__ void clear() {
        u32* words = reinterpret_cast<u32*>(place);
        for (u32 i = threadIdx.x; i < kCount / 2; i += kThreads) words[i] = 0;
    }
    // Notes a row's digits; gives the lane's place among its equals and who in the row is larger.
    __device__ __forceinline__ void note(u32 digit, u32 row, u32& rank, u32& larger_before) {
        const DigitMasks masks = compare_digits<kBits>(digit);
        const u32 before = lanes_before();
        rank = __popc(masks.equal & before);
        larger_before = __popc(masks.larger & before);
        if (rank == 0) place[index(digit, row)] = static_cast<u16>(__popc(masks.equal));
    }
    __device__ void sum(u32* warp_sums) {
        __syncthreads();
        sum_table<kCount>(place, warp_sums);
        __syncthreads();
        for (u32 row = threadIdx.x; row < kRows; row += kThreads) {
            const u32 first = row / kGroupRows * kGroupRows;
            u32 above = 0;
#pragma unroll
            for (u32 d = kDigits; d-- > 0;) {
                larger[index(d, row)] = static_cast<u16>(above);
                above += place[index(d, row)] - place[index(d, first)];
            }
        }
        __syncthreads();
    }
};

// How many of each digit a tile has.
__global__ void __launch_bounds__(256)
    count_digits(const u32* key, u32 count, PartitionPass pass, u32* counts) {
    __shared__ u32 slots[32 * 32];  // by digit and lane
    const u32 lane = threadIdx.x & 31;
    for (u32 i = threadIdx.x; i < pass.digits() * 32; i += 256) slots[i] = 0;
    __syncthreads();
    const u64 first = u64{blockIdx.x} << kTail;
    if (first + kTile <= count) {
#pragma unroll
        for (u32 q = 0; q < kTile / 1024; ++q) {
            const uint4 four = reinterpret_cast<const uint4*>(key + first)[q * 256 + threadIdx.x];
            atomicAdd(&slots[pass.digit(four.x) * 32 + lane], 1u);
            atomicAdd(&slots[pass.digit(four.y) * 32 + lane], 1u);
            atomicAdd(&slots[pass.digit(four.z) * 32 + lane], 1u);
            atomicAdd(&slots[pass.digit(four.w) * 32 + lane], 1u);
        }
    } else {
        for (u64 i = first + threadIdx.x; i < count; i += 256)
            atomicAdd(&slots[pass.digit(key[i]) * 32 + lane], 1u);
    }
    __syncthreads();
    for (u32 digit = threadIdx.x >> 5; digit < pass.digits(); digit += 8) {
        const u32 sum = __reduce_add_sync(~0u, slots[digit * 32 + lane]);
        if (lane == 0) counts[pass.count_index(blockIdx.x, digit)] = sum;
    }
}

template <u32 kBits>
struct SplitShared {
    u32 key[kTile];
    u32 span[kTile];
    Round<kBits, kRows> round;
    u32 offset[1 << kBits];  // from place in the tile to place in the output
    u32 larger[1 << kBits];  // elements of earlier tiles of the bucket with a larger digit
    u32 warp_sums[kWarps];
};

// Splits a tile by digit into its bucket; `places` are the summed counts.
template <u32 kBits>
__global__ void __launch_bounds__(kThreads, 2)
    split(Elements in, Elements out, u32 count, PartitionPass pass, const u32* places) {
    extern __shared__ __align__(16) unsigned char bytes[];
    auto& s = *reinterpret_cast<SplitShared<kBits>*>(bytes);
    const u32 lane = threadIdx.x & 31, warp = threadIdx.x >> 5, tile = blockIdx.x;
    const u64 first = u64{tile} << kTail;
    const u32 valid = static_cast<u32>(min(u64{kTile}, count - first));
    u32 key[kItems], span[kItems], ranks[kItems / 4] = {};
#pragma unroll
    for (u32 v = 0; v < kItems; ++v) {
        const u32 at = v * kThreads + threadIdx.x;
        key[v] = at < valid ? in.key[first + at] : ~0u;  // beyond the end: the largest digit, last
        span[v] = at < valid ? in.span[first + at] : 0;
    }
    s.round.clear();
    __syncthreads();
#pragma unroll
    for (u32 v = 0; v < kItems; ++v) {
        u32 rank, larger;
        s.round.note(pass.digit(key[v]), v * kWarps + warp, rank, larger);
        span[v] -= larger;
        ranks[v / 4] |= rank << v % 4 * 8;
    }
    u32 place = 0;
    if (warp == 0) {
        u32 before = 0;
        if (lane < pass.digits()) {
            place = places[pass.count_index(tile, lane)];
            before =
                place - static_cast<u32>(min(u64{count}, pass.begin(pass.bucket_of_tile(tile), lane)));
        }
        u32 above = before;
#pragma unroll
        for (int step = 1; step < 32; step <<= 1) {
            const u32 next = __shfl_down_sync(~0u, above, step);
            if (lane + step < 32) above += next;
        }
        if (lane < pass.digits()) s.larger[lane] = above - before;
    }
    s.round.sum(s.warp_sums);
    if (warp == 0 && lane < pass.digits())
        s.offset[lane] = place - s.round.place[s.round.index(lane, 0)];
#pragma unroll
    for (u32 v = 0; v < kItems; ++v) {
        const u32 digit = pass.digit(key[v]), at = s.round.index(digit, v * kWarps + warp);
        const u32 to = s.round.place[at] + (ranks[v / 4] >> v % 4 * 8 & 255);
        s.key[to] = key[v];
        s.span[to] = span[v] - s.round.larger[at] - s.larger[digit];
    }
    __syncthreads();
#pragma unroll
    for (u32 v = 0; v < kItems; ++v) {
        const u32 at = v * kThreads + threadIdx.x;
        if (at >= valid) break;
        const u32 to = at + s.offset[pass.digit(s.key[at])];
        out.key[to] = s.key[at];
        out.span[to] = s.span[at];
    }
}

struct FinishShared {
    static constexpr u32 kFirstBits = 4, kSecondBits = kTail - kFirstBits - 5;
    union {
        Round<kFirstBits, kRows> first;
        Round<kSecondBits, (kRows >> kFirstBits)> second;
    };
    u32 span[kTile];
    u16 key[kTile];
    u32 slots[kBinSlots];
    u32 warp_sums[kWarps];
};

template <u32 kShift, class RoundType>
__device__ __forceinline__ void finish_round(FinishShared& s, RoundType& round, u32 (&key)[kItems],
                                             u32 (&span)[kItems]) {
    constexpr u32 kMask = RoundType::kDigits - 1;
    const u32 warp = threadIdx.x >> 5;
    round.clear();
    __syncthreads();
    u32 ranks[kItems / 4] = {};
#pragma unroll
    for (u32 v = 0; v < kItems; ++v) {
        u32 rank, larger;
        round.note(key[v] >> kShift & kMask, v * kWarps + warp, rank, larger);
        span[v] -= larger;
        ranks[v / 4] |= rank << v % 4 * 8;
    }
    round.sum(s.warp_sums);
#pragma unroll
    for (u32 v = 0; v < kItems; ++v) {
        const u32 at = round.index(key[v] >> kShift & kMask, v * kWarps + warp);
        const u32 to = round.place[at] + (ranks[v / 4] >> v % 4 * 8 & 255);
        s.key[to] = static_cast<u16>(key[v]);
        s.span[to] = span[v] - round.larger[at];
    }
    __syncthreads();
#pragma unroll
    for (u32 v = 0; v < kItems; ++v) {
        key[v] = s.key[v * kThreads + threadIdx.x];
        span[v] = s.span[v * kThreads + threadIdx.x];
    }
    __syncthreads();
}

// The last kTail bits of a tile; distances are counted where `total` is given, and stored by key where
// `by_key` is.
__global__ void __launch_bounds__(kThreads, 2)
    finish_tile(Elements in, u32 count, u32* by_key, DeviceBins bins, unsigned long long* total) {
    extern __shared__ __align__(16) unsigned char bytes[];
    auto& s = *reinterpret_cast<FinishShared*>(bytes);
    const u64 first = u64{blockIdx.x} << kTail;
    const u32 valid = static_cast<u32>(min(u64{kTile}, count - first));
    if (total != nullptr) bins.clear(s.slots);
    u32 key[kItems], span[kItems];
#pragma unroll
    for (u32 v = 0; v < kItems; ++v) {
        const u32 at = v * kThreads + threadIdx.x;
        // Beyond the end: the keys that are missing, in order, after everything else.
        key[v] = at < valid ? in.key[first + at] & (kTile - 1) : at;
        span[v] = at < valid ? in.span[first + at] : 0;
    }
    finish_round<kTail - FinishShared::kFirstBits>(s, s.first, key, span);
    finish_round<5>(s, s.second, key, span);
#pragma unroll
    for (u32 v = 0; v < kItems; ++v) {
        const DigitMasks masks = compare_digits<5>(key[v] & 31);
        const u32 distance = span[v] - __popc(masks.larger & lanes_before());
        if (key[v] >= valid) continue;
        if (total != nullptr) bins.add(s.slots, distance);
        if (by_key != nullptr) by_key[first + key[v]] = distance;
    }
    if (total == nullptr) return;
    __syncthreads();
    bins.flush(s.slots, total);
}

}  // namespace revisit::gpu
