// How long a program is slow after it stood still.
//
// Problem. A stretch begins with a stop. The kernel takes a while to bring the program back, with its
// watchpoints (in a virtual machine each of their registers is set by the host), and its caches may
// hold less than they did. From the rates that exact profiles give it follows that 15 to 30 us are lost
// so, or 25 to 100 where neighbours share the caches (two virtual machines of Xeon cores).
// Idea. Stretches have all lengths, and what is lost is a larger part of a short one: it is the delay
// for which those of a loop have most nearly the same rate.
//
//     8.5 K accesses in 90 us, 42.5 K in 260 us    94 and 163 per us
//     without 47.5 us of each                      200 and 200
//
// How far rates of a loop differ anyway is seen from the stretches too. Few of them say little, so what
// is usual has a say. The mean over all delays by how likely they are has an error, which goes into
// that of the clock.
//
// Stretches that begin without a stop (outside/replay.h) lose less: the kernel's part of the record and
// of the stop at their end.
//
// Measured. 16 programs, three times each and in turn, with neighbours: the number of accesses was 0.97
// of the true one in the median, off by 21 % (root of the mean square), and within its error in 43 of
// 48 runs. With 20 us for nearly known it was 0.82, 30 % and 28.
#pragma once

#include <map>
#include <string>

#include "watch/clock/stretches.h"
#include "watch/samples/samples.h"

namespace revisit::watch {

struct SlowStart {
    double nanoseconds = 0, error = 0;
};

SlowStart slow_start_of(const std::map<std::string, Measured>& measured, const UsualSlowStart& usual);

}  // namespace revisit::watch
