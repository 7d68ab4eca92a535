#include "watch/clock/time_shares.h"

#include <algorithm>

namespace revisit::watch {

double advance(const std::vector<Sample>& samples, std::size_t i, bool with_kernel) {
    const auto period = static_cast<double>(samples[i].period);
    const double before = i == 0 ? 0 : static_cast<double>(samples[i - 1].time);
    double time = std::max(0.0, static_cast<double>(samples[i].time) - before);
    if (i == 0 && period > time) time *= 2;  // it stands for what follows too
    return with_kernel ? time : std::min(time, period);
}

double time_of(const std::vector<Sample>& samples, std::size_t i, bool with_kernel) {
    const double time = advance(samples, i, with_kernel);
    const Sample& sample = samples[i];
    if (sample.stands_for == 0 || sample.period == 0) return time;
    return time * static_cast<double>(sample.stands_for) / static_cast<double>(sample.period);
}

std::map<std::string, double> time_over_samples(const Samples& samples, FunctionNames& names) {
    struct Time {
        double sampled = 0, met = 0;
        std::size_t moments = 0;
    };
    std::map<std::string, Time> loops;
    double whole = 0;
    for (const auto& [number, thread] : samples.threads)
        for (std::size_t i = 0; i < thread.samples.size(); i++) {
            loops[names.loop(thread.samples[i].place)].sampled += time_of(thread.samples, i);
            whole += advance(thread.samples, i);
        }
    // What no sample met, single loops of an allocator, is like what was met just before: by the moment
    // before it, or by the sample that its time begins with.
    for (const auto& [number, thread] : samples.threads) {
        auto before = loops.end();
        std::size_t time_of = thread.samples.size();
        thread.for_places([&](std::size_t sample, std::uint32_t place, double share) {
            auto loop = loops.find(names.loop(place));
            if (loop == loops.end() && time_of != sample)
                before = loops.find(names.loop(thread.samples[sample > 0 ? sample - 1 : 0].place));
            if (loop == loops.end()) loop = before;
            before = loop;
            time_of = sample;
            loop->second.met += share * advance(thread.samples, sample);
            loop->second.moments++;
        });
    }
    std::map<std::string, double> out;
    double sum = 0;
    for (const auto& [name, time] : loops) {
        if (time.sampled <= 0) continue;
        // What was met once or twice says little: samples count as much as two moments more.
        constexpr double kFew = 2;
        const double said =
            static_cast<double>(time.moments) / (static_cast<double>(time.moments) + kFew);
        out[name] = said * time.met / time.sampled + 1 - said;
        sum += out[name] * time.sampled;
    }
    for (auto& [name, factor] : out) factor *= sum > 0 ? whole / sum : 1;
    return out;
}

}  // namespace revisit::watch
