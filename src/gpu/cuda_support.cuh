// Checks, owned memory and small device helpers.
#pragma once

#include <cuda_runtime.h>
#include <sys/mman.h>

#include <cstdint>
#include <cstdlib>
#include <new>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "gpu/exact_counter.h"

namespace revisit::gpu {

using u16 = std::uint16_t;
using u32 = std::uint32_t;
using u64 = std::uint64_t;

inline void check(cudaError_t status, const char* what) {
    if (status == cudaSuccess) return;
    const std::string sentence =
        std::string("the GPU could not ") + what + ": " + cudaGetErrorString(status);
    if (status == cudaErrorMemoryAllocation) {
        (void)cudaGetLastError();  // it is not for the next call
        throw OutOfMemory(sentence);
    }
    throw std::runtime_error(sentence);
}

template <class Kernel>
void allow_shared(Kernel kernel, std::size_t bytes) {
    check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                               static_cast<int>(bytes)),
          "give a block that much shared memory");
}

// Numbers of the device's memory.
template <class T>
std::vector<u64> fetch(const T* from, std::size_t count) {
    static_assert(sizeof(T) == sizeof(u64));
    std::vector<u64> out(count);
    if (count != 0)
        check(cudaMemcpy(out.data(), from, count * sizeof(u64), cudaMemcpyDeviceToHost), "copy back");
    return out;
}

template <class T>
class DeviceArray {
 public:
    DeviceArray() = default;
    explicit DeviceArray(std::size_t count) { require(count); }
    DeviceArray(const DeviceArray&) = delete;
    DeviceArray& operator=(const DeviceArray&) = delete;
    ~DeviceArray() { cudaFree(data_); }

    // At least `count` elements; what was there is lost when it grows.
    void require(std::size_t count) {
        if (count <= count_) return;
        check(cudaFree(data_), "free memory");
        data_ = nullptr;
        count_ = 0;
        check(cudaMalloc(&data_, count * sizeof(T)), "give memory");
        count_ = count;
    }
    void swap(DeviceArray& other) noexcept {
        std::swap(data_, other.data_);
        std::swap(count_, other.count_);
    }
    T* data() const { return data_; }
    std::size_t count() const { return count_; }

 private:
    T* data_ = nullptr;
    std::size_t count_ = 0;
};

// Memory of the host that the device copies from at its full speed. Its pages are made by the thread
// that uses it, beside others that do so, and the driver only pins them: of 48 MiB by cudaMallocHost
// the first were full after 28 ms.
class PinnedMemory {
 public:
    PinnedMemory() = default;
    PinnedMemory(const PinnedMemory&) = delete;
    PinnedMemory& operator=(const PinnedMemory&) = delete;
    ~PinnedMemory() {
        if (is_pinned_) cudaHostUnregister(data_);
        std::free(data_);
    }

    // A multiple of kHugePage, once.
    void require(std::size_t bytes) {
        if (data_ != nullptr) return;
        data_ = static_cast<char*>(std::aligned_alloc(kHugePage, bytes));
        if (data_ == nullptr) throw std::bad_alloc();
        madvise(data_, bytes, MADV_HUGEPAGE);
        for (std::size_t at = 0; at < bytes; at += 4096) data_[at] = 0;
        check(cudaHostRegister(data_, bytes, cudaHostRegisterDefault), "pin memory");
        is_pinned_ = true;
    }
    char* data() const { return data_; }
    static constexpr std::size_t kHugePage = std::size_t{1} << 21;

 private:
    char* data_ = nullptr;
    bool is_pinned_ = false;
};

// The memory that CUB's algorithms work in.
class TemporaryMemory {
 public:
    // Runs an algorithm twice, as it wants: for the bytes it needs, then for good.
    template <class Algorithm>
    void run(const char* what, Algorithm algorithm) {
        std::size_t bytes = 0;
        check(algorithm(nullptr, bytes), what);
        memory_.require(bytes);
        bytes = memory_.count();
        check(algorithm(memory_.data(), bytes), what);
    }

 private:
    DeviceArray<unsigned char> memory_;
};

// Lanes of the warp before this one.
__device__ __forceinline__ u32 lanes_before() {
    u32 mask;
    asm("mov.u32 %0, %%lanemask_lt;" : "=r"(mask));
    return mask;
}

// Within a warp: which lanes hold my digit, and which a larger one.
struct DigitMasks {
    u32 equal = ~0u;
    u32 larger = 0;
};
template <unsigned kBits>
__device__ __forceinline__ DigitMasks compare_digits(u32 digit) {
    DigitMasks masks;
#pragma unroll
    for (int bit = kBits - 1; bit >= 0; --bit) {
        const bool one = (digit >> bit & 1) != 0;
        const u32 ones = __ballot_sync(~0u, one);
        if (!one) masks.larger |= masks.equal & ones;
        masks.equal &= one ? ones : ~ones;
    }
    return masks;
}

// Exclusive sum over the block; every thread's value in, the sum of those before it out.
template <unsigned kThreads>
__device__ __forceinline__ u32 exclusive_sum(u32 value, u32* warp_sums) {
    static_assert(kThreads % 32 == 0 && kThreads <= 1024);
    const u32 lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    u32 sum = value;
#pragma unroll
    for (int step = 1; step < 32; step <<= 1) {
        const u32 below = __shfl_up_sync(~0u, sum, step);
        if (lane >= step) sum += below;
    }
    if (lane == 31) warp_sums[warp] = sum;
    __syncthreads();
    if (warp == 0) {
        u32 total = lane < kThreads / 32 ? warp_sums[lane] : 0;
#pragma unroll
        for (int step = 1; step < 32; step <<= 1) {
            const u32 below = __shfl_up_sync(~0u, total, step);
            if (lane >= step) total += below;
        }
        if (lane < kThreads / 32) warp_sums[lane] = total;
    }
    __syncthreads();
    return sum - value + (warp == 0 ? 0 : warp_sums[warp - 1]);
}

}  // namespace revisit::gpu
