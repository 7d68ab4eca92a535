// How far off a sampled histogram may be: every bin, and every miss rate.
//
// Problem. An error for each bin does not give that of a sum of bins: a reuse that is missing in one is
// in another. Miss rates are such sums, of all bins from some distance on, so these have errors of
// their own (Bin::beyond_error). Idea. Several things are wrong with a sampled histogram, and each is
// worked out for both kinds of figure:
// - *sampling.* The figure is a ratio of sums over samples; its variance is the sum of the squared
//   influences of each sample on it (the delta method, clusters = samples). Shares among the open uses
//   are taken relative to all open ones, as the estimate does. Where few long reuses were seen, the
//   next one could be anywhere: two more count as if they were wrong.
// - *the clock and the model* scale all timed distances by a factor that is known within so much: what
//   lies within that factor of an edge may be on its other side.
// - *words not watched*: half of what their correction moved.
// - *reuses not seen out*: those that lost their watchpoints later than any other came back.
// They add up in squares. Cost. O(samples · bins).
#pragma once

#include <array>
#include <map>
#include <utility>
#include <vector>

#include "watch/estimate/seen.h"

namespace revisit::watch {

// What one sample adds, as a row of bins and their masses: of reuses in windows, and of those that
// stand for open uses. How many accesses it stands for, by what became of them.
struct SamplePart {
    std::vector<std::pair<std::size_t, double>> near, far;
    double back = 0, open = 0;
};
// All samples of a thread with what they stand for.
std::vector<SamplePart> sample_parts(const SeenThread& seen);
// The variance that sampling has in the mass of all bins from the second on, of these two.
double sampling_variance(const std::vector<SamplePart>& parts, const std::array<double, 2>& masses);
// The factor that timed distances may be off by, 95 % sure.
double distance_factor(const SeenThread& seen);

class ShareErrors {
 public:
    // Threads in any order; what they point to must stay.
    void add(const SeenThread& seen) { threads_.push_back(&seen); }

    // Fills the errors of a histogram of all that was added, on these bins.
    void put_into(Histogram& histogram, const Binning& bins) const;

 private:
    std::vector<const SeenThread*> threads_;
};

}  // namespace revisit::watch
