// One thread's clock: accesses between moments of its time.
#include <algorithm>
#include <cmath>

#include "watch/clock/clock.h"

namespace revisit::watch {

// Which loops the samples met is chance where one follows another within a period: their rates then
// differ from sample to sample. Phases of many samples have their time in full, so what counts is how
// far each is from the one before.
double AccessClock::ThreadClock::error_by_samples(const std::vector<double>& times) const {
    double whole = 0, time = 0, variance = 0, before = 0;
    for (std::size_t i = 0; i < made.size(); i++) {
        whole += made[i];
        time += times[i];
    }
    if (whole <= 0 || time <= 0) return 0;
    for (std::size_t i = 0; i < made.size(); i++) {
        double more = made[i] - times[i] * whole / time;
        if (i > 0) variance += std::pow(more - before, 2) / 2;
        before = more;
    }
    return std::sqrt(variance) / whole;
}

// Between two samples the program goes through many loops, of which the later sample has met one. So
// the clock goes at the mean rate of the samples around.
void AccessClock::ThreadClock::run_evenly(const std::vector<double>& times,
                                          const std::vector<double>& passed) {
    constexpr std::size_t kAround = 3;
    double now = 0, whole = 0, even = 0;
    for (double one : made) whole += one;
    std::vector<double> steps;
    for (std::size_t i = 0; i < made.size(); i++) {
        double accesses_around = 0, time_around = 0;
        std::size_t low = i > kAround ? i - kAround : 0, high = std::min(made.size(), i + kAround + 1);
        for (std::size_t k = low; k < high; k++) {
            accesses_around += made[k];
            time_around += times[k];
        }
        last_rate = time_around > 0 ? accesses_around / time_around : 0;
        steps.push_back(passed[i] * last_rate);
        even += steps.back();
    }
    for (double step : steps) accesses.push_back(now += even > 0 ? step * whole / even : 0);
}

// All of the clock may be off, and a short while may go at another rate than most of its function do:
// a tenth of a millisecond is about as long as rates stay alike. And how long the program was slow
// before a trap, and how late that is reported, differs by some microseconds.
double AccessClock::ThreadClock::uncertainty(double nanoseconds) const {
    constexpr double kAlike = 100000;
    double late = delay_error / std::max(delay_error + 1, nanoseconds - delay);
    return std::sqrt(error * error + spread * spread * kAlike / (kAlike + nanoseconds) + late * late);
}

namespace {

// Accesses in a time of which the first part passes in a loop: at its rate there, else evenly.
double accesses_from_loop(double rate, double stays, double nanoseconds, double even) {
    const double there = stays * (1 - std::exp(-nanoseconds / stays));
    return rate * there + even * (1 - there / nanoseconds);
}

}  // namespace

double AccessClock::ThreadClock::since(std::size_t sample, double nanoseconds) const {
    double even = at(nanoseconds) - accesses[sample];
    // Four times slower at first, and then less and less.
    constexpr double kSlower = 0.75;
    double passed = nanoseconds - time[sample], late = sample < lost.size() ? lost[sample] : delay;
    double taken = late > 0 ? passed - late * (1 - std::exp(-kSlower * passed / late)) : passed;
    if (sample >= rate.size() || stays[sample] <= 0 || taken <= 0) return even;
    return accesses_from_loop(rate[sample], stays[sample], taken, even);
}

double AccessClock::ThreadClock::since_use(std::size_t sample, double nanoseconds,
                                           double accesses_to_use) const {
    const double passed = nanoseconds - time[sample];
    if (sample < rate_of_use.size() && rate_of_use[sample] > 0 && rate[sample] > 0) {
        const double to_use = accesses_to_use / rate[sample] + lost[sample], left = passed - to_use;
        if (left > 0)
            return accesses_from_loop(rate_of_use[sample], stays_at_use[sample], left,
                                      at(nanoseconds) - at(time[sample] + to_use));
    }
    return since(sample, nanoseconds) - accesses_to_use;
}

// Between two turns the others have theirs: a reuse that comes sooner than that is of the same turn.
std::optional<AccessClock::ThreadClock::ByTurns> AccessClock::ThreadClock::by_turns(
    std::size_t sample, double nanoseconds, double accesses_to_use) const {
    constexpr double kSooner = 0.75, kLeast = 0.4;  // turns differ
    if (sample >= turns.size() || turns[sample].rate <= 0) return std::nullopt;
    const Turns& loop = turns[sample];
    const double passed =
        nanoseconds - time[sample] - lost[sample] - accesses_to_use / std::max(1e-3, rate[sample]);
    ByTurns out{1, loop.between, 0, loop.open, loop.open_between};
    if (passed >= kSooner * loop.leaves)
        out.times = 1 + std::max(0.0, std::floor((passed - loop.leaves) / (loop.leaves + loop.stays)));
    const double left = passed - out.times * loop.leaves;
    if (out.times == 0)
        out.in_loop = std::max(loop.rate * left, since_use(sample, nanoseconds, accesses_to_use));
    else  // how long the others' turns were, is known less well than how long its own are
        out.in_loop = loop.rate * std::clamp(left, kLeast * loop.stays, out.times * loop.stays);
    return out;
}

double AccessClock::ThreadClock::at(double nanoseconds) const {
    auto next = std::upper_bound(time.begin(), time.end(), nanoseconds) - time.begin();
    if (next == 0) return 0;
    auto before = static_cast<std::size_t>(next - 1);
    double since = std::max(0.0, nanoseconds - time[before] - delay);
    if (before + 1 == time.size()) return accesses[before] + since * last_rate;
    double length = time[before + 1] - time[before] - delay;
    double share = length > 0 ? std::min(1.0, since / length) : 1;
    return accesses[before] + share * (accesses[before + 1] - accesses[before]);
}

}  // namespace revisit::watch
