// From blocks to reuses: the kernels around the sort.
//
// Sorting (block, index) stably brings the accesses of a block together, in time order; neighbours are
// links. `Link` of an access: the index of the previous access to its block (kNone for a first touch)
// and, in the top bit, whether a later one follows. Sending links back to time order is a random
// scatter of 4 bytes, the slowest thing a GPU can do with memory (19 G/s on an H200, in the
// second-level cache as well: a third of all time). So radix passes over the index, all but its last 13
// bits, bring together the links of each tile of time, and the scatter happens in shared memory.
//
// Then, tile by tile of time: rank every access among those that are followed (a bit an access and a
// sum every 32), write out the reuses with the rank of their previous access as key, and those that
// nothing follows as the LRU stack for the next chunk.
#pragma once

#include "gpu/partition_kernels.cuh"

namespace revisit::gpu {

constexpr u32 kNone = 0x7fffffffu, kFollowed = 0x80000000u;

// The accesses of a chunk: the LRU stack so far, least recent first, then the chunk itself.
struct Sequence {
    const u64* stack;
    const u64* stack_times;  // when each was last accessed; null unless time distances are wanted
    u32 stacked;
    const u64* blocks;
    u32 count;  // both
    u64 begin;  // time of the first access of the chunk

    __device__ __forceinline__ u64 block(u32 i) const {
        return i < stacked ? stack[i] : blocks[i - stacked];
    }
    __device__ __forceinline__ u64 time(u32 i) const {
        return i < stacked ? stack_times[i] : begin + (i - stacked);
    }
};

// Addresses to blocks, where they lie.
__global__ void __launch_bounds__(256) to_blocks(u64* addresses, u64 count, u64 granularity) {
    const bool is_power = (granularity & (granularity - 1)) == 0;
    const int shift = 63 - __clzll(static_cast<long long>(granularity));
    for (u64 i = blockIdx.x * u64{256} + threadIdx.x; i < count; i += gridDim.x * u64{256})
        addresses[i] = is_power ? addresses[i] >> shift : addresses[i] / granularity;
}

// range[0] = smallest block, range[1] = ~largest, by atomic minimum from all ones.
__global__ void __launch_bounds__(256) find_range(Sequence all, unsigned long long* range) {
    u64 low = ~u64{0}, high = ~u64{0};
    for (u64 i = blockIdx.x * u64{256} + threadIdx.x; i < all.count; i += gridDim.x * u64{256}) {
        const u64 block = all.block(static_cast<u32>(i));
        low = min(low, block);
        high = min(high, ~block);
    }
#pragma unroll
    for (int step = 16; step > 0; step >>= 1) {
        low = min(low, __shfl_xor_sync(~0u, low, step));
        high = min(high, __shfl_xor_sync(~0u, high, step));
    }
    if ((threadIdx.x & 31) == 0) {
        atomicMin(&range[0], static_cast<unsigned long long>(low));
        atomicMin(&range[1], static_cast<unsigned long long>(high));
    }
}

// Keys to sort by (blocks less the smallest, in as few bytes as they need) and their indices.
template <class Key>
__global__ void __launch_bounds__(256) make_keys(Sequence all, u64 low, Key* key, u32* index) {
    for (u64 i = blockIdx.x * u64{256} + threadIdx.x; i < all.count; i += gridDim.x * u64{256}) {
        key[i] = static_cast<Key>(all.block(static_cast<u32>(i)) - low);
        index[i] = static_cast<u32>(i);
    }
}

template <class Key>
__global__ void __launch_bounds__(256)
    make_links(const Key* key, const u32* index, u32 count, u32* link) {
    for (u64 r = blockIdx.x * u64{256} + threadIdx.x; r < count; r += gridDim.x * u64{256}) {
        const Key mine = key[r];
        const u32 previous = r > 0 && key[r - 1] == mine ? index[r - 1] : kNone;
        const bool followed = r + 1 < count && key[r + 1] == mine;
        link[r] = previous | (followed ? kFollowed : 0);
    }
}

// 32 accesses: which of them are followed, and how many before them in their tile.
struct FollowedWord {
    u32 bits;
    u32 before;
};
struct TileCounts {
    u32* reuses;    // of each tile, then summed: of all tiles before
    u32* followed;  // likewise
};

// Brings the links of a tile of time into order, and counts them. The tile's links lie together, in any
// order: indices are a permutation, so sorting them by all but their last kTail bits fills it exactly.
__global__ void __launch_bounds__(kThreads)
    place_links(const u32* index, const u32* link, u32 count, u32* placed, FollowedWord* words,
                TileCounts tiles) {
    __shared__ u32 links[kTile], row_counts[kRows], warp_sums[kWarps], reuses;
    if (threadIdx.x == 0) reuses = 0;
    const u32 lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    const u64 first = u64{blockIdx.x} << kTail;
    const u32 valid = static_cast<u32>(min(u64{kTile}, count - first));
#pragma unroll
    for (u32 v = 0; v < kItems; ++v) {
        const u32 at = v * kThreads + threadIdx.x;
        if (at < valid) links[index[first + at] & (kTile - 1)] = link[first + at];
    }
    __syncthreads();
    u32 bits[kItems], warm = 0;
#pragma unroll
    for (u32 v = 0; v < kItems; ++v) {
        const u32 at = v * kThreads + threadIdx.x;
        const u32 mine = at < valid ? links[at] : kNone;
        if (at < valid) placed[first + at] = mine;
        bits[v] = __ballot_sync(~0u, (mine & kFollowed) != 0);
        warm += __popc(__ballot_sync(~0u, (mine & kNone) != kNone));
        if (lane == 0) row_counts[v * kWarps + warp] = __popc(bits[v]);
    }
    __syncthreads();
    if (lane == 0) atomicAdd(&reuses, warm);
    const u32 mine = threadIdx.x < kRows ? row_counts[threadIdx.x] : 0;
    const u32 before = exclusive_sum<kThreads>(mine, warp_sums);
    if (threadIdx.x < kRows) row_counts[threadIdx.x] = before;
    __syncthreads();
#pragma unroll
    for (u32 v = 0; v < kItems; ++v) {
        const u32 row = v * kWarps + warp;
        if (lane == 0 && row * 32 < valid) words[(first >> 5) + row] = {bits[v], row_counts[row]};
    }
    if (threadIdx.x == kRows - 1) tiles.followed[blockIdx.x] = before + mine;
    if (threadIdx.x == 0) tiles.reuses[blockIdx.x] = reuses;
}

struct EmitTargets {
    Elements reuses;
    u64* stack;        // for the next chunk
    u64* stack_times;  // null unless wanted
    u64* first;        // blocks that are new, in order; null unless wanted
    u64* first_times;  // when that was
    u64* spans;        // time distance by reuse, where every one is reported
    u32* keys;         // by access, kNone for first touches; null unless sites are wanted
    DeviceBins bins;
    unsigned long long* times;  // bins of time distances; null unless wanted
};

__global__ void __launch_bounds__(kThreads)
    emit_reuses(Sequence all, const u32* link, const FollowedWord* words, TileCounts tiles,
                EmitTargets out) {
    __shared__ u32 row_counts[kRows], warp_sums[kWarps], slots[kBinSlots];
    const u32 lane = threadIdx.x & 31, warp = threadIdx.x >> 5, before_me = lanes_before();
    const u64 first = u64{blockIdx.x} << kTail;
    if (out.times != nullptr) out.bins.clear(slots);
    u32 links[kItems], warm[kItems];
#pragma unroll
    for (u32 v = 0; v < kItems; ++v) {
        const u64 i = first + v * kThreads + threadIdx.x;
        links[v] = i < all.count ? link[i] : kNone | kFollowed;
        warm[v] = __ballot_sync(~0u, (links[v] & kNone) != kNone);
        if (lane == 0) row_counts[v * kWarps + warp] = __popc(warm[v]);
    }
    __syncthreads();
    const u32 mine = threadIdx.x < kRows ? row_counts[threadIdx.x] : 0;
    const u32 before = exclusive_sum<kThreads>(mine, warp_sums) + tiles.reuses[blockIdx.x];
    if (threadIdx.x < kRows) row_counts[threadIdx.x] = before;
    __syncthreads();
#pragma unroll
    for (u32 v = 0; v < kItems; ++v) {
        const u32 i = static_cast<u32>(first) + v * kThreads + threadIdx.x;
        const u32 row = v * kWarps + warp, previous = links[v] & kNone;
        u32 key = kNone;
        if (previous != kNone) {
            const FollowedWord word = words[previous >> 5];
            key = tiles.followed[previous >> kTail] + word.before +
                  __popc(word.bits & ((1u << (previous & 31)) - 1));
            const u32 to = row_counts[row] + __popc(warm[v] & before_me);
            out.reuses.key[to] = key;
            out.reuses.span[to] = i - previous - 1;
            if (out.times != nullptr) out.bins.add(slots, all.time(i) - all.time(previous));
            if (out.spans != nullptr) out.spans[to] = all.time(i) - all.time(previous);
        }
        if (out.keys != nullptr && i < all.count) out.keys[i] = key;
        // What is not a reuse is new or on the stack, which comes before all else.
        if (out.first != nullptr && previous == kNone && i >= all.stacked && i < all.count) {
            const u32 to = i - (row_counts[row] + __popc(warm[v] & before_me)) - all.stacked;
            out.first[to] = all.block(i);
            out.first_times[to] = all.time(i);
        }
        if ((links[v] & kFollowed) == 0) {
            const FollowedWord word = words[i >> 5];
            const u32 to =
                i - (tiles.followed[blockIdx.x] + word.before + __popc(word.bits & before_me));
            out.stack[to] = all.block(i);
            if (out.stack_times != nullptr) out.stack_times[to] = all.time(i);
        }
    }
    if (out.times == nullptr) return;
    __syncthreads();
    out.bins.flush(slots, out.times);
}

// Distances by site: the key of an access finds its distance.
__global__ void __launch_bounds__(256)
    count_sites(const u32* keys, const u32* by_key, const u32* sites, u32 count, DeviceBins bins,
                unsigned long long* table) {
    const u32 width = bins.count() + 1;
    for (u64 i = blockIdx.x * u64{256} + threadIdx.x; i < count; i += gridDim.x * u64{256}) {
        const u32 bin = keys[i] == kNone ? bins.count() : bins.index(by_key[keys[i]]);
        const u64 slot = u64{sites[i]} * width + bin;
        // Equal slots in the warp are one addition.
        const u32 same = __match_any_sync(__activemask(), slot);
        if ((same & lanes_before()) == 0)
            atomicAdd(&table[slot], static_cast<unsigned long long>(__popc(same)));
    }
}

__global__ void __launch_bounds__(256) widen(const u32* from, u32 count, u64* to) {
    for (u64 i = blockIdx.x * u64{256} + threadIdx.x; i < count; i += gridDim.x * u64{256})
        to[i] = from[i];
}

}  // namespace revisit::gpu
