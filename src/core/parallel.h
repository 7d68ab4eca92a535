// Running one piece of work on several threads. Pieces are numbered and what each computes depends on
// its number alone, so results do not depend on how many threads there are or which took what.
#pragma once

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>
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

// Threads that stay, for work that comes in many short stages: parallel_for would spend as long on
// starting threads. Whoever is not awake in time takes no part, so a stage does not wait for a thread
// that the system has no core for. One caller at a time. Exceptions as in parallel_for.
class Crew {
 public:
    explicit Crew(unsigned threads) : size_(threads) {
        for (unsigned i = 1; i < threads; ++i) others_.emplace_back([this] { serve(); });
    }
    ~Crew() {
        std::lock_guard lock(guard_);
        stopping_ = true;
        begun_.notify_all();
    }
    Crew(const Crew&) = delete;
    Crew& operator=(const Crew&) = delete;

    unsigned size() const { return size_; }

    template <class Work>
    void run(std::size_t pieces, Work&& work) {
        if (others_.empty() || pieces < 2) {
            for (std::size_t piece = 0; piece < pieces; ++piece) work(piece);
            return;
        }
        std::unique_lock lock(guard_);
        work_ = [&work](std::size_t piece) { work(piece); };
        pieces_ = pieces;
        next_ = 0;
        open_ = true;
        ++stage_;
        lock.unlock();
        begun_.notify_all();
        take_pieces();
        lock.lock();
        open_ = false;
        ended_.wait(lock, [&] { return busy_ == 0; });
        if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
    }

 private:
    void take_pieces() {
        try {
            for (std::size_t piece; (piece = next_.fetch_add(1)) < pieces_;) work_(piece);
        } catch (...) {
            next_ = pieces_;
            std::lock_guard lock(guard_);
            if (!failure_) failure_ = std::current_exception();
        }
    }
    void serve() {
        std::unique_lock lock(guard_);
        for (std::size_t seen = 0;;) {
            begun_.wait(lock, [&] { return stopping_ || (open_ && stage_ != seen); });
            if (stopping_) return;
            seen = stage_;
            ++busy_;
            lock.unlock();
            take_pieces();
            lock.lock();
            if (--busy_ == 0) ended_.notify_one();
        }
    }

    unsigned size_;
    std::mutex guard_;  // of all below but next_
    std::condition_variable begun_, ended_;
    std::function<void(std::size_t)> work_;  // changes only while nobody is busy
    std::size_t pieces_ = 0, stage_ = 0, busy_ = 0;
    std::atomic<std::size_t> next_ = 0;
    bool open_ = false, stopping_ = false;
    std::exception_ptr failure_;
    std::vector<std::jthread> others_;  // last: they stop before the rest goes
};

}  // namespace revisit
