// What sampling may cost, and how long the next sample waits for it.
//
// The budget is the run's: a share of the processor time of all its threads, and some milliseconds
// more, so that short runs have samples enough to say something; half of these in the first 0.6
// seconds. Against it counts what the samples of any thread cost (spent_), and what the run bears
// whatever their number (imposed_): the heap library, by the samples that find a thread in it, and
// switches of threads. Where that takes all of the budget, samples come half as often as else, not
// never.
#include <algorithm>

#include "watch/outside/sampler.h"
#include "watch/outside/scheduled.h"

namespace revisit::watch::outside {

// How much longer than the usual period it takes until all that was spent is allowed.
double Sampler::wait_for_budget(std::uint64_t spent) const {
    constexpr double kAtOnce = 3e6, kMore = 24e6, kHalf = 600e6;  // nanoseconds
    if (settings_.share == 0) return 0;
    double ran = static_cast<double>(ran_), share = static_cast<double>(settings_.share) / 1000;
    double allowed = kAtOnce + share * ran + kMore * ran / (ran + kHalf);
    double spends = share + kMore * kHalf / ((ran + kHalf) * (ran + kHalf));  // per nanosecond
    double debt = static_cast<double>(spent + imposed_) - allowed;
    return debt > 0 ? std::min(debt, 2 * static_cast<double>(usual_cost_)) / spends : 0;
}

// Not in step with what the program does.
std::uint64_t Sampler::to_next_sample(Task& t, std::uint64_t cost) {
    constexpr std::uint64_t kDear = 200000;  // the first may have been a replay's
    const std::uint64_t spent = spent_ + cost, since_last = spent - spent_at_last_;
    spent_at_last_ = spent;
    // What is made good at once: all that came since the last sample where the run feels all of it,
    // else the stop alone, so that a single program on an idle machine has the samples that it may
    // have.
    const std::uint64_t felt = busy_ || imposed_ > spent / 4 ? since_last : cost;
    if (usual_cost_ == 0) usual_cost_ = std::min(felt, kDear);
    usual_cost_ = (usual_cost_ * 7 + std::min(felt, 4 * usual_cost_)) / 8;
    double period = static_cast<double>(settings_.period) + wait_for_budget(spent);
    return static_cast<std::uint64_t>(period * (0.875 + t.random.unit() / 4));
}

// Of a thread that begins when others have used up what is allowed: at any time of that wait, as many
// threads may run the same code from their beginning and end soon.
std::uint64_t Sampler::to_first_sample(Task& t) {
    return settings_.period + static_cast<std::uint64_t>(2 * t.random.unit() * wait_for_budget(spent_));
}

// At each switch of threads the kernel takes the events of the one off and puts those of the other on:
// 1.0 to 1.7 us. A server that waits for each request may switch 50 000 times per second.
void Sampler::charge_switches(Task& t) {
    constexpr std::uint64_t kSwitchCost = 1300;  // nanoseconds
    if (!t.events.is_open()) return;
    std::uint64_t now = scheduled(t.process->pid, t.id).switches;
    if (now > t.switches) imposed_ += (now - t.switches) * kSwitchCost;
    t.switches = now;
}

void Sampler::ran_unseen(Process& process, std::uint64_t nanoseconds, bool has_heap_library) {
    constexpr std::uint64_t kForkCost = 80000;  // nanoseconds: pages of the library's that are copied
    ran_ += nanoseconds;
    process.time += nanoseconds;
    process.program->time += nanoseconds;
    if (has_heap_library) imposed_ += kForkCost;
}

}  // namespace revisit::watch::outside
