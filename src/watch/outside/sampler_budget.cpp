// How long the next sample waits for the budget (budget.h), and which threads' events rest.
#include <algorithm>

#include "watch/outside/sampler.h"
#include "watch/outside/scheduled.h"

namespace revisit::watch::outside {

std::uint64_t Sampler::to_next_sample(Task& t, std::uint64_t cost) {
    constexpr std::uint64_t kDear = 200000;  // the first may have been a replay's
    const std::uint64_t spent = budget_.spent + cost, since_last = spent - spent_at_last_;
    spent_at_last_ = spent;
    // What is made good at once: all that came since the last sample where the run feels all of it,
    // else the stop alone, so that a single program on an idle machine has the samples that it may
    // have.
    const std::uint64_t felt = busy_ || budget_.imposed > spent / 4 ? since_last : cost;
    std::uint64_t& usual = budget_.usual_cost;
    if (usual == 0) usual = std::min(felt, kDear);
    usual = (usual * 7 + std::min(felt, 4 * usual)) / 8;
    const double period = static_cast<double>(settings_.period) + t.rest.duty * budget_.wait(cost);
    t.next_moment = period * t.moments.taken();
    return static_cast<std::uint64_t>(Budget::out_of_step(t.next_moment, t.random.unit()));
}

// At any time of the period, with equal chance: many threads may run the same code from their beginning
// and end before a period is over. 400 threads of half a millisecond had no sample. So a first sample
// stands for as long after it as before, in the mean: for a whole period, or for all of its thread
// where that ends sooner.
std::uint64_t Sampler::to_first_sample(Task& t) {
    constexpr double kLeast = 1000;  // nanoseconds
    const double period = static_cast<double>(settings_.period) + 2 * t.rest.duty * budget_.wait();
    return static_cast<std::uint64_t>(std::max(kLeast, t.random.unit() * period));
}

void Sampler::charge_switches(Task& t) {
    if (!t.events.is_open()) return;
    std::uint64_t now = scheduled(t.process->pid, t.id).switches;
    const auto watchpoints = static_cast<unsigned>(std::ranges::count_if(
        t.watch, [](const Watch& one) { return one.waits_for != Watch::For::nothing; }));
    if (now > t.switches) t.rest.imposed += budget_.charge_switches(now - t.switches, watchpoints);
    t.switches = now;
}

// A thread that is switched often has its events for a part of its time only: tar into a pipe, switched
// 30 000 times per second, took a quarter longer without a single sample. What is watched when a rest
// begins is lost, as it may be to a later sample, and the first sample after it stands for the rest as
// well.
bool Sampler::wants_rest(Task& t) {
    constexpr std::uint64_t kLeast = 5000000;  // nanoseconds between two rests
    if (settings_.share == 0 || !t.events.is_open() || t.pair.asked || t.replay.runs) return false;
    charge_switches(t);
    const std::uint64_t on = clock(t) - t.rest.since;
    return on >= kLeast && budget_.switches_take_too_much() &&
           t.rest.imposed * 2000 > on * settings_.share;
}

void Sampler::begin_rest(Task& t) {
    take_records(t);
    pairing_.forget(t);
    const std::uint64_t now = program_time(t);
    for (unsigned block = 0; block < t.reservoir.watchpoints(); block++) {
        if (t.reservoir.held(block)) t.samples().samples[t.waiting[block] - 1].trap_time = now;
        t.reservoir.release(block);
    }
    for (unsigned slot = 0; slot < TaskEvents::kWatchpoints; slot++) drop(t, slot);
    t.events.close();
    t.rest.duty = static_cast<double>(t.clock_seen - t.rest.since);
    t.rest.since = t.clock_seen;
    t.rest.scheduled = scheduled(t.process->pid, t.id).time;
    t.rest.is_resting = true;
    t.is_due = false;
}

bool Sampler::end_rest(Task& t) {
    const std::uint64_t now = clock(t);
    if (budget_.switches_take_too_much() || t.events.open(t.id, now) != 0) return false;
    t.rest.is_resting = false;
    t.rest.duty /= t.rest.duty + static_cast<double>(now - t.rest.since) + 1;
    t.rest.since = now;
    t.rest.imposed = 0;
    t.switches = scheduled(t.process->pid, t.id).switches;
    // As much of it was in user code as before.
    const std::uint64_t to_sample = to_first_sample(t), unseen = now - t.rest.sampled;
    const double share =
        t.rest.sampled == 0
            ? 0.5
            : std::min(1.0, static_cast<double>(t.rest.user) / static_cast<double>(t.rest.sampled));
    t.period = to_sample + static_cast<std::uint64_t>(share * static_cast<double>(unseen));
    t.events.set_timer(to_sample);
    return true;
}

void Sampler::ran_unseen(Process& process, std::uint64_t nanoseconds, bool has_heap_library) {
    constexpr std::uint64_t kForkCost = 80000;  // nanoseconds: pages of the library's that are copied
    budget_.ran += nanoseconds;
    process.time += nanoseconds;
    process.program->time += nanoseconds;
    if (has_heap_library) budget_.imposed += kForkCost;
}

}  // namespace revisit::watch::outside
