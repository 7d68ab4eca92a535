// What is done once: before the first thread, and when a thread begins and ends.
#include <algorithm>
#include <vector>

#include "watch/outside/sampler.h"
#include "watch/outside/scheduled.h"

namespace revisit::watch::outside {

using Watched = Sample::Watched;

// What a trap takes, on a thread of our own: a watched word is touched. The median of a few.
void Sampler::calibrate() {
    alignas(64) static volatile std::uint64_t touched;
    TaskEvents events;
    if (int error = events.open(0)) {
        no_watchpoints_ = error;
        return;
    }
    auto cost = [&](std::uint64_t touches) {
        std::vector<std::uint64_t> costs;
        for (int i = 0; i < 9 && no_watchpoints_ == 0; i++) {
            no_watchpoints_ =
                events.set_watchpoint(0, reinterpret_cast<std::uint64_t>(&touched), touches);
            std::uint64_t before = events.clock();
            std::uint64_t alone = events.clock() - before;
            before = events.clock();
            for (std::uint64_t k = 0; k < touches; k++) touched = k;
            std::uint64_t taken = events.clock() - before;
            costs.push_back(taken > alone ? taken - alone : 0);
            events.take_records({[](const Fired&) {}, [](const Trap&) {}, [] {}});
        }
        std::ranges::sort(costs);
        return costs.empty() ? 0 : costs[costs.size() / 2];
    };
    trap_cost_ = cost(1);
    std::uint64_t with_a_step = cost(2);
    step_cost_ = with_a_step > trap_cost_ ? with_a_step - trap_cost_ : 0;
}

void Sampler::start(Task& t) {
    t.number = static_cast<std::uint16_t>(t.process->program->threads++);
    t.process->threads.push_back(t.number);
    t.reservoir = Reservoir(blocks_at_once());
    t.random = Random(settings_.seed * 0x9e3779b97f4a7c15 + t.number + 1);
    t.period = to_first_sample(t);
    t.clock_seen = 0;
    int error = t.events.open(t.id);
    if (error != 0) {
        note(t, Hindrance::by_timer, error);
        clock(t);
    } else
        t.clock_seen = t.events.clock();  // of a thread that ran before
    t.switches = scheduled(t.process->pid, t.id).switches;
    if (no_watchpoints_ != 0 && t.number == 0) note(t, Hindrance::looks_only, no_watchpoints_);
    t.events.set_timer(t.period);
}

void Sampler::end(Task& t) {
    if (t.ended) return;
    t.ended = true;
    pairing_.forget(t);
    take_records(t);
    clock(t);  // its time counts with the others', and allows samples of them
    auto found = samples(t).threads.find(t.number);
    if (found != samples(t).threads.end()) {
        end_samples(t, found->second);
        note_peak(t);
    }
    t.events.close();
}

void Sampler::end_samples(Task& t, ThreadSamples& thread) {
    std::uint64_t now = program_time(t);
    for (unsigned block = 0; block < t.reservoir.watchpoints(); block++) {
        if (!t.reservoir.held(block)) continue;
        Sample& sample = thread.samples[t.waiting[block] - 1];
        sample.watched = Watched::never;
        sample.trap_time = now;
        sample.chance_kept = t.reservoir.kept(block);
    }
    thread.end = now;
    thread.recording = t.stopped_for + t.traps_cost;
}

}  // namespace revisit::watch::outside
