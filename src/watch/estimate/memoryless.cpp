#include "watch/estimate/memoryless.h"

#include <algorithm>
#include <cmath>

namespace revisit::watch {

namespace {

// How far the share still waiting at a time (Kaplan and Meier's estimate, which knows of the lost) is
// from the exponential distribution's, at most.
double furthest_from(double rate, std::span<const Waited> waited) {
    std::vector<Waited> all(waited.begin(), waited.end());
    std::ranges::sort(all, {}, &Waited::time);
    double waiting = 1, furthest = 0;
    for (std::size_t i = 0; i < all.size(); i++) {
        if (all[i].lost) continue;
        const double expected = std::exp(-rate * all[i].time), before = waiting;
        waiting *= 1 - 1 / static_cast<double>(all.size() - i);
        furthest = std::max({furthest, std::abs(before - expected), std::abs(waiting - expected)});
    }
    return furthest;
}

}  // namespace

std::optional<double> memoryless_rate(std::span<const Waited> waited) {
    constexpr double kLeast = 4, kMost = 1.9;
    double came = 0, logs = 0, sum = 0, first = 0, second = 0;
    for (const Waited& one : waited) {
        double time = std::max(1.0, one.time), log = std::log(time);
        sum += time;
        first += time * log;
        second += time * log * log;
        if (one.lost) continue;
        came++;
        logs += log;
    }
    if (came < kLeast || sum <= 0) return {};
    first /= sum;
    second /= sum;
    double score = came + logs - came * first, variance = came * (1 + second - first * first);
    if (score * score > kMost * kMost * variance) return {};
    const double rate = came / sum;
    // Some soon and most after the same long time: Weibull's family has neither.
    constexpr double kFurthest = 1.3;
    if (furthest_from(rate, waited) * std::sqrt(came) > kFurthest) return {};
    return rate;
}

std::vector<double> times_between(double rate, double low, double high, unsigned count) {
    std::vector<double> out;
    for (unsigned i = 0; i < count; i++)
        out.push_back(-std::log(1 - (low + (high - low) * (i + 0.5) / count)) / rate);
    return out;
}

}  // namespace revisit::watch
