// Counting distances into bins of powers of two, in shared memory.
//
// Nearly all distances of a trace may be equal, and equal addresses in a warp take turns. So every bin
// has several copies, one a lane where there is room: no turns at all with one bin an octave.
#pragma once

#include "gpu/cuda_support.cuh"
#include "gpu/exact_counter.h"

namespace revisit::gpu {

constexpr u32 kBinSlots = 65 * 32;  // shared counters a block: 8 KiB

struct DeviceBins {
    u32 per_octave = 1;
    u32 copies_log2 = 5;

    static DeviceBins of(u32 per_octave) {
        DeviceBins bins{per_octave, 5};
        while (bins.count() << bins.copies_log2 > kBinSlots && bins.copies_log2 > 0) --bins.copies_log2;
        return bins;
    }
    __host__ __device__ u32 count() const { return 1 + 64 * per_octave; }  // as Binning::index
    __device__ __forceinline__ u32 index(u64 distance) const {
        if (distance == 0) return 0;
        const int octave = 63 - __clzll(static_cast<long long>(distance));
        const u64 offset = distance - (u64{1} << octave);
        return 1 + octave * per_octave + static_cast<u32>((offset * per_octave) >> octave);
    }
    __device__ __forceinline__ u32 index(u32 distance) const {
        if (distance == 0) return 0;
        const int octave = 31 - __clz(static_cast<int>(distance));
        const u64 offset = distance - (1u << octave);
        return 1 + octave * per_octave + static_cast<u32>((offset * per_octave) >> octave);
    }
    template <class Distance>
    __device__ __forceinline__ void add(u32* slots, Distance distance) const {
        const u32 copy = threadIdx.x & ((1u << copies_log2) - 1);
        atomicAdd(&slots[index(distance) << copies_log2 | copy], 1u);
    }
    __device__ __forceinline__ u32 slots() const { return count() << copies_log2; }
    __device__ void clear(u32* shared) const {
        for (u32 i = threadIdx.x; i < slots(); i += blockDim.x) shared[i] = 0;
    }
    __device__ void flush(const u32* shared, unsigned long long* total) const {
        for (u32 bin = threadIdx.x; bin < count(); bin += blockDim.x) {
            u32 sum = 0;
            // Start at another copy in every thread: all begin in the same bank otherwise.
            for (u32 c = 0; c < 1u << copies_log2; ++c)
                sum += shared[bin << copies_log2 | ((c + bin) & ((1u << copies_log2) - 1))];
            if (sum != 0) atomicAdd(&total[bin], static_cast<unsigned long long>(sum));
        }
    }
};

}  // namespace revisit::gpu
