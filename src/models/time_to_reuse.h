// The bars of a time-distance histogram as the models walk them.
#pragma once

#include <vector>

#include "models/distance_spread.h"
#include "revisit/time_model.h"

namespace revisit {

// Time distances in [low, high), gaps included, so that bars follow each other from 1 on.
struct TimeBar {
    double low = 1;
    double high = 1;
    double count = 0;
    double width() const { return high - low; }
};

struct TimeBars {
    std::vector<TimeBar> bars;
    double infinite = 0;  // cold and invalidated: accesses whose time distance exceeds every bar
    double total = 0;     // with the infinite ones
};

TimeBars time_bars(const Histogram& time);

void spread_expected(const TimeBars& time, DistanceSpread& spread);
void spread_shen(const TimeBars& time, double distinct, DistanceSpread& spread);
Result<void> spread_shen_basic(const TimeBars& time, double distinct, DistanceSpread& spread);

}  // namespace revisit
