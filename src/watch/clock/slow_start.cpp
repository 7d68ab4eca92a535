#include "watch/clock/slow_start.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace revisit::watch {
namespace {

// A long delay does not make a short stretch arbitrarily fast.
double rate_after(const Measured::Stretch& one, double delay) {
    constexpr double kLeast = 5000, kLeastPart = 0.25;
    return one.accesses / std::max({kLeast, kLeastPart * one.time, one.time - delay});
}

// Of all rates from what is usual in their loop: squared, relative. What is far off was something else.
double scatter(const std::map<std::string, Measured>& measured, double delay) {
    constexpr double kFarOff = 0.3;
    double sum = 0;
    for (const auto& [name, values] : measured) {
        std::vector<double> rates;
        for (const Measured::Stretch& one : values.stretches) rates.push_back(rate_after(one, delay));
        const double usual = median(rates);
        for (double rate : rates)
            sum += std::pow(std::min(kFarOff, std::abs(std::log(rate / usual))), 2);
    }
    return sum;
}

}  // namespace

SlowStart slow_start_of(const std::map<std::string, Measured>& measured, const UsualSlowStart& usual) {
    constexpr double kMost = 200000, kStep = 1000;
    // What is known of the scatter beforehand: as much as so many stretches say.
    constexpr double kBefore = 4, kScatterBefore = 0.1;
    double known = kBefore;
    for (const auto& [name, values] : measured)
        if (values.size() > 0) known += static_cast<double>(values.size()) - 1;
    std::vector<double> unlikely;
    for (double delay = 0; delay <= kMost; delay += kStep)
        unlikely.push_back(
            std::pow((delay - usual.nanoseconds) / usual.spread, 2) +
            known * std::log(scatter(measured, delay) + kBefore * kScatterBefore * kScatterBefore));
    const double least = *std::ranges::min_element(unlikely);
    double weights = 0, sum = 0, squares = 0;
    for (std::size_t i = 0; i < unlikely.size(); i++) {
        const double weight = std::exp((least - unlikely[i]) / 2),
                     delay = static_cast<double>(i) * kStep;
        weights += weight;
        sum += weight * delay;
        squares += weight * delay * delay;
    }
    const double mean = sum / weights;
    return {mean, std::sqrt(std::max(0.0, squares / weights - mean * mean))};
}

}  // namespace revisit::watch
