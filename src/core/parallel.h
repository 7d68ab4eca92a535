// Running one piece of work on several threads. Pieces are numbered and what each computes depends on
// its number alone, so results do not depend on how many threads there are or which took what.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <exception>
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

}  // namespace revisit
