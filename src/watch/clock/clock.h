// The clock of a sampled program: accesses, where only processor time was measured.
//
// Problem. A time distance counts accesses; without a counter there is only time. One rate for all is
// wrong by as much as code differs: a loop in cache makes ten accesses in the time of one that misses.
// Idea. A rate per loop of a function, from one of three sources. Replays: the program runs undisturbed
// from one interruption to the next and its accesses are counted afterwards, from how far registers
// moved (machine/progress.h) or by interpreting (outside/replay.h). Stretches, where replays go astray:
// the look-ahead knows how many accesses away a touch is, a watchpoint reports when it happens, once
// the traces of the sample are gone. Counts: the accesses that each function makes in an instrumented
// run of the same command, divided by the time that samples found it running. A sample stands for as
// many accesses as its loop makes in the time since the one before; the clock itself goes at the mean
// rate of the samples around, and from a sample on at that of its loop for as long as the program stays
// there: two loops that take turns every millisecond have rates that differ by seven (a gather, and
// filling its indices), and reuses within one of them came out three times too short. A reuse in such a
// loop's next turn had others' accesses in between, one in the same turn had none, and what each
// loop leaves open differs too: with the mean of both, twice as many of the gather's reuses as there
// are were over 4 MiB (S 0.87, now 0.91). Error. Stretches are too fast where memory is slow, because
// looking ahead has fetched the data; there replays work best, as code that waits for memory mostly
// reads. Counts are exact for the whole run.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "symbols/symbolize.h"
#include "watch/samples/samples.h"

namespace revisit::watch {

// Accesses by function ("module:function"), counted in another run.
using FunctionCounts = std::map<std::string, double>;

// Names functions so that two runs of a program agree on them.
class FunctionNames {
 public:
    explicit FunctionNames(const Origins& origins) : origins_(origins) {}
    const std::string& of(std::uint32_t place);
    // … and the innermost loop around the place: "app:main@15". Loops of one function go at rates of
    // their own: a gather makes eight times as many accesses per nanosecond as a loop that divides.
    const std::string& loop(std::uint32_t place);
    static std::string function_of(const std::string& loop) { return loop.substr(0, loop.rfind('@')); }

 private:
    const Origins& origins_;
    std::unordered_map<std::uint32_t, std::string> known_, loops_;
};

class AccessClock {
 public:
    // Without counts, from the rates in `samples`.
    AccessClock(const Samples& samples, const Origins& origins, const FunctionCounts* counts);

    struct ThreadClock {
        std::vector<double> time;      // of the samples, in nanoseconds
        std::vector<double> accesses;  // made until then
        // … since the sample before, by the code that it met: what a sample stands for. None = as
        // many as the clock says.
        std::vector<double> made;
        // The rate of the loop that a sample met, and for how many nanoseconds it goes on there, in the
        // mean. None = not known.
        std::vector<double> rate, stays;
        // … of the loop that its open use is in, where that is another one: the look-ahead may go
        // through the rest of a loop and come to the next.
        std::vector<double> rate_of_use, stays_at_use;
        // A loop that takes turns with others, and what it does in its turn: of samples whose open use
        // and its reuse are in one. No rate = not known.
        struct Turns {
            double rate = 0;                    // accesses per nanosecond, in the loop
            double stays = 0, leaves = 0;       // nanoseconds: a turn, and that of all others
            double between = 0;                 // accesses that the others make in theirs
            double open = 0, open_between = 0;  // shares of the uses that windows leave open
        };
        std::vector<Turns> turns;
        std::vector<double> lost;  // nanoseconds after it, in which nothing is done, in sum
        double last_rate = 0;
        double delay = 0;              // after each sample, in nanoseconds, until the program goes on
        double delay_error = 0;        // … of one of them
        double error = 0, spread = 0;  // of the clock, relative, and of a short while
        double error_by_samples(const std::vector<double>& times) const;  // of all of `made`
        // `accesses` from `made`: `times` are what samples stand for, `passed` since the one before.
        void run_evenly(const std::vector<double>& times, const std::vector<double>& passed);
        double at(double nanoseconds) const;
        // Accesses from a sample to a moment after it.
        double since(std::size_t sample, double nanoseconds) const;
        // … from its open use, which came so many accesses later.
        double since_use(std::size_t sample, double nanoseconds, double accesses_to_use) const;
        // … of which so many are in its loop, and the others come in between so many times. None = the
        // loop does not take turns that are known.
        struct ByTurns {
            double in_loop = 0, between = 0, times = 0;
            double open = 0, open_between = 0;
            double all() const { return in_loop + times * between; }
        };
        std::optional<ByTurns> by_turns(std::size_t sample, double nanoseconds,
                                        double accesses_to_use) const;
        // How far off the accesses are, relative, over so long a time.
        double uncertainty(double nanoseconds) const;
    };
    // One that is known.
    AccessClock(std::unordered_map<std::uint16_t, ThreadClock> threads, std::string description)
        : threads_(std::move(threads)), description_(std::move(description)) {}
    const ThreadClock& thread(std::uint16_t number) const { return threads_.at(number); }

    double accesses() const { return accesses_; }
    double error() const { return error_; }  // of them: 95 % half-width, relative
    std::string description() const { return description_; }

 private:
    std::unordered_map<std::uint16_t, ThreadClock> threads_;
    double accesses_ = 0, error_ = 0;
    std::string description_;
};

}  // namespace revisit::watch
