// How good the estimator of watching is on recorded traces, sampling simulated:
//     revisit record -o app.rvt -- ./app; bench/bench_watch [--samples N] [--seeds N] [--clock SHARE]
//     app.rvt …
// One line per trace: S, and for caches of 32K, 256K, 1M and 8M the true miss rate, the bias, the
// spread over seeds, the error stated and how often it covers.
#include <fmt/format.h>

#include <cstdlib>
#include <string_view>

#include "revisit/trace.h"
#include "watch_simulation.h"

using namespace revisit;
using namespace revisit::watch;

int main(int argc, char** argv) {
    SimulationOptions options;
    std::uint64_t seeds = 20, granularity = 64, most = 16'000'000;
    std::array<double, 2> all_covered{};
    std::vector<double> all_off, all_similar;
    for (int i = 1; i < argc; i++) {
        std::string_view word = argv[i];
        auto value = [&] { return i + 1 < argc ? std::atof(argv[++i]) : 0.0; };
        if (word == "--samples") {
            options.samples = static_cast<std::size_t>(value());
            continue;
        }
        if (word == "--seeds") {
            seeds = static_cast<std::uint64_t>(value());
            continue;
        }
        if (word == "--clock") {
            options.clock_error = value();
            continue;
        }
        if (word == "--every-use") {
            options.reservoir = false;
            continue;
        }
        if (word == "--granularity") {
            granularity = static_cast<std::uint64_t>(value());
            continue;
        }
        if (word == "--accesses") {
            most = static_cast<std::uint64_t>(value());
            continue;
        }
        auto reader = open_trace(std::string(word), word.ends_with(".records") ? "records" : "");
        if (!reader) {
            fmt::print(stderr, "bench_watch: {}\n", reader.error().message);
            return 2;
        }
        SimulatedTrace trace(static_cast<unsigned>(std::countr_zero(granularity)));
        bool more = true;
        while (more && trace.blocks.size() < most) {
            auto batch = (*reader)->next();
            if (!batch) {
                fmt::print(stderr, "bench_watch: {}\n", batch.error().message);
                return 2;
            }
            more = batch->count() > 0;
            for (std::size_t k = 0; k < batch->count(); k++)
                trace.add(batch->addresses[k], batch->sizes.empty() ? 1 : batch->sizes[k],
                          batch->sites.empty() ? 0 : batch->sites[k]);
        }
        trace.finish();
        std::vector<SimulationResult> results;
        for (std::uint64_t seed = 1; seed <= seeds; seed++)
            results.push_back(compare(trace, Simulation(trace, options, seed).run()));
        std::ranges::sort(results, {}, &SimulationResult::similarity);
        double similar = results[results.size() / 2].similarity;
        all_similar.push_back(similar);
        fmt::print("{:<24} S {:.3f} (least {:.3f})", word.substr(word.rfind('/') + 1), similar,
                   results.front().similarity);
        for (std::size_t c = 0; c < 4; c++) {
            double mean = 0, squares = 0, stated = 0, covered = 0;
            for (const SimulationResult& one : results) {
                mean += one.off[c];
                squares += one.off[c] * one.off[c];
                stated += one.stated[c];
                covered += std::abs(one.off[c]) <= one.stated[c];
                all_off.push_back(std::abs(one.off[c]));
            }
            auto n = static_cast<double>(results.size());
            mean /= n;
            all_covered[0] += covered;
            all_covered[1] += n;
            fmt::print(" | {:5.2f} {:+.2f}({:.2f}) ±{:.2f} {:.0f}%",
                       100 * trace.miss_rate(kSimulatedCaches[c] / static_cast<double>(granularity)),
                       100 * mean, 100 * std::sqrt(std::max(0.0, squares / n - mean * mean)),
                       100 * stated / n, 100 * covered / n);
        }
        fmt::print("\n");
    }
    if (all_off.empty()) return 2;
    std::ranges::sort(all_off);
    std::ranges::sort(all_similar);
    fmt::print(
        "median S {:.3f}, least {:.3f}; miss rates off by {:.2f} points in the median, {:.2f} in nine "
        "of ten; covered {:.1f} %\n",
        all_similar[all_similar.size() / 2], all_similar.front(), 100 * all_off[all_off.size() / 2],
        100 * all_off[all_off.size() * 9 / 10], 100 * all_covered[0] / all_covered[1]);
}
