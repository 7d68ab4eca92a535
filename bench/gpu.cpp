// The GPU's table: rate with data on the device and from pinned host memory, by trace; stages; and the
// histogram held against the CPU's. usage: bench_gpu [LOG2_ACCESSES [LOG2_CHECKED [LOG2_CHUNK]]]
#include "gpu/gpu.h"

#include <fmt/format.h>

#include <chrono>
#include <cmath>
#include <cstdlib>
#include <map>

#include "gpu/exact_counter.h"
#include "gpu/hprda_counter.h"
#include "parallel_traces.h"
#include "revisit/revisit.h"

using namespace revisit;

namespace {

double seconds() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// Best of three after one to warm up. A counter keeps its memory, so each run goes on from the last
// one's stack, but only the first counts first touches.
double best(const std::uint64_t* blocks, std::size_t count, gpu::Memory where, std::size_t chunk,
            gpu::Outcome* outcome) {
    double least = 1e9;
    for (int run = 0; run < 4; ++run) {
        gpu::Settings settings;
        settings.chunk = chunk;
        auto counter = gpu::make_exact_counter(settings);
        counter->add(blocks, std::min<std::size_t>(count, chunk != 0 ? chunk : count),
                     where);  // memory, clocks
        counter->add(blocks, std::min<std::size_t>(count, chunk != 0 ? chunk : count), where);
        double begin = seconds();
        counter->add(blocks, count, where);
        least = std::min(least, seconds() - begin);
    }
    gpu::Settings settings;
    settings.stage_times = true;
    settings.chunk = chunk;
    auto counter = gpu::make_exact_counter(settings);
    counter->add(blocks, count, where);
    *outcome = counter->finish();
    return least;
}

// The paper's measure: mean over the bins of how much their shares differ.
double bin_error(const Histogram& truth, const Histogram& estimate) {
    std::map<std::uint64_t, double> shares;
    for (const Bin& bin : truth.bins) shares[bin.low] += bin.count / truth.total();
    for (const Bin& bin : estimate.bins) shares[bin.low] -= bin.count / estimate.total();
    double sum = 0;
    for (auto [low, share] : shares) sum += std::abs(share);
    return shares.empty() ? 0 : sum / static_cast<double>(shares.size());
}

std::vector<std::uint64_t> cpu_bins(std::span<const std::uint64_t> blocks, const char* method,
                                    unsigned threads, double& elapsed) {
    EngineOptions options;
    options.granularity = 1;
    options.threads = threads;
    options.bins = Binning::log2();
    double begin = seconds();
    Profile profile = analyze(blocks, method, options).value();
    elapsed = seconds() - begin;
    std::vector<std::uint64_t> bins(65);
    for (const Bin& bin : profile.reuse.bins)
        bins[options.bins.index(bin.low)] = static_cast<std::uint64_t>(bin.count);
    return bins;
}

}  // namespace

int main(int count, char** values) {
    if (GpuReport gpu = describe_gpu(); !gpu.works) {
        fmt::print("skipped: {}\n", gpu.detail);
        return 0;
    } else {
        fmt::print("{}\n", gpu.detail);
    }
    const int log2 = count > 1 ? std::atoi(values[1]) : 29,
              checked = count > 2 ? std::atoi(values[2]) : 22;
    const std::size_t chunk = count > 3 ? std::size_t{1} << std::atoi(values[3]) : 0;
    const std::size_t accesses = std::size_t{1} << log2;
    const bool has_exact = static_cast<bool>(make_engine("exact", {}));
    std::uint64_t* pinned = gpu::allocate_pinned(accesses);
    for (const bench::TraceKind& kind : bench::parallel_traces()) {
        std::span<std::uint64_t> blocks(pinned, accesses);
        bench::fill(kind, blocks);
        gpu::Outcome outcome, from_host;
        std::uint64_t* resident = gpu::upload(pinned, accesses);
        double on_device = best(resident, accesses, gpu::Memory::device, chunk, &outcome);
        gpu::free_device(resident);
        double from_pinned = best(pinned, accesses, gpu::Memory::pinned, chunk, &from_host);
        auto rate = [&](double time) { return static_cast<double>(accesses) / time / 1e9; };
        fmt::print(
            "{:<24} 2^{}  device {:6.2f} G/s ({:6.1f} ms)  pinned {:6.2f} G/s ({:6.1f} ms)  {}\n",
            kind.name, log2, rate(on_device), on_device * 1e3, rate(from_pinned), from_pinned * 1e3,
            outcome.reuse.by_bin == from_host.reuse.by_bin ? "alike" : "DIFFERENT");
        fmt::print("   stages, ms:");
        for (const gpu::Stage& stage : outcome.stages)
            fmt::print(" {} {:.2f}", stage.name, stage.milliseconds);
        fmt::print("\n");
        gpu::HprdaOutcome unused;
        double approximate = 1e9;
        for (int run = 0; run < 3; ++run) {
            auto counter = gpu::make_hprda_counter({});
            counter->add(pinned, std::min<std::size_t>(accesses, std::size_t{1} << 26),
                         gpu::Memory::pinned);
            const double begin = seconds();
            counter->add(pinned, accesses, gpu::Memory::pinned);
            unused = counter->finish();
            approximate = std::min(approximate, seconds() - begin);
        }
        fmt::print("   hprda from pinned memory {:.2f} G/s, exact {:.1f}x that;", rate(approximate),
                   approximate / from_pinned);
        {
            const std::size_t prefix = std::min<std::size_t>(accesses, std::size_t{1} << 26);
            EngineOptions options;
            options.granularity = 1;
            options.bins = Binning::log2();
            options.device = Device::gpu;
            const Profile truth = analyze(blocks.first(prefix), "exact", options).value();
            const Profile with = analyze(blocks.first(prefix), "hprda", options).value();
            options.hprda.adjust = false;
            const Profile without = analyze(blocks.first(prefix), "hprda", options).value();
            fmt::print(
                " on 2^26: S {:.4f}, not adjusted {:.4f}; paper's error {:.2f} %, not adjusted {:.2f} "
                "%\n",
                accuracy(truth.reuse, with.reuse), accuracy(truth.reuse, without.reuse),
                100 * bin_error(truth.reuse, with.reuse), 100 * bin_error(truth.reuse, without.reuse));
        }
        if (checked > 0) {
            const std::size_t prefix = std::size_t{1} << std::min(checked, log2);
            double elapsed = 0;
            auto truth = cpu_bins(blocks.first(prefix), has_exact ? "exact" : "olken", 1, elapsed);
            auto counter = gpu::make_exact_counter({});
            counter->add(pinned, prefix, gpu::Memory::pinned);
            bool equal = counter->finish().reuse.by_bin == truth;
            double olken_time = 0;
            const std::size_t short_prefix = std::min<std::size_t>(prefix, std::size_t{1} << 22);
            cpu_bins(blocks.first(short_prefix), "olken", 1, olken_time);
            double olken = static_cast<double>(short_prefix) / olken_time;
            fmt::print(
                "   first 2^{}: {} to {} (one core, {:.1f} M/s); olken {:.2f} M/s on 2^22: device "
                "{:.0f}x\n",
                std::min(checked, log2), equal ? "equal" : "DIFFERENT", has_exact ? "exact" : "olken",
                static_cast<double>(prefix) / elapsed / 1e6, olken / 1e6,
                rate(on_device) * 1e9 / olken);
        }
        std::fflush(stdout);
    }
    gpu::free_pinned(pinned);
    return 0;
}
