#include "watch/clock/clock.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <numeric>
#include <optional>
#include <set>

#include "watch/clock/slow_start.h"
#include "watch/clock/stretches.h"
#include "watch/clock/time_shares.h"

namespace revisit::watch {
namespace {

struct FunctionRate {
    double nanoseconds = 0;  // that samples found it running
    double rate = 0;         // accesses a nanosecond, by counts; 0 = not known
    double stays = 0;        // nanoseconds that the program goes on there
    std::size_t left = 0;    // stretches that ended elsewhere
    bool with_kernel = false;
    Measured measured;
    double uses = 0, open = 0;  // that samples saw there; of these, not used again within the window

    double share_of_own() const { return measured.share_of_own(); }
};

// Accesses per nanosecond: of any code, and of code that finds its data in caches (python 3.6, perl and
// sort 4.5, sqlite 3.8, cc1 2.1; Neoverse V1).
constexpr double kUsualRate = 2.5, kRateOfHits = 3.4;

struct Rates {
    std::map<std::string, FunctionRate> of;     // by loop
    std::map<std::string, Measured> functions;  // all that was measured in them
    Measured all;                               // … anywhere
    double common = kUsualRate;                 // where nothing was measured
    double known = 0;                           // share of the time in functions that were measured
    // Share of uses that are not used again within the window, in what was measured: of all, by
    // function.
    double open = 0;
    std::map<std::string, double> open_in;

    // A loop of which little is known is like its function, and a function of which little is known
    // like what was measured around that moment, wherever it was: stretches begin at moments of time,
    // so that each has its share there.
    // `open_there`: the share of uses that are not used again soon at that moment; -1 = not known.
    double at(const std::string& name, double when, double open_there = -1) const {
        auto found = of.find(name);
        if (found != of.end() && found->second.rate > 0) return found->second.rate;
        if (all.size() == 0) return common;
        // What can be measured may be of another kind than the rest: nine tenths of sort's time are in
        // comparisons, eight times as fast as the loop that reads its input and is measured at once.
        double elsewhere = all.rate_at(when, false);
        if (found != of.end()) elsewhere = with_misses_of(found->second, elsewhere, open);
        double rate = std::exp(known * std::log(elsewhere) + (1 - known) * std::log(common));
        auto nearer = [&](const Measured& measured, const double* others_open) {
            if (measured.size() == 0) return;
            double own = measured.share_of_own(), there = measured.rate_at(when);
            // A function may fill a table in one loop and look things up in the next.
            if (others_open != nullptr && found != of.end())
                there = with_misses_of(found->second, there, *others_open);
            rate = std::exp(own * std::log(there) + (1 - own) * std::log(rate));
        };
        if (auto function = functions.find(FunctionNames::function_of(name));
            function != functions.end()) {
            auto open_there = open_in.find(function->first);
            nearer(function->second, open_there != open_in.end() ? &open_there->second : &open);
        }
        if (found == of.end()) return rate;
        nearer(found->second.measured, nullptr);
        return rate * found->second.measured.by_open(open_there);
    }

    // A loop counts by the accesses that were measured in it, as in the rates. By the uses that samples
    // saw one that is short but has long windows would count as much as what takes the time.
    void note_open() {
        struct Uses {
            double made = 0, open = 0;
        } everywhere;
        std::map<std::string, Uses> by_function;
        for (const auto& [name, loop] : of) {
            if (loop.uses <= 0) continue;
            double made = 0;
            for (const Measured::Stretch& one : loop.measured.stretches) made += one.accesses;
            for (Uses* sum : {&everywhere, &by_function[FunctionNames::function_of(name)]}) {
                sum->made += made;
                sum->open += made * loop.open / loop.uses;
            }
        }
        if (everywhere.made > 0) open = everywhere.open / everywhere.made;
        for (const auto& [name, sum] : by_function)
            if (sum.made > 0) open_in[name] = sum.open / sum.made;
    }

    // The rate of code that waits for memory as often as this loop seems to. What takes an access
    // longer than usual is waiting, and uses that do not come back soon are those that may miss:
    // allocating a hash table's nodes makes nine times as many accesses per nanosecond as looking them
    // up, which takes most of the time. Where few uses are open, they explain little: quicksort has few
    // of them, and waits for its branches. But what takes longer than branches do is waiting for
    // memory.
    static double with_misses_of(const FunctionRate& loop, double rate, double open) {
        constexpr double kUsual = 14, kLongest = 150, kBranches = 1.5;  // nanoseconds
        if (loop.uses <= 0 || open <= 0) return rate;
        const double over = 1 / rate - 1 / kRateOfHits;
        const double waits = std::max(std::clamp(over, 0.0, kUsual * open),
                                      std::clamp(over - kBranches, 0.0, kLongest * open));
        double share = std::min(1.0, loop.open / loop.uses / open);
        return 1 / (1 / rate - waits * (1 - share));
    }
};

using ByFunction = std::map<std::string, Measured>;

// Stretches that began at a stop, or those that began without.
ByFunction counted(const Samples& samples, FunctionNames& names, bool began_running) {
    ByFunction out;
    for (const Replayed& one : samples.replays) {
        if (one.follows_sample || one.accesses <= 0 || one.nanoseconds <= 0) continue;
        if (one.began_running != began_running) continue;
        bool is_known = one.end != kNowhere;
        out[names.loop(one.place)].stretches.push_back(
            {static_cast<double>(one.when), one.accesses, one.nanoseconds, false,
             is_known && names.loop(one.end) != names.loop(one.place),
             is_known && names.of(one.end) != names.of(one.place),
             is_known ? &names.loop(one.end) : nullptr, 1, one.before,
             is_known && names.loop(one.end) == names.loop(one.place) ? one.open : -1});
    }
    return out;
}

ByFunction replayed(const Samples& samples, FunctionNames& names) {
    ByFunction out;
    for (const bool began_running : {false, true}) {
        const ByFunction part = counted(samples, names, began_running);
        const SlowStart slow =
            slow_start_of(part, began_running ? samples.without_stop : samples.slow_start);
        for (const auto& [name, values] : part)
            for (Measured::Stretch one : values.stretches) {
                one.time = std::max(one.time / 4, one.time - slow.nanoseconds);
                one.time_error = slow.error;
                out[name].stretches.push_back(one);
            }
    }
    return out;
}

// From the second touch to the third: up to the second the traces of the sample are in the way. A trap
// leaves some as well, three quarters of what a stop does, which the first touches tell: medians of 9
// against 12 microseconds for perl, 10 and 12 for sort, 17 and 20 for cc1, 18 and 18 for xz (aarch64
// virtual machine, against rates known from exact profiles).
ByFunction foreseen(const Samples& samples, FunctionNames& names) {
    constexpr double kOfDelay = 0.75, kFar = 4, kLeft = 0.4;
    ByFunction out;
    std::vector<double> firsts;
    for (const Rate& one : samples.rates) firsts.push_back(one.first.nanoseconds);
    double after_trap = firsts.empty() ? 0 : kOfDelay * median(firsts);
    for (const Rate& one : samples.rates) {
        double time = one.third.nanoseconds;
        // Slower than with those traces in the way: something else went on.
        if (time * one.second.accesses > kFar * one.second.nanoseconds * one.third.accesses) continue;
        if (time > 0)
            out[names.loop(one.place)].stretches.push_back(
                {static_cast<double>(one.when), one.third.accesses,
                 std::max(kLeft * time, time - after_trap), true});
    }
    return out;
}

// What stretches that begin elsewhere made in the loop that they end in. Where that is a guess, of
// loops in which no stretch stays.
ByFunction entered_by_others(const ByFunction& measured, const std::map<std::string, double>& usual) {
    ByFunction out;
    for (const auto& [name, values] : measured)
        for (const Measured::Stretch& one : values.stretches) {
            if (!one.leaves_loop || one.end == nullptr || usual.at(name) <= 0) continue;
            if (const auto part = one.part(true, usual.at(name))) {
                out[*one.end].stretches.push_back(*part);
                continue;
            }
            if (auto end = usual.find(*one.end); end != usual.end() && end->second > 0) continue;
            out[*one.end].stretches.push_back(one.without(usual.at(name), one.rate()));
        }
    return out;
}

// How far off a clock may be, relative: all of it, and one stretch; and what it is made from.
struct ClockError {
    double error = 0, spread = 0;
    std::size_t replays = 0, look_aheads = 0;
};

// Replays where they mostly succeed, else what was foreseen as well: that is too slow in code that
// makes many accesses a nanosecond, as a trap is followed by a delay too.
std::optional<ClockError> rates_by_runs(const Samples& samples, FunctionNames& names, Rates& rates) {
    ClockError off;
    ByFunction measured = replayed(samples, names), foreseen_too = foreseen(samples, names);
    std::map<std::string, std::size_t> astray;  // those that were counted may be of another kind
    for (const Replayed& one : samples.replays)
        if (one.accesses == 0 && !one.follows_sample) astray[names.loop(one.place)]++;
    constexpr std::size_t kFew = 3;
    std::set<std::string> by_replay;
    for (const auto& [name, values] : measured) {
        off.replays += values.size();
        by_replay.insert(name);
    }
    for (auto& [name, values] : foreseen_too) {
        auto& known = measured[name];
        if (known.size() >= kFew || known.size() > astray[name]) continue;
        off.look_aheads += values.size();
        known.stretches.insert(known.stretches.end(), values.stretches.begin(), values.stretches.end());
    }
    for (const std::string& name : by_replay) rates.of[name].with_kernel = true;
    std::vector<Measured::Stretch>& all = rates.all.stretches;
    std::map<std::string, double> usual;
    for (const auto& [name, values] : measured) usual[name] = values.usual_rate();
    const ByFunction entered = entered_by_others(measured, usual);
    for (auto& [name, values] : measured) {
        values.sort();
        all.insert(all.end(), values.stretches.begin(), values.stretches.end());
        auto& function = rates.functions[FunctionNames::function_of(name)].stretches;
        function.insert(function.end(), values.stretches.begin(), values.stretches.end());
        rates.of[name].stays = values.stays();
        rates.of[name].left = static_cast<std::size_t>(
            std::ranges::count(values.stretches, true, &Measured::Stretch::leaves_loop));
        values.take_parts(usual);
        values.leave_out(&Measured::Stretch::leaves_loop);
        values.correct_those_that_leave(usual);
        rates.of[name].measured = std::move(values);
    }
    for (const auto& [name, values] : entered) {
        Measured& own = rates.of[name].measured;
        own.stretches.insert(own.stretches.end(), values.stretches.begin(), values.stretches.end());
        own.sort();
    }
    for (auto& [name, values] : rates.functions) {
        values.leave_out(&Measured::Stretch::leaves_function);
        values.sort();
    }
    if (all.empty()) return std::nullopt;
    rates.all.sort();
    double whole = 0, others = 0, error = 0;  // others: functions of which little is known
    double seen = 0;
    for (const auto& [name, function] : rates.of) {
        whole += function.nanoseconds;
        auto measured_there = rates.functions.find(FunctionNames::function_of(name));
        if (measured_there != rates.functions.end())
            seen += measured_there->second.share_of_own() * function.nanoseconds;
    }
    rates.known = seen / std::max(1.0, whole);
    rates.note_open();
    for (const auto& [name, function] : rates.of) {
        double share = function.nanoseconds / std::max(1.0, whole), own = function.share_of_own();
        others += share * (1 - own);
        if (own == 0) continue;
        error += share * share * own * function.measured.error_by_chance();
        off.spread += share * own * function.measured.spread();
    }
    constexpr double kOfUnknown = 0.6;  // of a rate that is not measured at all
    // Where all processors are busy, others run while the program stands still and take its caches: a
    // hash table's stretches then gave 0.66 to 0.98 of its rate, a tree search's 0.36 to 0.76 (x86_64
    // virtual machine, two processors, six to eight threads).
    constexpr double kOfBusy = 0.25;
    const double busy = static_cast<double>(samples.taken_busy) /
                        static_cast<double>(std::max<std::uint64_t>(1, samples.taken));
    error += others * others * rates.all.error_by_chance() + std::pow(rates.all.error_of_all(), 2) +
             std::pow(kOfUnknown * (1 - rates.known), 2) + std::pow(kOfBusy * busy, 2);
    off.error = std::sqrt(error);
    off.spread = std::sqrt(off.spread + others * rates.all.spread());
    return off;
}

std::string rates_by_counts(const FunctionCounts& counts, Rates& rates) {
    double all = 0, seen = 0, time = 0;
    for (const auto& [name, count] : counts) {
        all += count;
        auto found = rates.of.find(name);
        if (found == rates.of.end() || found->second.nanoseconds <= 0) continue;
        seen += count;
        time += found->second.nanoseconds;
        found->second.rate = count / found->second.nanoseconds;
    }
    if (seen <= 0) return {};
    for (auto& [name, function] : rates.of) function.rate *= all / seen;
    rates.common = all / time;
    return fmt::format(
        "CPU time at each function's rate, from the accesses it made in an "
        "instrumented run; {:.1f} % of them in sampled functions",
        100 * seen / all);
}

// After a sample the program is slow for a while: the kernel's part, and caches that hold something
// else. That depends on what it has in them: 7 microseconds are lost for a matrix multiplication or a
// list, 20 for a hash join, 75 for a sparse matrix in the second-level cache, 40 to 140 from sample to
// sample (Xeon, virtual machine). Best known from stretches that follow a sample; else from reuses that
// were both counted and timed; else from the first touches that were foreseen; else what is usual.
struct Delay {
    double typical = 0, error = 0;
    std::map<std::string, double> of;  // by loop, where that is known
};

double spread_of(const std::vector<double>& values) {
    constexpr double kOfQuarters = 1.35;
    std::vector<double> sorted = values;
    std::ranges::sort(sorted);
    return (sorted[sorted.size() * 3 / 4] - sorted[sorted.size() / 4]) / kOfQuarters;
}

Delay delay_after_samples(const Samples& samples, FunctionNames& names, const Rates& rates) {
    constexpr std::size_t kEnough = 3;
    // A replay's delay has the second stop in it, which a trap has not: 13 us against 20 (median of the
    // reuses that were counted and timed in six programs, aarch64 virtual machine).
    constexpr double kOfReplays = 0.65;
    constexpr double kUsualError = 5000, kLeastError = 1000;
    std::vector<double> delays;
    auto takes = [&](std::uint32_t place, std::uint64_t when, double accesses) {
        return accesses / rates.at(names.loop(place), static_cast<double>(when));
    };
    auto lost = [&](std::uint32_t place, std::uint64_t when, double accesses, double nanoseconds) {
        return nanoseconds - takes(place, when, accesses);
    };
    std::map<std::string, std::vector<double>> by_loop;
    for (const Replayed& one : samples.replays) {
        if (!one.follows_sample || one.accesses <= 0) continue;
        const bool is_known = one.before > 0 && one.end != kNowhere;
        const double there = is_known ? one.accesses - one.before : 0;
        delays.push_back(lost(one.place, one.when, one.accesses - there, one.nanoseconds) -
                         (is_known ? takes(one.end, one.when, there) : 0));
        by_loop[names.loop(one.place)].push_back(delays.back());
    }
    const double usual =
        kOfReplays * slow_start_of(counted(samples, names, false), samples.slow_start).nanoseconds;
    if (!delays.empty()) {
        // One or two say less than half of it. Rates that differ from stretch to stretch are in the
        // spread of the delays as well.
        const bool few = delays.size() < kEnough;
        if (few) delays.push_back(usual);
        const double typical = few ? std::accumulate(delays.begin(), delays.end(), 0.0) /
                                         static_cast<double>(delays.size())
                                   : median(delays);
        Delay out{std::max(0.0, typical),
                  std::max(few ? kUsualError : kLeastError, spread_of(delays) / 2),
                  {}};
        for (const auto& [name, values] : by_loop)
            if (values.size() >= kEnough) out.of[name] = std::max(0.0, median(values));
        return out;
    }
    delays.clear();
    for (const TimedReuse& one : samples.timed)
        delays.push_back(lost(one.place, one.when, one.accesses, one.nanoseconds));
    if (delays.size() < kEnough) {
        delays.clear();
        for (const Rate& one : samples.rates)
            delays.push_back(lost(one.place, one.when, one.first.accesses, one.first.nanoseconds));
    }
    if (delays.size() < kEnough) return {usual, kUsualError, {}};
    return {std::max(0.0, median(delays)), std::max(kLeastError, spread_of(delays)), {}};
}

// How long a turn takes, stretches tell; what part of the time is the loop's, samples and ticks do.
std::vector<AccessClock::ThreadClock::Turns> turns_of(const ThreadSamples& thread,
                                                      const Origins& origins, FunctionNames& names,
                                                      const Rates& rates,
                                                      const std::vector<double>& times,
                                                      const AccessClock::ThreadClock& clock) {
    constexpr std::size_t kEnough = 2;                 // stretches that leave it
    constexpr double kLeastShare = 0.02, kMost = 0.9;  // of the time
    struct Part {
        double time = 0, made = 0, known = 0, open = 0;
    };
    std::map<std::string, Part> loops;
    Part all;
    for (std::size_t i = 0; i < thread.samples.size(); i++) {
        const Sample& sample = thread.samples[i];
        for (Part* part : {&all, &loops[names.loop(sample.place)]}) {
            part->time += times[i];
            part->made += clock.made[i];
            if (sample.uses == 0) continue;
            part->known += clock.made[i];
            part->open += clock.made[i] * sample.open / sample.uses;
        }
    }
    std::vector<AccessClock::ThreadClock::Turns> out(thread.samples.size());
    for (std::size_t i = 0; i < thread.samples.size(); i++) {
        const Sample& sample = thread.samples[i];
        if (sample.far_label == kNowhere) continue;
        const std::string& name = names.loop(origins.labels[sample.far_label].place);
        if (sample.far_reuse_label != kNowhere &&
            names.loop(origins.labels[sample.far_reuse_label].place) != name)
            continue;
        const auto loop = rates.of.find(name);
        if (loop == rates.of.end() || loop->second.left < kEnough || loop->second.stays <= 0) continue;
        const Part& part = loops[name];
        const double share = part.time / std::max(1.0, all.time), stays = loop->second.stays;
        if (share < kLeastShare || share > kMost) continue;
        const double leaves = stays * (1 - share) / share;
        out[i] = {rates.at(name, static_cast<double>(sample.time)),
                  stays,
                  leaves,
                  leaves * (all.made - part.made) / (all.time - part.time),
                  part.open / std::max(1.0, part.known),
                  (all.open - part.open) / std::max(1.0, all.known - part.known)};
    }
    return out;
}

// Loops of which nothing was measured: each may be as fast as code that finds its data in caches. A
// hundredth of a run's time, in which a table is filled, may have a quarter of its accesses.
struct Unmeasured {
    double time = 0, all_time = 0, all_made = 0;
    std::map<const FunctionRate*, double> might_make;

    void add(const FunctionRate& loop, double nanoseconds, double accesses) {
        all_time += nanoseconds;
        all_made += accesses;
        if (loop.share_of_own() > 0) return;
        time += nanoseconds;
        might_make[&loop] += std::max(accesses, std::sqrt(accesses * kRateOfHits * nanoseconds));
    }
    double error() const {
        constexpr double kOfLoop = 0.7;
        double squares = 0;
        for (const auto& [loop, accesses] : might_make) squares += accesses * accesses;
        return kOfLoop *
               std::max(time / std::max(1.0, all_time), std::sqrt(squares) / std::max(1.0, all_made));
    }
};

}  // namespace

// Without symbols a piece of 512 bytes stands for a function.
const std::string& FunctionNames::of(std::uint32_t place) {
    auto [found, is_new] = known_.try_emplace(place);
    if (!is_new) return found->second;
    const CodePlace& at = origins_.places[place];
    if (at.module == kNowhere) return found->second = "elsewhere";
    const std::string& path = origins_.modules[at.module].path;
    CodeSymbol symbol = origins_.symbols->file(path).code_at(at.offset);
    std::string name = symbol.inlined.empty() ? symbol.frame.function : symbol.inlined.back().function;
    if (name.empty()) name = fmt::format("{:x}", at.offset >> 9);
    return found->second = std::filesystem::path(path).filename().string() + ":" + name;
}

const std::string& FunctionNames::loop(std::uint32_t place) {
    auto [found, is_new] = loops_.try_emplace(place);
    if (!is_new) return found->second;
    const CodePlace& at = origins_.places[place];
    std::uint32_t line = 0;
    if (at.module != kNowhere)
        line = origins_.symbols->file(origins_.modules[at.module].path).code_at(at.offset).loop.line;
    return found->second = of(place) + "@" + std::to_string(line);
}

AccessClock::AccessClock(const Samples& samples, const Origins& origins, const FunctionCounts* counts) {
    FunctionNames names(origins);
    auto name_of = [&](std::uint32_t place) -> const std::string& {
        return counts ? names.of(place) : names.loop(place);
    };
    Rates rates;
    for (const auto& [number, thread] : samples.threads)
        for (std::size_t i = 0; i < thread.samples.size(); i++) {
            FunctionRate& loop = rates.of[name_of(thread.samples[i].place)];
            loop.nanoseconds += time_of(thread.samples, i);
            loop.uses += thread.samples[i].uses;
            loop.open += thread.samples[i].open;
        }
    if (counts) description_ = rates_by_counts(*counts, rates);
    const bool by_counts = !description_.empty();
    const auto by_runs = by_counts ? std::nullopt : rates_by_runs(samples, names, rates);
    // Nothing measured: of a factor. A hash table that misses makes 0.08 accesses per nanosecond,
    // perl 5.
    const ClockError off = by_runs ? *by_runs : by_counts ? ClockError{} : ClockError{1.2, 0.5};
    double chance = 0;  // of the accesses, squared
    Unmeasured unmeasured;
    Delay delay = delay_after_samples(samples, names, rates);
    const std::map<std::string, double> time_over = time_over_samples(samples, names);
    for (const auto& [number, thread] : samples.threads) {
        ThreadClock& clock = threads_[number];
        clock.delay = delay.typical;
        clock.delay_error = delay.error;
        clock.spread = off.spread;
        std::vector<double> times, passed;  // that samples stand for; since the one before
        for (std::size_t i = 0; i < thread.samples.size(); i++) {
            const std::string& name = name_of(thread.samples[i].place);
            const FunctionRate& loop = rates.of.at(name);
            passed.push_back(advance(thread.samples, i, loop.with_kernel));
            times.push_back(time_of(thread.samples, i, loop.with_kernel));
            clock.time.push_back(static_cast<double>(thread.samples[i].time));
            clock.rate.push_back(rates.at(name, clock.time.back(), thread.samples[i].open_share()));
            clock.stays.push_back(loop.stays);
            const std::uint32_t use = thread.samples[i].far_label;
            const std::string& there = use == kNowhere ? name : name_of(origins.labels[use].place);
            const auto at_use = rates.of.find(there);
            const bool is_other = there != name && at_use != rates.of.end() && at_use->second.stays > 0;
            clock.stays_at_use.push_back(is_other ? at_use->second.stays : 0);
            clock.rate_of_use.push_back(is_other ? rates.at(there, clock.time.back()) : 0);
            auto own = delay.of.find(name);
            clock.lost.push_back(own != delay.of.end() ? own->second : delay.typical);
            if (auto over = time_over.find(name); by_runs && over != time_over.end())
                times.back() *= over->second;
            clock.made.push_back(times.back() * clock.rate.back());
            if (by_runs) unmeasured.add(loop, times.back(), clock.made.back());
        }
        clock.turns = turns_of(thread, origins, names, rates, times, clock);
        clock.error = clock.error_by_samples(times);
        clock.run_evenly(times, passed);
        if (clock.accesses.empty()) continue;
        accesses_ += clock.accesses.back();
        chance += std::pow(clock.error * clock.accesses.back(), 2);
    }
    const double of_rates = std::hypot(off.error, unmeasured.error());
    for (auto& [number, clock] : threads_) clock.error = std::hypot(of_rates, clock.error);
    error_ = 1.96 * std::hypot(of_rates, std::sqrt(chance) / std::max(1.0, accesses_));
    if (by_runs)
        description_ = fmt::format(
            "CPU time at each loop's rate, within {:.0f} %, from {} timed and replayed stretches and "
            "{} timed look-aheads",
            100 * error_, off.replays, off.look_aheads);
    else if (!by_counts)
        description_ =
            fmt::format("CPU time, {} accesses per nanosecond: no rate could be measured", kUsualRate);
}

}  // namespace revisit::watch
