// Every speed claim of the engines, as a ratio to the yardstick measured in the same run.
//
// Times are CPU time of one thread, best of three; olken stops repeating after 20 s, because it is slow
// and because more tries only flatter it. Memory is what a forked child's resident set grows by at its
// peak, after a short run has brought in the code: tables, windows, unused parts of pages, the
// allocator.
//
//   bench_engines [--accesses N] [--quick] [TRACE…]
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fstream>
#include <string>
#include <vector>

#include "revisit/revisit.h"
#include "traces.h"

namespace {

using namespace revisit;
using Blocks = std::vector<std::uint64_t>;

double cpu_seconds() {
    timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

EngineOptions options_with(const char* bins) {
    EngineOptions options;
    options.bins = Binning::parse(bins).value();
    return options;
}

Profile run(const char* method, const Blocks& blocks, const char* bins = "log2") {
    auto engine = make_engine(method, options_with(bins)).value();
    if (auto added = engine->add({blocks, {}, {}, {}}); !added) {
        std::fprintf(stderr, "%s: %s\n", method, added.error().sentence().c_str());
        std::exit(2);
    }
    return engine->finish().value();
}

struct Timed {
    double seconds = 0;
    int runs = 0;
    Profile profile;
    double rate() const { return profile.accesses / seconds * 1e-6; }  // M accesses/s
};

Timed best_of(int most, double patience, const char* method, const Blocks& blocks,
              const char* bins = "log2") {
    Timed best;
    double spent = 0;
    for (; best.runs < most && (best.runs == 0 || spent < patience); best.runs++) {
        const double start = cpu_seconds();
        best.profile = run(method, blocks, bins);
        const double seconds = cpu_seconds() - start;
        best.seconds = best.runs == 0 ? seconds : std::min(best.seconds, seconds);
        spent += seconds;
    }
    return best;
}

double status_bytes(const char* field) {
    std::ifstream status("/proc/self/status");
    for (std::string line; std::getline(status, line);)
        if (line.rfind(field, 0) == 0)
            return std::strtod(line.c_str() + std::strlen(field), nullptr) * 1024;
    return 0;
}

// Bytes the engine adds to the resident set at its peak, up to the last access: the result is not
// counted, which with a bin a distance is larger than all the rest.
double peak_bytes(const char* method, const Blocks& blocks, const char* bins) {
    int ends[2];
    if (pipe(ends) != 0) return 0;
    const pid_t child = fork();
    if (child == 0) {
        run(method,
            {blocks.begin(), blocks.begin() + std::min<std::ptrdiff_t>(1 << 17, std::ssize(blocks))},
            bins);
        std::ofstream("/proc/self/clear_refs") << "5";  // resets the peak
        const double before = status_bytes("VmRSS:");
        double bytes = 0;
        {
            auto engine = make_engine(method, options_with(bins)).value();
            if (engine->add({blocks, {}, {}, {}})) bytes = status_bytes("VmHWM:") - before;
        }
        _exit(write(ends[1], &bytes, sizeof bytes) == sizeof bytes ? 0 : 1);
    }
    double bytes = 0;
    close(ends[1]);
    if (read(ends[0], &bytes, sizeof bytes) != sizeof bytes) bytes = 0;
    close(ends[0]);
    waitpid(child, nullptr, 0);
    return bytes;
}

class Verdicts {
 public:
    void check(const char* what, double value, const char* unit, bool at_least, double target) {
        const bool pass = at_least ? value >= target : value <= target;
        all_pass_ &= pass;
        std::printf("%-62s %8.2f%s  target %s %g%s  %s\n", what, value, unit,
                    at_least ? ">=" : "<=", target, unit, pass ? "pass" : "FAIL");
    }
    bool all_pass() const { return all_pass_; }

 private:
    bool all_pass_ = true;
};

struct Mean {
    double log_sum = 0, least = 1e300;
    int count = 0;
    void add(double ratio) {
        log_sum += std::log(ratio);
        least = std::min(least, ratio);
        count++;
    }
    double geometric() const { return std::exp(log_sum / count); }
};

}  // namespace

int main(int argc, char** argv) {
    std::size_t accesses = std::size_t{16} << 20;
    bool quick = false;  // without olken and the long trace: for working on the engines
    std::vector<std::string> wanted;
    for (int i = 1; i < argc; i++) {
        if (std::strcmp(argv[i], "--quick") == 0)
            quick = true;
        else if (std::strcmp(argv[i], "--accesses") == 0 && i + 1 < argc)
            accesses = std::strtoull(argv[++i], nullptr, 0);
        else
            wanted.push_back(argv[i]);
    }
    auto is_wanted = [&](std::string_view name) {
        return wanted.empty() || std::find(wanted.begin(), wanted.end(), name) != wanted.end();
    };

    std::printf(
        "%zu accesses a trace; M accesses/s of CPU time, best of 3; ratios to olken in this run\n\n",
        accesses);
    std::printf("%-8s %8s | %6s | %14s %14s %14s | %6s | %12s %12s\n", "trace", "blocks", "olken",
                "exact", "exact, bins", "exact, ids", "time", "bytes/block", "bytes/block");
    std::printf("%-8s %8s | %6s | %14s %14s %14s | %6s | %12s %12s\n", "", "", "", "", "one a distance",
                "scrambled", "", "dense", "scrambled");

    Mean dense_mean, fine_mean, scrambled_mean, time_mean;
    double worst_memory = 0;
    for (const std::string& name : wanted)
        if (std::ranges::none_of(bench::trace_kinds(), [&](auto& kind) { return kind.name == name; })) {
            std::fprintf(stderr,
                         "bench_engines: no trace \"%s\"; usage: bench_engines [--accesses N] "
                         "[--quick] [TRACE…]\n",
                         name.c_str());
            return 2;
        }
    for (const auto& kind : bench::trace_kinds()) {
        if (!is_wanted(kind.name)) continue;
        const Blocks dense = kind.make(accesses);
        const Blocks sparse = bench::scrambled(dense);
        const double dense_bytes = peak_bytes("exact", dense, "exact");
        const double sparse_bytes = peak_bytes("exact", sparse, "exact");
        const Timed exact = best_of(3, 1e9, "exact", dense);
        const Timed fine = best_of(3, 1e9, "exact", dense, "exact");
        const Timed exact_sparse = best_of(3, 1e9, "exact", sparse);
        const Timed time = best_of(3, 1e9, "time", dense);
        const Timed olken = quick ? Timed{} : best_of(3, 20, "olken", dense);
        if (!quick && (olken.profile.reuse != exact.profile.reuse ||
                       olken.profile.reuse != exact_sparse.profile.reuse)) {
            std::fprintf(stderr, "%s: exact and olken disagree\n", std::string(kind.name).c_str());
            return 1;
        }
        const double blocks = exact.profile.distinct;
        auto ratio = [&](const Timed& timed) { return quick ? 1 : timed.rate() / olken.rate(); };
        std::printf(
            "%-8s %8.0f | %6.2f | %6.1f %6.1fx %6.1f %6.1fx %6.1f %6.1fx | %6.1f | %12.1f %12.1f\n",
            std::string(kind.name).c_str(), blocks, quick ? 0 : olken.rate(), exact.rate(),
            ratio(exact), fine.rate(), ratio(fine), exact_sparse.rate(), ratio(exact_sparse),
            time.rate(), dense_bytes / blocks, sparse_bytes / blocks);
        std::fflush(stdout);
        dense_mean.add(ratio(exact));
        fine_mean.add(ratio(fine));
        scrambled_mean.add(ratio(exact_sparse));
        time_mean.add(time.rate() / exact.rate());
        worst_memory = std::max({worst_memory, dense_bytes / blocks, sparse_bytes / blocks});
    }

    std::printf("\n");
    Verdicts verdicts;
    if (!quick) {
        verdicts.check("exact, one thread, geometric mean over olken", dense_mean.geometric(), "x",
                       true, 60);
        verdicts.check("exact, one thread, least over olken", dense_mean.least, "x", true, 30);
        verdicts.check("exact, a bin a distance, geometric mean over olken", fine_mean.geometric(), "x",
                       true, 60);
        verdicts.check("exact, ids scrambled, geometric mean over olken", scrambled_mean.geometric(),
                       "x", true, 40);
    }
    verdicts.check("time over exact, geometric mean", time_mean.geometric(), "x", true, 2);
    verdicts.check("memory beyond the trace, bytes a block, worst", worst_memory, "", false, 24);
    if (!quick) {
        const Blocks longer = bench::uniform_trace(std::size_t{1} << 26, 1u << 20);
        const Blocks shorter(longer.begin(), longer.begin() + (1 << 22));
        const Timed few = best_of(3, 1e9, "exact", shorter), many = best_of(3, 1e9, "exact", longer);
        verdicts.check("cost an access at 2^26 accesses over that at 2^22", few.rate() / many.rate(),
                       "x", false, 1.5);
    }
    return verdicts.all_pass() ? 0 : 1;
}
