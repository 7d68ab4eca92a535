// The histogram of one thread among up to 65536: it takes memory only up to the largest distance seen.
//
// Distances of log2:K, K a power of two up to 64, are counted in slots of 64 an octave; others one by
// one, which is bounded by the blocks the thread touched.
#pragma once

#include <bit>
#include <cstdint>
#include <vector>

#include "engines/simd.h"
#include "revisit/histogram.h"

namespace revisit {

class ThreadCounter {
 public:
    explicit ThreadCounter(const Binning& binning)
        : binning_(binning),
          slotted_(binning.kind() == Binning::Kind::log2 && binning.parameter() <= kPerOctave &&
                   std::has_single_bit(binning.parameter())) {}

    REVISIT_INLINE void add(std::uint64_t distance) {
        const std::uint64_t slot = slotted_ ? slot_of(distance) : distance;
        if (slot >= counts_.size()) [[unlikely]]
            counts_.resize(std::bit_ceil(slot + 1));
        counts_[slot]++;
    }
    void merge(const ThreadCounter& other) {  // same binning
        if (counts_.size() < other.counts_.size()) counts_.resize(other.counts_.size());
        for (std::size_t i = 0; i < other.counts_.size(); i++) counts_[i] += other.counts_[i];
        cold += other.cold;
        invalidated += other.invalidated;
    }
    Histogram histogram() const {
        Histogram out;
        out.cold = static_cast<double>(cold);
        out.invalidated = static_cast<double>(invalidated);
        for (std::size_t slot = 0; slot < counts_.size(); slot++) {
            if (counts_[slot] == 0) continue;
            const std::uint64_t low = binning_.low_edge(slotted_ ? low_of(slot) : slot);
            if (out.bins.empty() || out.bins.back().low != low)
                out.bins.push_back({low, binning_.high_edge(low), 0, 0});
            out.bins.back().count += static_cast<double>(counts_[slot]);
        }
        return out;
    }

    std::uint64_t cold = 0;
    std::uint64_t invalidated = 0;

 private:
    static constexpr std::uint64_t kPerOctave = 64;

    REVISIT_INLINE static std::uint64_t slot_of(std::uint64_t distance) {
        if (distance < 2 * kPerOctave) return distance;
        const int shift = static_cast<int>(std::bit_width(distance)) - 7;
        return kPerOctave * static_cast<std::uint64_t>(shift) + (distance >> shift);
    }
    static std::uint64_t low_of(std::uint64_t slot) {
        if (slot < 2 * kPerOctave) return slot;
        return (slot % kPerOctave + kPerOctave) << (slot / kPerOctave - 1);
    }

    Binning binning_;
    bool slotted_;
    std::vector<std::uint64_t> counts_;
};

}  // namespace revisit
