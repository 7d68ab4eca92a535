// Histograms of distances, and the ways to cut distances into bins.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "revisit/error.h"

namespace revisit {

// How distances fall into bins: `log2`, `log2:K`, `linear:W`, `exact`.
//
// log2:K cuts every power of two [2^e, 2^(e+1)) into K bins of equal width (fewer where the width would
// fall under 1); distance 0 is a bin of its own. The edges of log2:K are among those of log2:mK, and of
// linear:W among those of exact, so a fine histogram folds into a coarse one without loss.
class REVISIT_API Binning {
 public:
    enum class Kind : std::uint8_t { log2, linear, exact };

    static Result<Binning> parse(std::string_view spec);
    static Binning log2(std::uint64_t bins_per_octave = 1) { return {Kind::log2, bins_per_octave}; }
    static Binning linear(std::uint64_t width) { return {Kind::linear, width}; }
    static Binning exact() { return {Kind::exact, 1}; }

    // The low edge of the bin a distance falls into, and the high edge (excluded) of the bin that
    // starts at `low`. The top edge saturates at 2^64 - 1.
    std::uint64_t low_edge(std::uint64_t distance) const;
    std::uint64_t high_edge(std::uint64_t low) const;

    // Dense bin numbers, 0 first, monotone in the distance.
    std::uint64_t index(std::uint64_t distance) const;

    Kind kind() const { return kind_; }
    std::uint64_t parameter() const { return parameter_; }
    std::string spec() const;
    bool operator==(const Binning&) const = default;

 private:
    Binning(Kind kind, std::uint64_t parameter) : kind_(kind), parameter_(parameter) {}
    Kind kind_;
    std::uint64_t parameter_;
};

// One bin: distances in [low, high). Counts are doubles because an estimate's are fractions; whole
// counts are exact to 2^53, nine thousand times 10^12. `error` is the 95 % half-width, 0 = exact;
// `beyond_error` is that of the sum from this bin on, infinite distances included: the misses of a
// cache that holds `low` blocks. Errors of neighbouring bins go together, so it does not follow from
// theirs.
struct Bin {
    std::uint64_t low = 0;
    std::uint64_t high = 0;
    double count = 0;
    double error = 0;
    double beyond_error = 0;
    bool operator==(const Bin&) const = default;
};

// A histogram as results carry it: non-empty bins in rising order, infinite distances beside them.
struct REVISIT_API Histogram {
    double cold = 0;         // first touches
    double invalidated = 0;  // reuses lost to another thread's write
    double cold_error = 0;
    double invalidated_error = 0;
    std::vector<Bin> bins;

    double finite() const;  // sum of the bins
    double total() const { return cold + invalidated + finite(); }
    // 95 % half-width of what lies at a distance and beyond, infinite ones included: the misses of a
    // cache of so many blocks. 0 where bins do not have it (Bin::beyond_error).
    double beyond_error(double distance) const;

    // Adds `other`. Bins with equal edges add up; bins that do not line up are kept apart where they
    // are disjoint and otherwise joined into the smallest bin that covers them. Nothing is lost.
    void merge(const Histogram& other);

    // Folds bins into coarser ones. A bin that straddles an edge of `to` is spread over the pieces in
    // proportion to their width.
    Histogram rebin(const Binning& to) const;

    // The distance below which a share of the finite reuses lies, interpolated inside its bin.
    double percentile(double share) const;

    bool operator==(const Histogram&) const = default;
};

// Counts distances one by one: what engines fill. Small distances go to a dense table, large ones to
// the binning's own slots, so memory is bounded by the number of distinct bins.
class REVISIT_API DistanceCounter {
 public:
    explicit DistanceCounter(Binning binning);

    void add(std::uint64_t distance, std::uint64_t count = 1) {
        if (distance < dense_.size()) [[likely]]
            dense_[distance] += count;
        else
            add_large(distance, count);
    }
    void add_cold(std::uint64_t count = 1) { cold_ += count; }
    void add_invalidated(std::uint64_t count = 1) { invalidated_ += count; }
    void merge(const DistanceCounter& other);  // same binning

    Histogram histogram() const;
    const Binning& binning() const { return binning_; }

 private:
    void add_large(std::uint64_t distance, std::uint64_t count);

    Binning binning_;
    std::vector<std::uint64_t> dense_;               // exact distances below its size
    std::vector<std::uint64_t> slots_;               // log2: by bin index
    std::map<std::uint64_t, std::uint64_t> sparse_;  // linear and exact: by low edge
    std::uint64_t cold_ = 0;
    std::uint64_t invalidated_ = 0;
};

}  // namespace revisit
