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
#include <cstring>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include "gpu/cuda_support.cuh"
#include "gpu/exact_counter.h"

namespace revisit::gpu {

// Two small pinned buffers of one thread, and the stream that empties them.
class PinnedCopier {
 public:
    static constexpr std::size_t kPiece = std::size_t{1} << 18;  // addresses

    PinnedCopier() = default;
    PinnedCopier(const PinnedCopier&) = delete;
    ~PinnedCopier() {
        if (stream_ != nullptr) cudaStreamSynchronize(stream_), cudaStreamDestroy(stream_);
        for (cudaEvent_t one : sent_)
            if (one != nullptr) cudaEventDestroy(one);
    }
    void prepare(int device) {
        check(cudaSetDevice(device), "be used");
        if (stream_ != nullptr) return;
        pinned_.require(2 * kPiece * sizeof(u64));
        for (cudaEvent_t& one : sent_)
            check(cudaEventCreateWithFlags(&one, cudaEventDisableTiming), "make an event");
        check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "make a stream");
    }
    // At most kPiece * 8 bytes, which fill(memory) puts there; on their way to the device on return.
    template <class Fill>
    void send(void* to, std::size_t bytes, Fill fill) {
        check(cudaEventSynchronize(sent_[turn_]), "copy in");
        fill(memory());
        check(cudaMemcpyAsync(to, memory(), bytes, cudaMemcpyHostToDevice, stream_), "copy in");
        check(cudaEventRecord(sent_[turn_], stream_), "record an event");
        turn_ ^= 1;
    }
    void send(void* to, const void* from, std::size_t bytes) {
        for (std::size_t at = 0; at < bytes;) {
            const std::size_t take = std::min(bytes - at, kPiece * sizeof(u64));
            const void* const part = static_cast<const char*>(from) + at;
            send(static_cast<char*>(to) + at, take, [&](u64* into) { std::memcpy(into, part, take); });
            at += take;
        }
    }
    // What a caller brings in small parts that belong side by side: a piece is on its way when it is
    // whole.
    void append(void* to, const void* from, std::size_t bytes) {
        for (const char* part = static_cast<const char*>(from); bytes != 0;) {
            if (filled_ == 0) {
                check(cudaEventSynchronize(sent_[turn_]), "copy in");
                filled_to_ = to;
            }
            const std::size_t take = std::min(bytes, kAppended - filled_);
            std::memcpy(reinterpret_cast<char*>(memory()) + filled_, part, take);
            filled_ += take;
            part += take;
            to = static_cast<char*>(to) + take;
            bytes -= take;
            if (filled_ == kAppended) flush();
        }
    }
    void finish() {
        flush();
        check(cudaStreamSynchronize(stream_), "copy in");
    }

 private:
    // Stays in the processor's second cache, where it is written and read by the device.
    static constexpr std::size_t kAppended = std::size_t{1} << 19;  // bytes
    static_assert(kAppended <= kPiece * sizeof(u64));

    void flush() {
        if (filled_ == 0) return;
        check(cudaMemcpyAsync(filled_to_, memory(), filled_, cudaMemcpyHostToDevice, stream_),
              "copy in");
        check(cudaEventRecord(sent_[turn_], stream_), "record an event");
        turn_ ^= 1;
        filled_ = 0;
    }

    u64* memory() const { return reinterpret_cast<u64*>(pinned_.data()) + turn_ * kPiece; }

    PinnedMemory pinned_;
    cudaEvent_t sent_[2] = {};
    cudaStream_t stream_ = nullptr;
    unsigned turn_ = 0;
    void* filled_to_ = nullptr;
    std::size_t filled_ = 0;  // bytes appended and not sent
};

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
        auto fill = [&](PinnedCopier& mine) {
            try {
                mine.prepare(device_);
                for (u64 piece; (piece = next.fetch_add(1)) < pieces;) {
                    const u64 at = piece * kPiece, take = std::min<u64>(kPiece, count - at);
                    mine.send(to + at, take * sizeof(u64),
                              [&](u64* into) { input_.read(first + at, take, into); });
                }
                mine.finish();
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
    static constexpr std::size_t kPiece = PinnedCopier::kPiece;
    static constexpr unsigned kMostFillers = 12;

    const AddressInput& input_;
    const int device_;
    std::vector<PinnedCopier> fillers_;
};

}  // namespace revisit::gpu
