// Counts distances by the hundred, for engines that find them faster than they can be binned one by
// one.
//
// Problem. A histogram is a scattered increment an access: with a bin a distance the counters of a
// million blocks miss the cache, with a few bins the same counter is hit again and again and each
// increment waits for the one before.
//
// Idea. For log2:K, K a power of two, distances fall into slots of
// a fixed relative width (the K bins of their octave, 64 at least), few enough for the first-level
// cache; four copies, taken in turn, keep increments of one slot apart. For the other binnings every
// distance has a counter of its own, in 32 bits (4 bytes a block at most); counters that could overflow
// are emptied into a map in time. Distances past a dense limit, which only time distances reach, are
// counted in that map as well.
#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "engines/growing_array.h"
#include "revisit/histogram.h"

namespace revisit {

class DistanceTable {
 public:
    // Distances below `dense` have counters; reuse distances are below the number of blocks and need no
    // limit.
    explicit DistanceTable(const Binning& binning, std::uint64_t dense = ~std::uint64_t{0});

    void add(std::span<const std::uint32_t> distances);
    void add(std::span<const std::uint64_t> distances);
    void add(std::uint64_t distance, std::uint64_t count);
    void add_cold(std::uint64_t count) { cold_ += count; }

    std::uint64_t cold() const { return cold_; }
    bool one_a_distance() const { return !slotted_; }  // a counter, 4 bytes
    Histogram histogram() const;

 private:
    static constexpr unsigned kCopies = 4;

    template <class Distance>
    void add_slots(std::span<const Distance> distances);
    template <class Distance>
    void add_dense(std::span<const Distance> distances);
    void make_room(std::uint64_t adding);
    std::uint64_t slot_low(std::uint64_t slot) const;

    Binning binning_;
    std::uint64_t cold_ = 0;
    std::uint64_t added_ = 0;  // to 32-bit counters since they were last looked at

    bool slotted_ = false;
    unsigned mantissa_bits_ = 6;
    std::size_t slots_ = 0;
    std::vector<std::uint32_t> copies_;  // slotted: kCopies × slots_
    std::vector<std::uint64_t> totals_;  // slotted: what was emptied from the copies

    std::uint64_t dense_limit_;
    std::uint64_t dense_size_ = 0;
    // By distance. Hit at random, so huge pages from the first on.
    GrowingArray<std::uint32_t> dense_{GrowingBytes::kHugePage};
    std::unordered_map<std::uint64_t, std::uint64_t> rest_;  // by low edge
};

}  // namespace revisit
