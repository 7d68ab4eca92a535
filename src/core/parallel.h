// Running one piece of work on several threads. Pieces are numbered and what each computes depends on
// its number alone, so results do not depend on how many threads there are or which took what.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace revisit {

// 0 means every core there is.
inline unsigned thread_count(unsigned wanted) {
    return wanted != 0 ? wanted : std::max(1u, std::thread::hardware_concurrency());
}

// Calls work(piece) for every piece in [0, pieces), on up to `threads` threads, this one among them.
// The first exception thrown by a piece is thrown here once all threads have stopped.
template <class Work>
void parallel_for(unsigned threads, std::size_t pieces, Work&& work) {
    const std::size_t workers = std::min<std::size_t>(threads, pieces);
    if (workers <= 1) {
        for (std::size_t piece = 0; piece < pieces; ++piece) work(piece);
        return;
    }
    std::atomic<std::size_t> next = 0;
    std::exception_ptr failure;
    std::mutex failure_lock;
    auto run = [&] {
        try {
            for (std::size_t piece; (piece = next.fetch_add(1)) < pieces;) work(piece);
        } catch (...) {
            next = pieces;
            std::lock_guard guard(failure_lock);
            if (!failure) failure = std::current_exception();
        }
    };
    {
        std::vector<std::jthread> others;
        for (std::size_t i = 1; i < workers; ++i) others.emplace_back(run);
        run();
    }
    if (failure) std::rethrow_exception(failure);
}

// Threads that stay, for work that comes in pieces of microseconds: parallel_for would spend as long on
// starting threads. One caller at a time; pieces must not throw.
class Crew {
 public:
    explicit Crew(unsigned threads) {
        for (unsigned i = 1; i < threads; ++i) others_.emplace_back([this] { serve(); });
    }
    ~Crew() {
        stopping_ = true;
        shift_.fetch_add(1);
        shift_.notify_all();
    }
    Crew(const Crew&) = delete;
    Crew& operator=(const Crew&) = delete;

    template <class Work>
    void run(std::size_t pieces, Work&& work) {
        if (others_.empty() || pieces < 2) {
            for (std::size_t piece = 0; piece < pieces; ++piece) work(piece);
            return;
        }
        work_ = [&work](std::size_t piece) { work(piece); };
        pieces_ = pieces;
        next_ = 0;
        busy_ = others_.size();
        shift_.fetch_add(1);
        shift_.notify_all();
        take_pieces();
        for (std::size_t left; (left = busy_.load()) != 0;) busy_.wait(left);
    }

 private:
    void take_pieces() {
        for (std::size_t piece; (piece = next_.fetch_add(1)) < pieces_;) work_(piece);
    }
    void serve() {
        for (std::size_t seen = 0;;) {
            shift_.wait(seen);
            seen = shift_.load();
            if (stopping_) return;
            take_pieces();
            if (busy_.fetch_sub(1) == 1) busy_.notify_one();
        }
    }

    std::function<void(std::size_t)> work_;
    std::size_t pieces_ = 0;
    std::atomic<std::size_t> next_ = 0, busy_ = 0, shift_ = 0;
    std::atomic<bool> stopping_ = false;
    std::vector<std::jthread> others_;  // last: they stop before the rest goes
};

}  // namespace revisit
