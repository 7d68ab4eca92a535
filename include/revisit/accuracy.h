// How close one histogram is to another, and how far a sample may be off.
#pragma once

#include "revisit/histogram.h"

namespace revisit {

struct AccuracyOptions {
    bool infinite_as_bins = true;  // cold and invalidated count as bins of their own
};

// S = 1 - sum |B_i - B'_i| / 2 over the bins' shares; both are first brought to common edges.
REVISIT_API double accuracy(const Histogram& truth, const Histogram& estimate,
                            const AccuracyOptions& = {});
// S-hat: the same over averages of neighbouring bins, forgiving mass that fell just across an edge.
REVISIT_API double smoothed_accuracy(const Histogram& truth, const Histogram& estimate,
                                     const AccuracyOptions& = {});

// 95 % half-width of a bin's share, and of a whole histogram of `bins` bins.
REVISIT_API double share_error(double share, double samples);
REVISIT_API double histogram_error(double bins, double samples);
// Samples that hold every bin's share within `error`, whatever the share.
REVISIT_API double samples_for_error(double error);

}  // namespace revisit
