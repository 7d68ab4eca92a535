// The bins that several histograms have in common.
//
// Histograms of different binnings compare, and add, only over the edges that no bin of either side
// straddles. [0,1) [1,2) [2,4) and [0,1) [1,2) [2,3) [3,4) share [0,1) [1,2) [2,4): the finer one folds
// into the coarser one, and nothing is made up. [0,1000) and [512,1024) share only [0,1024).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "revisit/histogram.h"

namespace revisit {

class CommonBins {
 public:
    void add(const Histogram& histogram);

    // Whether every common bin is a bin of one of the histograms, so that only detail is lost that one
    // of them never had.
    bool nested() const { return !first_clash_; }
    // The first two bins that straddle each other's edges: "[0, 1000) and [512, 1024)".
    std::string clash() const;

    // The histogram on these bins; bins outside of them are left as they are.
    Histogram fold(const Histogram& histogram) const;
    bool changes(const Histogram& histogram) const;

    std::size_t size() const { return bins_.size(); }

 private:
    struct Clash {
        Bin a, b;
    };
    std::vector<Bin> bins_;  // edges alone
    std::optional<Clash> first_clash_;
};

}  // namespace revisit
