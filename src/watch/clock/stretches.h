// What was measured of one loop or function: accesses in so many nanoseconds, several times.
//
// A stretch that ends in another loop has the rate of two. Where it is known how many accesses it made
// in each, the rate of one loop gives that of the other; loops that take short turns have few other
// stretches. Else it is left out where enough others stay, or what it made elsewhere is guessed. Loops
// that alternate within a stretch all have the rate of the whole.
//
//     gather; filling, 0.26 per ns: 340 K in 163 us, stays      2.1
//                                   353 K in 315 us, leaves     1.1 → 2.0 (2 * 1.1 - 0.26)
//
// The mean of what stays and leaves was 1.4 there, and the gather had half of its accesses.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace revisit::watch {

inline double median(std::vector<double> values) {
    auto half = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
    std::ranges::nth_element(values, half);
    return *half;
}

// What was measured in one function: accesses in so many nanoseconds, several times, in order of the
// program's time.
struct Measured {
    struct Stretch {
        double when = 0, accesses = 0, time = 0;
        bool foreseen = false;
        bool leaves_loop = false, leaves_function = false;  // it ends elsewhere
        const std::string* end = nullptr;                   // the loop that it ends in
        double trust = 1;
        double before = 0;  // accesses before that loop; 0 = not known
        double open = -1;   // share of the uses at its end that are not used again soon; -1 = not known
        // How well the time is known: how long the program is slow at its beginning (slow_start.h).
        double time_error = 5000;

        double rate() const { return accesses / time; }
        // Of the other loop that it ends in; 0 = it stays, or the rate is not known.
        double rate_at_end(const std::map<std::string, double>& rates) const {
            if (!leaves_loop || end == nullptr) return 0;
            const auto found = rates.find(*end);
            return found == rates.end() ? 0 : found->second;
        }
        // What it made in the loop that it began in, or ended in, where the other one has this rate.
        // None where little time is left for it.
        std::optional<Stretch> part(bool at_end, double other) const {
            constexpr double kLeast = 0.2;
            const double first = before, second = accesses - before, own = at_end ? second : first;
            const double left = time - (at_end ? first : second) / other;
            if (before <= 0 || own <= 0 || left < kLeast * time) return {};
            Stretch out{when, own, left, foreseen, false, false, nullptr, std::pow(left / time, 2)};
            out.time_error = time_error;
            return out;
        }
        // Without what it made in a loop of this rate, that it was in for half the way in the mean.
        // `usual` is the rate of the rest.
        Stretch without(double other, double usual) const {
            constexpr double kTrust = 0.15, kLeast = 0.25;
            const double left = std::max(2 * rate() - other, kLeast * usual);
            Stretch out{when, time * left, time, foreseen, leaves_loop, leaves_function, end, kTrust};
            out.time_error = time_error;
            return out;
        }
        // What is short says less: how long the program is slow at its beginning is not known well. The
        // rates of stretches differ by a fifth or so, and this by 3 microseconds.
        double weight() const {
            constexpr double kShort = 15000;
            return trust / (1 + std::pow(kShort / time, 2));
        }
    };
    std::vector<Stretch> stretches;

    std::size_t size() const { return stretches.size(); }
    // Rates of one loop differ by a third or so, those of two loops by a factor of three: one
    // measurement of its own says more of a loop than many of others.
    double share_of_own() const {
        constexpr double kDoubt = 0.3;
        return static_cast<double>(size()) / (static_cast<double>(size()) + kDoubt);
    }
    void sort() { std::ranges::stable_sort(stretches, {}, &Stretch::when); }

    // How long the program goes on in a loop: an exponential distribution's mean, of which stretches
    // see the beginning. One that ends elsewhere has left it half-way, if nothing more is known.
    double stays() const {
        const double rate = usual_rate();
        double time = 0, left = 0.5;
        for (const Stretch& one : stretches) {
            if (one.foreseen) continue;
            const bool is_known = one.before > 0 && rate > 0;
            time += !one.leaves_loop ? one.time
                    : is_known       ? std::min(one.time, one.before / rate)
                                     : one.time / 2;
            left += one.leaves_loop;
        }
        return time / left;
    }

    // Of those that end elsewhere, what they made here, where that is known.
    void take_parts(const std::map<std::string, double>& rates) {
        for (Stretch& one : stretches) {
            const double there = one.rate_at_end(rates);
            if (there <= 0) continue;
            if (const auto part = one.part(false, there)) one = *part;
        }
    }

    // Without those that end elsewhere, which have the rate of two loops: a tenth of the stretches of a
    // slow loop ran into a fast one, and its samples counted a quarter too much. Where most do, as in
    // an interpreter, they are what there is.
    void leave_out(bool Stretch::*leaves) {
        constexpr std::ptrdiff_t kEnough = 4;
        if (std::ranges::count(stretches, false, leaves) >= kEnough)
            std::erase_if(stretches, [&](const Stretch& one) { return one.*leaves; });
    }

    double usual_rate() const {  // of those that stay; 0 = there are none
        std::vector<double> rates;
        for (const Stretch& one : stretches)
            if (!one.leaves_loop) rates.push_back(one.rate());
        return rates.empty() ? 0 : median(rates);
    }

    // A stretch that ends in another loop went over to it half-way, in the mean: what it made there at
    // that loop's rate is taken off.
    void correct_those_that_leave(const std::map<std::string, double>& rates) {
        const double own = usual_rate();
        for (Stretch& one : stretches) {
            if (const double there = one.rate_at_end(rates); there > 0)
                one = one.without(there, own > 0 ? own : one.rate());
        }
    }

    // The mean of the rates around a moment. Stretches begin at moments of time, and each stands for
    // the time around it: accesses are rate times time, and the sum of accesses over that of times
    // would count slow ones twice where these are longer. One during which the machine did something
    // else comes out far too slow and is left out. (The mean over all of a function was taken once: of
    // one that builds a list and then walks it a hundred times, most stretches were of the building.)
    double rate_at(double when, bool leaves_out = true) const {
        constexpr std::size_t kNear = 16;
        constexpr double kFar = 4;
        auto low = std::ranges::lower_bound(stretches, when, {}, &Stretch::when), high = low;
        while (high - low < static_cast<std::ptrdiff_t>(std::min(kNear, size())))
            if (high == stretches.end() ||
                (low != stretches.begin() && when - (low - 1)->when < high->when - when))
                low--;
            else
                high++;
        std::vector<double> rates;
        for (auto one = low; one != high; one++) rates.push_back(one->rate());
        double usual = median(rates), sum = 0, weights = 0;
        for (auto one = low; one != high; one++) {
            if (leaves_out && one->rate() * kFar < usual) continue;
            double weight = one->weight() * time_around(one);
            sum += weight * one->rate();
            weights += weight;
        }
        return sum / weights;
    }

    // By how much the loop is faster than usual where this share of the uses is not used again soon. A
    // loop may be gone through with strides of one line and of many, as that of a sieve, which makes
    // three times as many accesses per nanosecond with the one as with the other: at the mean of both,
    // its samples had 37 % misses instead of 25 %.
    double by_open(double open) const {
        constexpr double kDoubt = 0.3;  // as much as two stretches say that are 0.8 apart
        constexpr double kMost = 4;
        double weights = 0, usual_open = 0, usual_rate = 0;
        for (const Stretch& one : stretches) {
            if (one.open < 0) continue;
            weights += one.weight();
            usual_open += one.weight() * one.open;
            usual_rate += one.weight() * std::log(one.rate());
        }
        if (open < 0 || weights <= 0) return 1;
        usual_open /= weights;
        usual_rate /= weights;
        double together = 0, square = kDoubt;
        for (const Stretch& one : stretches) {
            if (one.open < 0) continue;
            const double off = one.weight() * (one.open - usual_open);
            together += off * (std::log(one.rate()) - usual_rate);
            square += off * (one.open - usual_open);
        }
        const double slope = std::min(0.0, together / square);
        double mean = 0;
        for (const Stretch& one : stretches)
            if (one.open >= 0) mean += one.weight() * std::exp(slope * (one.open - usual_open));
        return std::clamp(std::exp(slope * (open - usual_open)) * weights / mean, 1 / kMost, kMost);
    }

    // Of one measurement, squared and relative.
    double spread() const {
        return mean([&](const Stretch& one) {
            return std::min(1.0, std::pow(one.rate() / rate_at(one.when) - 1, 2));
        });
    }

    // Of the rate, by chance. What is usual counts as much as one measurement.
    double error_by_chance() const {
        constexpr double kUsual = 0.1;
        auto count = static_cast<double>(size());
        return (spread() * count + kUsual) / (count * count);
    }

    // … and by what is wrong with all of them alike: how long the program is slow after an
    // interruption, what samples cost it besides, and that looking ahead has fetched what a stretch
    // needs that was foreseen.
    double error_of_all() const {
        constexpr double kLeast = 0.025, kForeseen = 0.35;
        return mean([&](const Stretch& one) {
            return one.foreseen ? kForeseen : std::hypot(kLeast, one.time_error / one.time);
        });
    }

 private:
    // From half the way from the one before to half the way to the next.
    double time_around(std::vector<Stretch>::const_iterator one) const {
        double from = one == stretches.begin() ? 0 : (one - 1)->when;
        double to = one + 1 == stretches.end() ? 2 * one->when - from : (one + 1)->when;
        return 1 + (to - from) / 2;
    }

    template <class Value>
    double mean(Value value) const {
        double sum = 0, weights = 0;
        for (const Stretch& one : stretches) {
            sum += one.weight() * value(one);
            weights += one.weight();
        }
        return weights > 0 ? sum / weights : 0;
    }
};

}  // namespace revisit::watch
