// Speed of the private model: accesses per second over a trace of four threads, both models in one
// pass, with and without the writer and the victim of each invalidated reuse, beside the shared model
// alone and the textbook tree on the same blocks. Fails if writers and victims cost more than half as
// much again.
//
// Traces are made in memory, so that nothing but the engines is timed; CPU time, best of two.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <ctime>
#include <random>

#include "revisit/revisit.h"

using namespace revisit;

namespace {

constexpr std::size_t kAccesses = std::size_t{2} << 20;
constexpr unsigned kThreads = 4;

struct Trace {
    const char* name;
    std::vector<std::uint64_t> blocks;
    std::vector<std::uint16_t> threads;
    std::vector<std::uint8_t> flags;
    std::vector<std::uint32_t> sites;
    std::vector<std::uint16_t> parts;
};

// `next(thread)` is the thread's next block; threads take turns of a few accesses, as on real cores.
template <class Next>
Trace make(const char* name, double writes, Next next) {
    Trace trace{name, {}, {}, {}, {}, {}};
    std::mt19937_64 random(1);
    std::uint16_t thread = 0;
    for (std::size_t i = 0; i < kAccesses; ++i) {
        if (random() % 8 == 0) thread = static_cast<std::uint16_t>(random() % kThreads);
        trace.threads.push_back(thread);
        trace.blocks.push_back(next(thread));
        trace.flags.push_back(static_cast<double>(random() % 1024) < writes * 1024);
        trace.sites.push_back(static_cast<std::uint32_t>(random() % 16));
        const auto word = static_cast<unsigned>(random() % 8);  // 8 bytes of the line
        trace.parts.push_back(static_cast<std::uint16_t>(8 * word | (8 * word + 7) << 8));
    }
    return trace;
}

double cpu_seconds() {
    timespec now{};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

enum class Names : std::uint8_t { none, sites, writers };

double rate(const Trace& trace, std::string_view method, StackModel model, bool shared, int runs = 2,
            Names names = Names::none) {
    const std::vector<std::uint32_t> none;
    const std::vector<std::uint16_t> whole;
    double best = 1e9;
    for (int run = 0; run < runs; ++run) {
        EngineOptions options;
        options.model = model;
        options.shared = shared;
        options.sites = names != Names::none;
        options.sharing = names == Names::writers;
        double begin = cpu_seconds();
        auto engine = make_engine(method, options);
        if (!engine) return 0;
        constexpr std::size_t kBatch = 1 << 16;
        std::size_t count = method == "olken" ? kAccesses / 16 : kAccesses;
        for (std::size_t at = 0; at < count; at += kBatch)
            if (!(*engine)->add(BlockBatch{trace.blocks, options.sites ? trace.sites : none,
                                           trace.threads, trace.flags,
                                           options.sharing ? trace.parts : whole}
                                    .part(at, kBatch)))
                return 0;
        if (!(*engine)->finish()) return 0;
        best = std::min(best, (cpu_seconds() - begin) / static_cast<double>(count));
    }
    return 1e-6 / best;
}

}  // namespace

int main() {
    std::mt19937_64 random(2);
    std::uint64_t at[kThreads] = {};
    auto zipf = [&](double blocks) {  // density 1/x
        double u = static_cast<double>(random() >> 11) * 0x1p-53;
        return static_cast<std::uint64_t>(std::exp(u * std::log(blocks)));
    };
    const Trace traces[] = {
        make("scans of 1 MiB a thread, 1 in 32 shared", 0.3,
             [&](unsigned t) {
                 return random() % 32 == 0 ? random() % 4096 : (t + 1) * 100000 + at[t]++ / 8 % 16384;
             }),
        make("skewed, 1 M blocks, all shared, 2 % writes", 0.02,
             [&](unsigned) { return zipf(1 << 20); }),
        make("skewed, 256 K blocks a thread, 1 in 8 shared", 0.3,
             [&](unsigned t) {
                 return random() % 8 == 0 ? zipf(1 << 18) : ((t + 1) << 20) + zipf(1 << 18);
             }),
        make("uniform, 256 K blocks a thread, 1 in 8 shared", 0.3,
             [&](unsigned t) {
                 return random() % 8 == 0 ? random() % (1 << 18)
                                          : ((t + 1) << 20) + random() % (1 << 18);
             }),
        make("uniform, 1 M blocks, all shared, 30 % writes", 0.3,
             [&](unsigned) { return random() % (1 << 20); }),
    };
    fmt::print("{:<48} {:>8} {:>8} {:>8} {:>8} {:>8} {:>8}\n",
               "M accesses/s, 4 threads' trace, one core", "both", "sites", "writers", "private",
               "shared", "olken");
    double worst = 0;
    for (const Trace& trace : traces) {
        const double sites = rate(trace, "exact", StackModel::private_, true, 3, Names::sites),
                     writers = rate(trace, "exact", StackModel::private_, true, 3, Names::writers);
        worst = std::max(worst, sites / writers);
        fmt::print("{:<48} {:>8.1f} {:>8.1f} {:>8.1f} {:>8.1f} {:>8.1f} {:>8.2f}\n", trace.name,
                   rate(trace, "exact", StackModel::private_, true), sites, writers,
                   rate(trace, "exact", StackModel::private_, false),
                   rate(trace, "exact", StackModel::single, false),
                   rate(trace, "olken", StackModel::single, false, 1));
    }
    fmt::print("writers and victims cost at most {:.2f} times both with sites (allowed: 1.50)\n",
               worst);
    return worst > 1.5;
}
