// Sites whose reuses come at any time alike: few of them say where all are.
//
// Problem. A thread waits for one line at a time, and in a short run it sees five to forty long reuses
// out. Taken as they are, they fill some bins of a histogram and leave their neighbours empty. Idea.
// Lookups in a table come back after times that are distributed exponentially: whatever the time
// waited, the next moment is as likely as any. One number describes that, the reuses seen over the time
// waited for all of them, those that lost their watchpoints included. Whether a site is such a one is
// asked of its own reuses, by two tests. Cox and Oakes' against Weibull's family: those that all take
// the same time, or are short mostly and very long now and then, fail it. Lilliefors' distance from the
// distribution: those that take the same time but for some short ones fail it (the columns of a matrix,
// in a third of all runs without it). What fails stays as it is. Where both pass, the reuses keep their
// order, weights and places, and get the times that the distribution has at their ranks; those that
// were lost go to reuses of the same site.
//
// Small example. Five reuses after 1, 2, 2, 5 and 10 K accesses and one lost after 4 K: the rate is 5
// in 24 K. The first fifth of all comes within 1.07 K: its reuse stands for times from 0.06 K to 1.0 K.
//
// Source. Cox, Oakes 1984, section 3.7, and Lilliefors 1969 for the tests; the use is ours. Figures
// (simulated, 60 samples, median S of 12 seeds, before and after): join 0.915, 0.937; hash table 0.922,
// 0.945; gather 0.921, 0.941; scatter 0.957, 0.967; with 200 samples join 0.894, 0.936. Sweeps, sorts
// and xz stay as they are.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace revisit::watch {

// A use that waited for its reuse.
struct Waited {
    double age = 0, weight = 0;  // until it came or was lost, as the watchpoints saw it
    bool lost = false;           // its watchpoints went to another
    std::size_t pair = 0;
    std::uint64_t site = 0;  // of the use; 0 = not known
    double time = 0;         // until it came or was lost, corrected, beyond the window
    double between = 0;      // … without this, of others' turns, so many times (clock.h)
    double times = 0;
};

// Reuses per access waited, if these may be memoryless.
std::optional<double> memoryless_rate(std::span<const Waited> waited);

// Times at `count` ranks between two shares of all reuses, in order.
std::vector<double> times_between(double rate, double low, double high, unsigned count);

}  // namespace revisit::watch
