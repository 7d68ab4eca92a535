#include "watch/estimate/memoryless.h"

#include <cmath>

namespace revisit::watch {

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
    return came / sum;
}

std::vector<double> times_between(double rate, double low, double high, unsigned count) {
    std::vector<double> out;
    for (unsigned i = 0; i < count; i++)
        out.push_back(-std::log(1 - (low + (high - low) * (i + 0.5) / count)) / rate);
    return out;
}

}  // namespace revisit::watch
