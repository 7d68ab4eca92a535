// What samples saw of a thread, weighted so that it stands for all of its accesses.
//
// Each sample stands for the accesses since the one before it. Uses that its window met again are
// counted there; one open use stands for the others. One that got the watchpoints counts one over its
// chance of getting them (Horvitz and Thompson). Those that lost them to a later sample still say that
// their reuse takes longer than that: what they stand for goes to those that were waited for longer
// (Kaplan and Meier's estimate, by Efron's redistribution to the right). One over the chance of having
// kept them, which is as unbiased, throws that away: where one long reuse in thirty is seen out, it
// gave nothing in most runs and far too much in a few (simulated; tiled matrix multiply, misses at 32
// KiB 0.84 of 1.00 points too low). Reuses that were counted by looking further ahead stand for
// themselves. What all open uses together stand for is known from the windows; only how it divides is
// estimated. Time distances come from the clock, corrected for words that were not watched
// (unwatched.h), reuse distances from that by the footprint model.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "watch/estimate/estimate.h"
#include "watch/estimate/unwatched.h"

namespace revisit::watch {

// A pair that was seen, or an access that never came back.
struct Seen {
    const Sample* sample = nullptr;
    bool far = false;    // open in its window
    bool exact = true;   // counted, not timed
    bool never = false;  // it did not come back
    double weight = 0;
    double moment = 0;          // of the reuse, in accesses of its thread
    std::vector<double> time;   // distance: one, or several that it may be
    std::vector<double> reuse;  // … as many
    double corrected = 0;       // time distance as the watchpoints had it, over all words
    // … which is without others' turns, where these are known: as often as they come before a visit, in
    // the mean, and how much of each time they are.
    std::optional<AccessClock::ThreadClock::ByTurns> turns;
    std::vector<double> between;
    double uncorrected = 0;  // reuse distance if all visits had been seen; never: the least it has

    bool cold() const { return never; }
    // It lost its watchpoints having waited longer than any that came back: cold, or very far.
    bool unresolved() const { return never && sample->watched == Sample::Watched::replaced; }
    std::uint32_t use_label() const { return far ? sample->far_label : sample->label; }
    std::uint32_t reuse_label() const { return far ? sample->far_reuse_label : sample->reuse_label; }
};

// All uses of a sample's window that came back.
struct SeenWindow {
    std::size_t sample = 0;
    std::span<const ThreadSamples::Entry> time, reuse;
    double weight = 0;  // of one use
};

struct SeenThread {
    std::vector<Seen> pairs;
    std::vector<SeenWindow> windows;  // empty where the pairs stand for all
    struct Mass {                     // accesses that a sample stands for, by what became of them
        double back = 0, open = 0;
    };
    std::vector<Mass> masses;  // by sample
    // Accesses that came back within their windows: what the near pairs weigh, if one was drawn.
    double back = 0;
    const Sample* first = nullptr;  // … of which this is the first
    bool knows_losses = false;      // … and when each lost its watchpoints
    double length = 0;              // accesses
    double clock_error = 0;         // relative, one standard deviation
};

SeenThread see(const Samples& samples, const ThreadSamples& thread,
               const AccessClock::ThreadClock& clock, const UnwatchedWords& unwatched,
               const Origins& origins, const EstimateOptions& options);

}  // namespace revisit::watch
