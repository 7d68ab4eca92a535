// Shares out counts over the bins of a reuse-distance histogram.
//
// A model answers in real numbers: "these 400 reuses lie evenly between 17.3 and 19.1", "these around
// 5000, give or take 70". Distance k owns the real interval [k, k + 1). Bins are a dense array in the
// order of Binning::index; linear bins too many for one are counted on a fine log2 grid and cut to
// width at the end.
#pragma once

#include <vector>

#include "revisit/histogram.h"

namespace revisit {

class DistanceSpread {
 public:
    // Distances stay below `distinct` (0 = no limit known).
    DistanceSpread(const Binning& bins, double distinct);

    // `count` reuses evenly over [low, high); one distance when the interval is empty.
    void add_even(double low, double high, double count);
    // The same, each then moved by a Normal error of standard deviation `deviation`.
    void add_normal(double low, double high, double deviation, double count);

    // The bins, scaled so that they sum to `finite` exactly as far as doubles can.
    std::vector<Bin> bins(double finite) const;

    double top() const { return top_; }

 private:
    double& cell(std::uint64_t distance);
    void add_piece(double low, double high, double count);  // low < high, inside the limits

    Binning wanted_;
    Binning grid_;
    double top_;
    std::vector<double> counts_;
};

}  // namespace revisit
