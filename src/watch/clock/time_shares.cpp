#include "watch/clock/time_shares.h"

#include <algorithm>

namespace revisit::watch {

double advance(const std::vector<Sample>& samples, std::size_t i, bool with_kernel) {
    double before = i == 0 ? 0 : static_cast<double>(samples[i - 1].time);
    double time = std::max(0.0, static_cast<double>(samples[i].time) - before);
    return with_kernel ? time : std::min(time, static_cast<double>(samples[i].period));
}

std::map<std::string, double> time_over_samples(const Samples& samples, FunctionNames& names) {
    struct Time {
        double sampled = 0, met = 0;
        std::size_t moments = 0;
    };
    std::map<std::string, Time> loops;
    double whole = 0;
    for (const auto& [number, thread] : samples.threads) {
        thread.for_places([&](std::size_t sample, std::uint32_t place, double share) {
            Time& loop = loops[names.loop(place)];
            loop.met += share * advance(thread.samples, sample);
            loop.moments++;
        });
        for (std::size_t i = 0; i < thread.samples.size(); i++) {
            double time = advance(thread.samples, i);
            loops[names.loop(thread.samples[i].place)].sampled += time;
            whole += time;
        }
    }
    std::map<std::string, double> out;
    double sum = 0;
    for (const auto& [name, time] : loops) {
        if (time.sampled <= 0) continue;
        // What was met once or twice says little: as much as two more moments, at which both agree.
        const double few = 2 * time.met / static_cast<double>(time.moments);
        out[name] = (time.met + few) / (time.sampled + few);
        sum += out[name] * time.sampled;
    }
    for (auto& [name, factor] : out) factor *= sum > 0 ? whole / sum : 1;
    return out;
}

}  // namespace revisit::watch
