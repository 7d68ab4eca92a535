// Which loops take the time, from all that is known of where a thread was.
//
// Problem. A sample stands for the time since the one before. Where a loop takes turns with one ten
// times as slow, thirty samples meet it two to eight times, and its accesses come out by a factor of
// two wrong. Idea. There are more moments at which a thread was seen: ticks. All moments of a sample's
// time count alike; the samples of a loop are then worth as much time as all moments say. Where
// stretches begin and end does not count: they begin where a rate is wanted. Measured (aarch64),
// samples alone in ten runs and ticks in sixteen: the accesses of quicksort were found to 0.90 to 2.37
// of their number, and are to 1.04 to 1.60; those of a gather that takes turns with the filling of its
// indices to 0.94 to 1.28, and are to 0.92 to 1.11.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "watch/clock/clock.h"

namespace revisit::watch {

// Nanoseconds since the sample before. Kernel time between two samples belongs to nobody's accesses:
// samples are taken in user code alone, one a period of it. But replays take pages that are met for the
// first time as the program does, and the kernel's work for these is in their rates.
double advance(const std::vector<Sample>& samples, std::size_t i, bool with_kernel = false);
// … where the time since the sample before is not only its own: of moments that were passed over.
double time_of(const std::vector<Sample>& samples, std::size_t i, bool with_kernel = false);

// By loop: its time, over that of its samples.
std::map<std::string, double> time_over_samples(const Samples& samples, FunctionNames& names);

}  // namespace revisit::watch
