#include "watch/clock.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

namespace revisit::watch {
namespace {

// Kernel time between two samples belongs to nobody's accesses: samples are taken in user code alone,
// one a period of it.
double advance(const std::vector<Sample>& samples, std::size_t i) {
    double before = i == 0 ? 0 : static_cast<double>(samples[i - 1].time);
    return std::clamp(static_cast<double>(samples[i].time) - before, 0.0,
                      static_cast<double>(samples[i].period));
}

struct FunctionRate {
    double nanoseconds = 0;  // that samples found it running
    double rate = 0;         // accesses a nanosecond; 0 = not known
};

using Rates = std::map<std::string, FunctionRate>;

// The rate of what has none of its own: that of all others, by the time they take.
double common_rate(const Rates& rates) {
    double accesses = 0, time = 0;
    for (const auto& [name, function] : rates)
        if (function.rate > 0) {
            accesses += function.rate * function.nanoseconds;
            time += function.nanoseconds;
        }
    return time > 0 ? accesses / time : 0;
}

double middle(std::vector<double>& values) {
    auto half = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
    std::ranges::nth_element(values, half);
    return *half;
}

// The third stretch is longer than the second; what a trap takes is in both and falls out of the
// difference. One during which the machine did something else comes out far too slow: the middle one
// counts.
std::string rates_by_stretches(const Samples& samples, FunctionNames& names, Rates& rates) {
    struct Measured {
        std::vector<double> accesses, time;
        double rate() { return middle(accesses) / middle(time); }
    };
    std::map<std::string, Measured> measured;
    Measured all;
    for (const Rate& one : samples.rates)
        for (Measured* to : {&measured[names.of(one.place)], &all}) {
            to->accesses.push_back(one.third.accesses - one.second.accesses);
            to->time.push_back(one.third.nanoseconds - one.second.nanoseconds);
        }
    if (all.time.empty() || middle(all.time) <= 0) return {};
    // One or two stretches say little about a function: its rate is drawn to that of all.
    constexpr double kEnough = 4;
    std::vector<double> off;
    for (auto& [name, values] : measured) {
        double own = std::min(1.0, static_cast<double>(values.time.size()) / kEnough);
        if (middle(values.time) <= 0) own = 0;
        double rate = own > 0 ? values.rate() : 1;
        rates[name].rate = std::exp(own * std::log(rate) + (1 - own) * std::log(all.rate()));
        for (std::size_t i = 0; i < values.time.size(); i++)
            off.push_back(std::abs(values.accesses[i] / values.time[i] / rates[name].rate - 1));
    }
    return fmt::format(
        "processor time at each function's rate, from {} stretches timed between accesses "
        "foreseen; half of these are within {:.0f} % of it",
        off.size(), 100 * middle(off));
}

std::string rates_by_counts(const FunctionCounts& counts, Rates& rates) {
    double all = 0, seen = 0;
    for (const auto& [name, count] : counts) {
        all += count;
        auto found = rates.find(name);
        if (found == rates.end() || found->second.nanoseconds <= 0) continue;
        seen += count;
        found->second.rate = count / found->second.nanoseconds;
    }
    if (seen <= 0) return {};
    for (auto& [name, function] : rates) function.rate *= all / seen;
    return fmt::format(
        "processor time at each function's rate, from the accesses it made in an "
        "instrumented run; {:.1f} % of them in functions that samples met",
        100 * seen / all);
}

// After a sample the program is slow for a while: the kernel's part, and caches that hold something
// else. From the first touches whose moment is known. (What the third comes late was counted once; a
// run with that gave 0.75 for particles where one without gave 0.99, on a machine that was busier as
// well.)
double delay_after_samples(const Samples& samples, FunctionNames& names, Rates& rates, double common) {
    std::vector<double> delays;
    for (const Rate& one : samples.rates) {
        double rate = rates[names.of(one.place)].rate;
        if (rate <= 0) rate = common;
        auto extra = [&](const Rate::Stretch& stretch) {
            return stretch.nanoseconds - stretch.accesses / rate;
        };
        delays.push_back(extra(one.first));
    }
    return delays.empty() ? 0 : std::max(0.0, middle(delays));
}

}  // namespace

const std::string& FunctionNames::of(std::uint32_t place) {
    auto [found, is_new] = known_.try_emplace(place);
    if (!is_new) return found->second;
    const CodePlace& at = origins_.places[place];
    if (at.module == kNowhere) return found->second = "elsewhere";
    const std::string& path = origins_.modules[at.module].path;
    CodeSymbol symbol = symbols_.file(path).code_at(at.offset);
    std::string name = symbol.inlined.empty() ? symbol.frame.function : symbol.inlined.back().function;
    if (name.empty()) name = fmt::format("{:#x}", at.offset >> 8 << 8);
    return found->second = std::filesystem::path(path).filename().string() + ":" + name;
}

AccessClock::AccessClock(const Samples& samples, const Origins& origins, const FunctionCounts* counts) {
    FunctionNames names(origins);
    Rates rates;
    for (const auto& [number, thread] : samples.threads)
        for (std::size_t i = 0; i < thread.samples.size(); i++)
            rates[names.of(thread.samples[i].place)].nanoseconds += advance(thread.samples, i);
    if (counts) description_ = rates_by_counts(*counts, rates);
    if (description_.empty()) description_ = rates_by_stretches(samples, names, rates);
    double common = common_rate(rates);
    if (common <= 0) {
        common = 1;
        description_ = "processor time, one access a nanosecond: no rate could be measured";
    }
    double delay = delay_after_samples(samples, names, rates, common);
    for (const auto& [number, thread] : samples.threads) {
        ThreadClock& clock = threads_[number];
        clock.last_rate = common;
        clock.delay = delay;
        double now = 0;
        for (std::size_t i = 0; i < thread.samples.size(); i++) {
            double rate = rates[names.of(thread.samples[i].place)].rate;
            clock.last_rate = rate > 0 ? rate : common;
            now += advance(thread.samples, i) * clock.last_rate;
            clock.time.push_back(static_cast<double>(thread.samples[i].time));
            clock.accesses.push_back(now);
        }
        accesses_ += now;
    }
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
