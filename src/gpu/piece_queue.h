// Pieces that several threads make, put one after the other into the chunks of a device.
//
// Problem. How many blocks a chunk of a packed trace has is known once it is decoded, so where it goes
// depends on all those before it; and one thread that copies for all is too slow for a device.
// Idea. Threads decode pieces side by side. Then they take turns, in order of the pieces, but only to
// reserve room: that is a few additions. Copying goes on beside the others. There are two chunks: one
// is filled while the other is counted. Who reaches the end of a chunk copies its part and waits for
// the next one.
//
//     worker 0:  decode 0 │reserve│ copy ── decode 2 ────────────│reserve│ copy
//     worker 1:  decode 1 ────────│reserve│ copy ── decode 3 ────────────│reserve│ copy
//     caller:    ───────────────────────────────── count chunk 0 ───────────── count chunk 1
//
// Nothing here sees CUDA; tests run it on the host's memory.
#pragma once

#include <algorithm>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include "gpu/exact_counter.h"

namespace revisit::gpu {

// `Device` gives, for the two buffers `slot` 0 and 1:
//     size_t open(slot)                                 makes room, and tells for how many blocks
//     void copy(worker, slot, at, const BlockPiece&)    returns when it has arrived; by any worker
//     void count(slot, size_t blocks)
template <class Device>
class PieceQueue {
 public:
    PieceQueue(const BlockInput& input, Device& device) : input_(input), device_(device) {}
    PieceQueue(const PieceQueue&) = delete;

    // Returns when everything is counted; throws the first failure once all workers have stopped.
    void run() {
        {
            std::vector<std::jthread> workers;
            try {
                open(0);
                for (unsigned i = 0; i < std::max(1u, input_.workers); ++i)
                    workers.emplace_back([this, i] { work(i); });
                for (std::size_t chunk = 0; count_chunk(chunk); ++chunk) {
                }
            } catch (...) {
                stop(std::current_exception());
            }
        }
        if (failure_) std::rethrow_exception(failure_);
    }

 private:
    struct Chunk {
        std::size_t room = 0, reserved = 0, copied = 0;
        bool is_open = false;
        bool is_full() const { return is_open && reserved == room; }
    };
    struct Stopped {};

    // False after the last one.
    bool count_chunk(std::size_t number) {
        Chunk& chunk = chunks_[number % 2];
        bool is_last;
        {
            std::unique_lock lock(guard_);
            wait(lock, [&] { return chunk.is_full() || turn_ == input_.pieces; });
            is_last = !chunk.is_full();
        }
        // Before the copies are waited for: who copies may also wait for the next chunk.
        if (!is_last) open(number + 1);
        std::size_t blocks, done;
        {
            std::unique_lock lock(guard_);
            wait(lock, [&] { return chunk.copied == chunk.reserved; });
            blocks = chunk.reserved;
            done = turn_;
        }
        if (blocks != 0) device_.count(number % 2, blocks);
        if (input_.progress) input_.progress(done);
        std::lock_guard lock(guard_);
        chunk.is_open = false;
        return !is_last;
    }

    void open(std::size_t number) {
        const std::size_t room = device_.open(number % 2);
        std::lock_guard lock(guard_);
        chunks_[number % 2] = {room, 0, 0, true};
        changed_.notify_all();
    }

    void work(unsigned worker) {
        try {
            for (;;) {
                std::size_t piece;
                {
                    std::lock_guard lock(guard_);
                    if (stopping_ || next_ == input_.pieces) return;
                    piece = next_++;
                }
                input_.make(piece, worker, [&](const BlockPiece& part, bool is_last) {
                    hand_over(piece, worker, part, is_last);
                });
            }
        } catch (const Stopped&) {
        } catch (...) {
            stop(std::current_exception());
        }
    }

    void hand_over(std::size_t piece, unsigned worker, const BlockPiece& all, bool is_last) {
        for (std::size_t from = 0;;) {
            std::size_t slot = 0, at = 0, take = 0;
            bool goes_on;
            {
                std::unique_lock lock(guard_);
                wait(lock, [&] { return turn_ == piece; });
                if (from < all.count) {
                    wait(lock, [&] { return filling().is_open && !filling().is_full(); });
                    Chunk& chunk = filling();
                    slot = filling_ % 2;
                    at = chunk.reserved;
                    take = std::min(chunk.room - at, all.count - from);
                    chunk.reserved += take;
                    filling_ += chunk.is_full();
                }
                goes_on = from + take < all.count;
                turn_ += is_last && !goes_on;
                changed_.notify_all();
            }
            if (take != 0) {
                device_.copy(
                    worker, slot, at,
                    {all.blocks + from, all.sites == nullptr ? nullptr : all.sites + from, take});
                std::lock_guard lock(guard_);
                chunks_[slot].copied += take;
                changed_.notify_all();
            }
            if (!goes_on) return;
            from += take;
        }
    }

    Chunk& filling() { return chunks_[filling_ % 2]; }
    template <class Condition>
    void wait(std::unique_lock<std::mutex>& lock, Condition condition) {
        changed_.wait(lock, [&] { return stopping_ || condition(); });
        if (stopping_) throw Stopped{};
    }
    void stop(std::exception_ptr why) {
        std::lock_guard lock(guard_);
        stopping_ = true;
        try {
            std::rethrow_exception(why);
        } catch (const Stopped&) {  // by another one, who said why
        } catch (...) {
            if (!failure_) failure_ = why;
        }
        changed_.notify_all();
    }

    const BlockInput& input_;
    Device& device_;
    std::mutex guard_;  // of all below
    std::condition_variable changed_;
    Chunk chunks_[2];
    std::size_t filling_ = 0;  // the chunk in which room is reserved
    std::size_t next_ = 0;     // piece to make
    std::size_t turn_ = 0;     // piece to reserve room for
    bool stopping_ = false;
    std::exception_ptr failure_;
};

}  // namespace revisit::gpu
