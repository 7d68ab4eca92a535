// HP-RDA, the GPU paper's approximate method: what its two forms share. hprda.cpp explains how it
// works.
#pragma once

#include <cstdint>

#include "engines/tally.h"

namespace revisit {

// Sums over distances that overlap: raw until the end, when the trace's own effective factor is known.
class HprdaTally {
 public:
    explicit HprdaTally(const EngineOptions& options)
        : options_(options), counted_(options.bins), raw_(Binning::log2(256)) {}

    void add(std::uint64_t distance, std::uint64_t count = 1) { counted_.add(distance, count); }
    // A distance summed over thread blocks; `fine` bins keep it to a 256th until it is adjusted.
    void add_raw(std::uint64_t distance, std::uint64_t count = 1) { raw_.add(distance, count); }
    // `distinct` is M, `sum` the blocks of all thread blocks added up.
    Profile profile(std::uint64_t accesses, std::uint64_t distinct, std::uint64_t sum) const;

 private:
    EngineOptions options_;
    DistanceCounter counted_;
    DistanceCounter raw_;
};

// Whether the options ask for what the method has.
Result<void> check_hprda(const EngineOptions& options);

// Formula 2 of the paper: a sum larger than the number of blocks there are is brought down by the
// effective factor, the share of it that is not counted twice.
inline std::uint64_t adjusted(std::uint64_t distance, std::uint64_t distinct, std::uint64_t sum) {
    if (distance <= distinct) return distance;
    return static_cast<std::uint64_t>(static_cast<double>(distance) * static_cast<double>(distinct) /
                                      static_cast<double>(sum));
}

}  // namespace revisit
