// Distances by site in powers of two: what windows of a run keep of each site (phases.h).
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <unordered_map>

#include "revisit/error.h"
#include "revisit/histogram.h"

namespace revisit {

struct OctaveCounts {
    static constexpr std::size_t kOctaves = 48;
    std::uint64_t cold = 0, invalidated = 0;
    std::array<std::uint64_t, kOctaves> octaves{};  // by the width of the distance in bits

    void add(std::uint64_t distance, std::uint64_t count) {
        octaves[std::min<std::size_t>(kOctaves - 1, std::bit_width(distance))] += count;
    }
    std::uint64_t total() const {
        std::uint64_t sum = cold + invalidated;
        for (std::uint64_t count : octaves) sum += count;
        return sum;
    }
    void merge(const OctaveCounts& other) {
        cold += other.cold;
        invalidated += other.invalidated;
        for (std::size_t i = 0; i < kOctaves; i++) octaves[i] += other.octaves[i];
    }
    void subtract(const OctaveCounts& earlier) {
        cold -= earlier.cold;
        invalidated -= earlier.invalidated;
        for (std::size_t i = 0; i < kOctaves; i++) octaves[i] -= earlier.octaves[i];
    }
    Histogram histogram() const {
        Histogram out;
        out.cold = static_cast<double>(cold);
        out.invalidated = static_cast<double>(invalidated);
        for (std::size_t i = 0; i < kOctaves; i++)
            if (octaves[i] != 0)
                out.bins.push_back({i == 0 ? 0 : std::uint64_t{1} << (i - 1), std::uint64_t{1} << i,
                                    static_cast<double>(octaves[i]), 0});
        return out;
    }
};

using SiteOctaves = std::unordered_map<std::uint32_t, OctaveCounts>;

// An engine that knows, in the middle of a run, what its sites have done so far.
class SiteSnapshots {
 public:
    virtual ~SiteSnapshots() = default;
    virtual Result<void> sites_so_far(SiteOctaves& out) = 0;
};

}  // namespace revisit
