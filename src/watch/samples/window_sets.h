// What a window says about the sets of caches.
//
// Problem. A reuse distance says how many lines came between, not where in a cache they lie: a column
// of a matrix whose rows are a power of two long is in a few sets, and misses in a cache that could
// hold it many times. Idea. In a window the addresses are known, so each set is an LRU stack of its
// own. A use that comes back has missed iff its line was as deep in its set as there are ways. Of the
// open use that stands for the others it counts how many lines of its set, and of all sets, followed
// it. Example. Two sets of one way, lines 0 2 0 1: the use of line 0 comes back at a distance of one
// line and misses, since 2 is in its set; the use of 2 is open, followed by one line of its set (0) of
// two (0 and 1). Cost. Per window of 1024 accesses and three caches 12 us where an array is walked, 30
// us where columns are (a Xeon of 2.7 GHz), while the thread runs on.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "revisit/cache_spec.h"

namespace revisit::watch {

// How lines lie in the sets of a cache.
enum class SetFilling : std::uint8_t {
    random,
    crowded,  // some set has clearly more of them than a random one
    even,     // numbers differ clearly less: arrays that are walked line by line
};

struct WindowSets {
    static constexpr std::size_t kMostCaches = 4;
    struct InCache {
        std::uint16_t missed = 0;  // uses that came back, and missed
        std::uint16_t after = 0;   // other lines of the open use's set that followed it
        bool drawn_missed = false;
        SetFilling filling = SetFilling::random;
    };
    std::array<InCache, kMostCaches> caches;
    std::uint16_t lines_after = 0;  // other lines that followed the open use
};

// Of the lines of a window's accesses; the first `uses` are uses. `drawn` and `open` are the numbers of
// two of these, from 1; 0 = there is none.
WindowSets sets_of(std::span<const std::uint64_t> lines, unsigned uses, unsigned drawn, unsigned open,
                   std::span<const CacheSpec> caches);

}  // namespace revisit::watch
