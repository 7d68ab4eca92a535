// What sampling may cost, in numbers.
//
// The budget is the run's: a share of the processor time of all its threads, and some milliseconds
// more, so that short runs have samples enough to say something; most of these in the first 0.2
// seconds. Against it counts what the samples of any thread cost, and what the run bears whatever their
// number: the heap library, and switches of threads, of which a third as much is borne as of samples.
// Where that takes all of the budget, samples come a third as often as else, not never.
#pragma once

#include <algorithm>
#include <cstdint>

#include "watch/samples/access_log.h"

namespace revisit::watch::outside {

struct Budget {
    // At each switch of threads the kernel takes the events of the one off and puts those of the other
    // on: 0.9 us in a loop that does nothing else, and 0.25 us more for each watchpoint. In postgres
    // and memcached, whose caches have other things to hold, it takes twice as long: 2.0 us without
    // watchpoints and samples. A server that waits for each request may switch 50 000 times per second.
    static constexpr std::uint64_t kSwitchCost = 2000, kWatchpointCost = 500;  // nanoseconds

    std::uint64_t share = 0;       // thousandths of the time; 0 = no limit
    std::uint64_t ran = 0;         // nanoseconds that all threads ran
    std::uint64_t spent = 0;       // … that the run is longer for samples
    std::uint64_t imposed = 0;     // … that the heap library and switches of threads take
    std::uint64_t switching = 0;   // … the latter alone
    std::uint64_t usual_cost = 0;  // … that a sample takes

    // How much longer than the usual period it takes until all that was spent is allowed, and so much
    // more.
    double wait(std::uint64_t more = 0) const {
        constexpr double kAtOnce = 3e6, kMore = 8e6, kHalf = 120e6;  // nanoseconds
        constexpr double kRarer = 3;
        if (share == 0) return 0;
        double time = static_cast<double>(ran), part = static_cast<double>(share) / 1000;
        double allowed = kAtOnce + part * time + kMore * time / (time + kHalf);
        double spends = part + kMore * kHalf / ((time + kHalf) * (time + kHalf));  // per nanosecond
        double samples = static_cast<double>(spent + more), others = static_cast<double>(imposed);
        double debt = samples + others - allowed;
        // One sample that was dear, such as the first of a large program, is made good bit by bit. What
        // samples took of others' part is made good at once: clang spent 50 ms where 30 were left.
        double at_once = std::max(kRarer * static_cast<double>(usual_cost),
                                  std::min(others, samples - allowed / kRarer));
        return debt > 0 ? std::min(debt, at_once) / spends : 0;
    }

    // A period not in step with what the program does; `chance` is evenly between 0 and 1. With periods
    // that differed by an eighth, samples of a program whose loops take turns every 4 ms met one of
    // them in 0.30 of their time, which takes 0.23.
    static double out_of_step(double period, double chance) { return period * (0.5 + chance); }

    // For as long as a thread stands that is switched often, others do nothing that wait for it: a
    // server's clients, backends of postgres for its locks. The run is longer by more than its share.
    static std::uint64_t felt(std::uint64_t stood, std::uint64_t switches, std::uint64_t ran) {
        constexpr std::uint64_t kOften = 200000;  // nanoseconds from switch to switch
        return switches * kOften > ran ? 2 * stood : stood;
    }

    // So many switches of a thread with so many watchpoints: what they cost.
    std::uint64_t charge_switches(std::uint64_t count, unsigned watchpoints) {
        const std::uint64_t cost = count * (kSwitchCost + watchpoints * kWatchpointCost);
        imposed += cost;
        switching += cost;
        return cost;
    }
    bool switches_take_too_much() const {
        constexpr std::uint64_t kAtOnce = 2000000;  // nanoseconds
        return share != 0 && switching > kAtOnce + ran * share / 3000;
    }

    // What the heap library took of a sample's period, by its part of the accesses in the window.
    // Samples that find a thread in it are few, but a program that allocates all the time does so in
    // most windows. Against runs with the library alone: 2.5 % of clang's time at 1.5 % of its
    // accesses, 3.8 % of bash's at 2.2 %.
    template <class IsInLibrary>
    void charge_heap_library(const AccessLog& window, std::uint64_t period,
                             IsInLibrary&& is_in_library) {
        constexpr double kDearer = 1.7;  // than an access of the program
        const auto& accesses = window.accesses();
        if (accesses.empty()) return;
        const auto inside = static_cast<double>(std::ranges::count_if(
            accesses, [&](const LoggedAccess& one) { return is_in_library(one.pc); }));
        const double taken = std::min(1.0, kDearer * inside / static_cast<double>(accesses.size()));
        imposed += static_cast<std::uint64_t>(taken * static_cast<double>(period));
    }
};

}  // namespace revisit::watch::outside
