// Addresses on their way from a file to the device.
//
// Problem. One thread that copies a file from the page cache into pinned memory moves 1 G addresses/s;
// the device counts 8 to 10.
// Idea. Several threads, each with two small pinned buffers: one is filled while the other is on its
// way. Tried instead: registering the mapped file with CUDA, so that the copy engine reads the page
// cache itself. That copies 6.9 G addresses/s once it is registered, but registering takes 0.23 s for 8
// GiB, is not done in parallel, and slows down the copies beside it: 2^30 addresses took 0.51 s so, and
// 0.39 s through buffers even when each was copied twice (H200, 16 cores). A mapping would also have to
// be kept from the host's eyes, because a file that becomes shorter is a signal there and an error
// here.
#pragma once

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include "gpu/cuda_support.cuh"
#include "gpu/exact_counter.h"

namespace revisit::gpu {

class AddressFeed {
 public:
    AddressFeed(const AddressInput& input, int device)
        : input_(input), device_(device), fillers_(std::clamp(input.threads, 1u, kMostFillers)) {}
    AddressFeed(const AddressFeed&) = delete;

    // Returns when addresses [first, first + count) are in device memory at `to`.
    void fetch(u64 first, u64 count, u64* to) {
        const u64 pieces = (count + kPiece - 1) / kPiece;
        std::atomic<u64> next = 0;
        std::mutex guard;
        std::exception_ptr failure;
        auto fill = [&](Filler& mine) {
            try {
                check(cudaSetDevice(device_), "be used");
                mine.prepare();
                for (u64 piece, turn = 0; (piece = next.fetch_add(1)) < pieces; turn ^= 1) {
                    const u64 at = piece * kPiece, take = std::min<u64>(kPiece, count - at);
                    check(cudaEventSynchronize(mine.sent[turn]), "copy in");
                    input_.read(first + at, take, mine.memory[turn]);
                    check(cudaMemcpyAsync(to + at, mine.memory[turn], take * sizeof(u64),
                                          cudaMemcpyHostToDevice, mine.stream),
                          "copy in");
                    check(cudaEventRecord(mine.sent[turn], mine.stream), "record an event");
                }
                check(cudaStreamSynchronize(mine.stream), "copy in");
            } catch (...) {
                next = pieces;
                std::lock_guard lock(guard);
                if (!failure) failure = std::current_exception();
            }
        };
        std::vector<std::thread> others;
        for (std::size_t i = 1; i < std::min<u64>(fillers_.size(), pieces); ++i)
            others.emplace_back([&fill, this, i] { fill(fillers_[i]); });
        fill(fillers_[0]);
        for (std::thread& thread : others) thread.join();
        if (failure) std::rethrow_exception(failure);
    }

 private:
    static constexpr std::size_t kPiece = std::size_t{1} << 18;  // addresses: pinning 1 GiB takes 0.6 s
    static constexpr unsigned kMostFillers = 12;

    struct Filler {
        u64* memory[2] = {};
        cudaEvent_t sent[2] = {};
        cudaStream_t stream = nullptr;

        void prepare() {
            if (stream != nullptr) return;
            for (u64*& one : memory) check(cudaMallocHost(&one, kPiece * sizeof(u64)), "pin memory");
            for (cudaEvent_t& one : sent)
                check(cudaEventCreateWithFlags(&one, cudaEventDisableTiming), "make an event");
            check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "make a stream");
        }
        ~Filler() {
            if (stream != nullptr) cudaStreamDestroy(stream);
            for (cudaEvent_t one : sent)
                if (one != nullptr) cudaEventDestroy(one);
            for (u64* one : memory) cudaFreeHost(one);
        }
    };

    const AddressInput& input_;
    const int device_;
    std::vector<Filler> fillers_;
};

}  // namespace revisit::gpu
