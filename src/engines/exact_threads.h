// The exact engine on several threads; exact_threads.cpp explains how it works.
#pragma once

#include <cstddef>
#include <memory>

#include "revisit/engine.h"

namespace revisit {

// What tests turn to reach every path with small traces.
struct ThreadTuning {
    std::size_t least_chunk = std::size_t{1} << 18;   // accesses a thread; less is left to one thread
    std::size_t first_chunk = std::size_t{1} << 20;   // accesses a thread that are collected at first
    std::size_t most_chunk = std::size_t{1} << 24;    // and at last: 128 MiB a thread
    std::size_t direct_chunk = std::size_t{1} << 25;  // where the trace lies in memory as it is
    bool weigh = true;  // whether several threads pay; else they are always taken
    // Of the stack: few enough to deal blocks out to, enough for a part's table to stay in cache.
    unsigned parts = 64;
    std::size_t trial = std::size_t{1} << 18;  // accesses per thread that measure whether they pay
    unsigned sure_from = 6;                    // threads that surely do
};

// Null where one thread is wanted.
std::unique_ptr<Engine> make_exact_threads(const EngineOptions& options,
                                           const ThreadTuning& tuning = {});

}  // namespace revisit
