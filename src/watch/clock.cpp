#include "watch/clock.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <set>

#include "record/stream.h"

namespace revisit::watch {
namespace {

struct FunctionRate {
    double nanoseconds = 0;  // that samples found it running
    double rate = 0;         // accesses a nanosecond; 0 = not known
    bool with_kernel = false;
};

// Kernel time between two samples belongs to nobody's accesses: samples are
// taken in user code alone, one a period of it. But replays take pages that are
// met for the first time as the program does, and the kernel's work for these
// is in their rates.
double advance(const std::vector<Sample>& samples, std::size_t i, bool with_kernel = false) {
    double before = i == 0 ? 0 : static_cast<double>(samples[i - 1].time);
    double time = std::max(0.0, static_cast<double>(samples[i].time) - before);
    return with_kernel ? time : std::min(time, static_cast<double>(samples[i].period));
}

using Rates = std::map<std::string, FunctionRate>;

// The rate of what has none of its own: that of all others, by the time they
// take.
double common_rate(const Rates& rates) {
    double accesses = 0, time = 0;
    for (const auto& [name, function] : rates)
        if (function.rate > 0) {
            accesses += function.rate * function.nanoseconds;
            time += function.nanoseconds;
        }
    return time > 0 ? accesses / time : 0;
}

double middle(std::vector<double> values) {
    auto half = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
    std::ranges::nth_element(values, half);
    return *half;
}

// What was measured in one function: accesses in so many nanoseconds, several
// times.
struct Measured {
    std::vector<double> accesses, time;

    void add(double accesses_made, double nanoseconds) {
        accesses.push_back(accesses_made);
        time.push_back(nanoseconds);
    }
    std::size_t size() const { return time.size(); }

    // The geometric mean. Stretches begin at moments of time and have about as many accesses each, so
    // that the sum of accesses over that of times counts slow ones twice; the mean of rates is too high
    // where looking ahead has fetched what is needed. One during which the machine did something else
    // comes out far too slow and is left out.
    double rate() const {
        std::vector<double> rates(size());
        for (std::size_t i = 0; i < size(); i++) rates[i] = accesses[i] / time[i];
        constexpr double kFar = 4;
        double usual = middle(rates), sum = 0, count = 0;
        for (double one : rates) {
            if (one * kFar < usual) continue;
            sum += std::log(one);
            count++;
        }
        return std::exp(sum / count);
    }

    // Of one measurement, relative to the rate.
    double squared_error(double rate) const {
        double sum = 0;
        for (std::size_t i = 0; i < size(); i++) {
            double off = accesses[i] / time[i] / rate - 1;
            sum += std::min(1.0, off * off);
        }
        constexpr double kUsual = 0.1;  // counts as much as one
        return (sum + kUsual) / static_cast<double>(size());
    }
};

using ByFunction = std::map<std::string, Measured>;

// After an interruption the program is slow for a while: caches hold something
// else. Stretches have all lengths, so this shows: it is the delay for which
// those of a function have most nearly the same rate. A few stretches say
// little, and the rate depends on it, so what is usual has a say: 5
// microseconds, found on stretches of matrix multiplication and of a sparse
// matrix whose number of accesses is known.
double delay_of(const ByFunction& measured) {
    constexpr double kMost = 15000, kStep = 100, kUsual = 5000, kSpread = 2500;
    constexpr double kFarOff = 0.09, kVariance = 0.02;  // of rates, relative
    double best = 0, least = 0;
    for (double delay = 0; delay <= kMost; delay += kStep) {
        double off = std::pow((delay - kUsual) / kSpread, 2);
        for (const auto& [name, values] : measured) {
            std::vector<double> rates;
            for (std::size_t i = 0; i < values.size(); i++)
                rates.push_back(values.accesses[i] / std::max(kStep, values.time[i] - delay));
            double usual = middle(rates);
            for (double rate : rates)
                off += std::min(kFarOff, std::pow(rate / usual - 1, 2)) / kVariance;
        }
        if (delay > 0 && off >= least) continue;
        best = delay;
        least = off;
    }
    return best;
}

ByFunction counted(const Samples& samples, FunctionNames& names) {
    ByFunction out;
    for (const Replayed& one : samples.replays)
        if (one.accesses > 0 && one.nanoseconds > 0)
            out[names.of(one.place)].add(one.accesses, one.nanoseconds);
    return out;
}

ByFunction replayed(const Samples& samples, FunctionNames& names) {
    ByFunction out = counted(samples, names);
    double delay = delay_of(out);
    for (auto& [name, values] : out)
        for (double& time : values.time) time = std::max(time / 4, time - delay);
    return out;
}

// From the second touch to the third: up to the second the traces of the sample
// are in the way. A trap leaves some as well. (The difference to the second
// stretch was taken once, as free of both: it came out negative for an
// interpreter, whose code had to come back in the second.)
ByFunction foreseen(const Samples& samples, FunctionNames& names) {
    constexpr double kAfterTrap = 1500, kFar = 4;
    ByFunction out;
    for (const Rate& one : samples.rates) {
        double time = one.third.nanoseconds;
        // Slower than with those traces in the way: something else went on.
        if (time * one.second.accesses > kFar * one.second.nanoseconds * one.third.accesses) continue;
        if (time > 0)
            out[names.of(one.place)].add(one.third.accesses, std::max(time / 2, time - kAfterTrap));
    }
    return out;
}

// Replays where they mostly succeed, else what was foreseen as well: that is too slow in code that
// makes many accesses a nanosecond, as a trap is followed by a delay too. One or two measurements say
// little about a function: its rate is drawn to that of all.
std::string rates_by_runs(const Samples& samples, FunctionNames& names, Rates& rates) {
    ByFunction measured = replayed(samples, names), foreseen_too = foreseen(samples, names);
    std::map<std::string, std::size_t> astray;  // those that were counted may be of another kind
    for (const Replayed& one : samples.replays)
        if (one.accesses == 0) astray[names.of(one.place)]++;
    constexpr std::size_t kFew = 3;
    std::size_t replays = 0, foreseen_ones = 0;
    std::set<std::string> by_replay;
    for (const auto& [name, values] : measured) {
        replays += values.size();
        by_replay.insert(name);
    }
    for (auto& [name, values] : foreseen_too) {
        auto& known = measured[name];
        if (known.size() >= kFew || known.size() > astray[name]) continue;
        foreseen_ones += values.size();
        for (std::size_t i = 0; i < values.size(); i++) known.add(values.accesses[i], values.time[i]);
    }
    for (const std::string& name : by_replay) rates[name].with_kernel = true;
    double time = 0, accesses = 0, whole = 0, count = 0;
    for (const auto& [name, function] : rates) whole += function.nanoseconds;
    for (const auto& [number, thread] : samples.threads)
        count += static_cast<double>(thread.samples.size());
    double least = whole / std::max(1.0, count);  // what one sample stands for
    for (const auto& [name, values] : measured) {
        double share = std::max(least, rates[name].nanoseconds);
        time += share;
        accesses += share * values.rate();
    }
    if (accesses <= 0) return {};
    constexpr double kEnough = 4;
    double all = accesses / time, error = 0, spread = 0;
    for (const auto& [name, values] : measured) {
        FunctionRate& function = rates[name];
        auto size = static_cast<double>(values.size());
        double own = std::min(1.0, size / kEnough);
        function.rate = std::exp(own * std::log(values.rate()) + (1 - own) * std::log(all));
        double share = function.nanoseconds / std::max(1.0, whole);
        error += share * share * values.squared_error(function.rate) / size;
        spread += function.nanoseconds / time * std::pow(function.rate / all - 1, 2);
    }
    // Functions in which nothing was measured are taken to be like the others, as far as these are.
    constexpr double kLeastSpread = 0.1;
    double unmeasured = std::max(0.0, 1 - time / std::max(1.0, whole));
    error += unmeasured * unmeasured * std::max(kLeastSpread, spread);
    return fmt::format(
        "processor time at each function's rate, within {:.0f} %, from {} stretches that were run "
        "and then replayed to count their accesses and {} timed between accesses that were foreseen",
        196 * std::sqrt(error), replays, foreseen_ones);
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

// After a sample the program is slow for a while: the kernel's part, and caches
// that hold something else. From the first touches whose moment is known. (What
// the third comes late was counted once; a run with that gave 0.75 for
// particles where one without gave 0.99, on a machine that was busier as well.)
double delay_after_samples(const Samples& samples, FunctionNames& names, Rates& rates, double common) {
    constexpr std::size_t kEnough = 3;
    constexpr double kMoreThanSignal = 7000;  // a sample leaves more behind than a mere interruption
    if (samples.rates.size() < kEnough) return delay_of(counted(samples, names)) + kMoreThanSignal;
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

// Without symbols all of a module is one: a piece of code that a sample met is rarely one that was
// timed.
const std::string& FunctionNames::of(std::uint32_t place) {
    auto [found, is_new] = known_.try_emplace(place);
    if (!is_new) return found->second;
    const CodePlace& at = origins_.places[place];
    if (at.module == kNowhere) return found->second = "elsewhere";
    const std::string& path = origins_.modules[at.module].path;
    CodeSymbol symbol = symbols_.file(path).code_at(at.offset);
    std::string name = symbol.inlined.empty() ? symbol.frame.function : symbol.inlined.back().function;
    return found->second = std::filesystem::path(path).filename().string() + ":" + name;
}

AccessClock::AccessClock(const Samples& samples, const Origins& origins, const FunctionCounts* counts) {
    if (samples.notes.contains(REVISIT_NOTE_COUNTED)) {
        description_ = "accesses, counted by the processor";
        for (const auto& [number, thread] : samples.threads) {
            ThreadClock& clock = threads_[number];
            clock.last_rate = 1;
            for (const Sample& sample : thread.samples)
                clock.time.push_back(static_cast<double>(sample.time));
            clock.accesses = clock.time;
            if (!clock.time.empty()) accesses_ += clock.time.back();
        }
        return;
    }
    FunctionNames names(origins);
    Rates rates;
    for (const auto& [number, thread] : samples.threads)
        for (std::size_t i = 0; i < thread.samples.size(); i++)
            rates[names.of(thread.samples[i].place)].nanoseconds += advance(thread.samples, i);
    if (counts) description_ = rates_by_counts(*counts, rates);
    if (description_.empty()) description_ = rates_by_runs(samples, names, rates);
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
            const FunctionRate& function = rates[names.of(thread.samples[i].place)];
            clock.last_rate = function.rate > 0 ? function.rate : common;
            now += advance(thread.samples, i, function.with_kernel) * clock.last_rate;
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
