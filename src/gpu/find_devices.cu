// What devices there are, and their memory for those who do not see CUDA.
#include "gpu/cuda_support.cuh"
#include "gpu/exact_counter.h"

namespace revisit::gpu {

Devices find_devices() {
    Devices out;
    int count = 0;
    const cudaError_t status = cudaGetDeviceCount(&count);
    if (status != cudaSuccess || count == 0) {
        out.why = status == cudaErrorInsufficientDriver || status == cudaErrorNoDevice || count == 0
                      ? "no CUDA device or driver on this machine"
                      : cudaGetErrorString(status);
        return out;
    }
    for (int i = 0; i < count; ++i) {
        cudaDeviceProp properties;
        check(cudaGetDeviceProperties(&properties, i), "describe itself");
        out.list.push_back({properties.name, properties.totalGlobalMem});
    }
    return out;
}

std::uint64_t* allocate_pinned(std::size_t count) {
    std::uint64_t* memory = nullptr;
    check(cudaMallocHost(&memory, count * sizeof(u64)), "pin memory");
    return memory;
}
void free_pinned(std::uint64_t* memory) {
    cudaFreeHost(memory);
}
std::uint64_t* upload(const std::uint64_t* blocks, std::size_t count) {
    std::uint64_t* memory = nullptr;
    check(cudaMalloc(&memory, count * sizeof(u64)), "give memory");
    check(cudaMemcpy(memory, blocks, count * sizeof(u64), cudaMemcpyHostToDevice), "copy in");
    return memory;
}
void free_device(std::uint64_t* memory) {
    cudaFree(memory);
}

}  // namespace revisit::gpu
