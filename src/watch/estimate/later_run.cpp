#include "watch/estimate/later_run.h"

#include <algorithm>
#include <utility>

namespace revisit::watch {
namespace {

void append(ThreadSamples& to, ThreadSamples& more) {
    for (const ThreadSamples::Met& one : more.met)
        to.met.push_back({one.sample + static_cast<std::uint32_t>(to.samples.size()), one.place});
    for (Sample& sample : more.samples) {
        sample.time += to.end;
        if (sample.trap_time != 0) sample.trap_time += to.end;
        sample.first_entry += to.entries.size();
        to.samples.push_back(sample);
    }
    to.entries.insert(to.entries.end(), more.entries.begin(), more.entries.end());
    to.keeps = std::max(to.keeps, more.keeps);
    to.end += more.end;
    to.recording += more.recording;
    to.checked += more.checked;
    to.missed += more.missed;
    to.stray += more.stray;
}

}  // namespace

std::uint32_t join_later_run(Samples& samples, const RunsBefore& before, std::uint32_t numbers) {
    if (before.threads == 0) return numbers;
    auto& threads = samples.threads;
    // What was timed does not say in which thread; in most programs it is the first.
    const auto first = threads.find(0);
    const std::uint64_t end = first != threads.end() ? first->second.end : 0;
    auto shift = [&](auto& all, std::size_t from) {
        for (std::size_t i = from; i < all.size(); i++) all[i].when += end;
    };
    shift(samples.rates, before.rates);
    shift(samples.timed, before.timed);
    shift(samples.replays, before.replays);
    for (std::uint32_t number = before.threads; number < numbers; number++) {
        auto later = threads.find(static_cast<std::uint16_t>(number));
        if (later == threads.end()) continue;
        ThreadSamples more = std::move(later->second);
        threads.erase(later);
        append(threads[static_cast<std::uint16_t>(number - before.threads)], more);
    }
    return std::max(before.threads, numbers - before.threads);
}

}  // namespace revisit::watch
