// From time distances to reuse distances where only samples of a run are known.
//
// Problem. A reuse after time d saw those accesses in between whose own next access comes after it
// (time_to_reuse.cpp), and what a program does differs from phase to phase. The model of phases
// (time_phases.cpp) asks each phase for its own time distances. A sampled run has a few hundred long
// ones; cut into phases there are fifty in each, and their noise becomes a bias: one phase for all did
// better on every trace tried.
// Idea. What differs between phases is mostly how many accesses leave the window open at all, and that
// is known well at every sample, from hundreds of uses. How long open uses stay open is taken from the
// whole run:
//     D(t, d) = sum over j < d of P(time distance > j) · open(t - j) / mean open,
// the last factor only for j beyond the window. What a window says of its surroundings is noisy where a
// loop is longer than the window, so it is averaged over as many neighbours as predict it best when it
// is left out: all of them where the run is even, a few where it changes.
// Small example. Half of a run scans (a tenth of its accesses open), half gathers (half open). A reuse
// after 100 000 accesses inside the gather saw five times as many blocks as one in the scan; the mean
// of both is wrong by a factor of 1.7. Cost. O(bars) per reuse, O(samples) to build. Figures
// (simulated, 400 samples, exact time distances, tests/watch_simulation_test.cpp and docs/watch.md):
// worst bias of the miss rate of a 1 MiB cache 1.7 points on twelve traces; by phases of 50
// samples 7.0, one phase for all 6.4.
#pragma once

#include <span>
#include <vector>

#include "revisit/histogram.h"

namespace revisit {

// At a moment of the run, in accesses: the share of accesses not met again within the window.
struct OpenShare {
    double moment = 0, share = 0;
};

class FootprintModel {
 public:
    // All time distances of a run of `length` accesses, cold ones beside them; shares in order.
    FootprintModel(const Histogram& time, std::span<const OpenShare> shares, double window,
                   double length);

    // The distinct blocks that a reuse ending at `moment` after `time` accesses saw, on average.
    double distance(double moment, double time) const;
    // … where so many times as many uses as in the mean were open all the time.
    double distance_where(double open, double time) const;

    std::size_t neighbours() const { return neighbours_; }

 private:
    struct Bar {
        double low, high, beyond;  // the share of accesses with a longer time distance
    };
    template <class Opened>
    double sum(double time, Opened opened) const;  // opened(from, to): uses from so long before
    double opened(double moment) const;            // open shares over their mean, summed up to then

    std::vector<Bar> bars_;
    std::vector<double> moments_, sums_;
    double window_, length_;
    std::size_t neighbours_ = 0;
};

}  // namespace revisit
