// What threads, ranks and sampling bring over one thread of the exact engine, on the same trace in the
// same run. usage: bench_parallel [LOG2_ACCESSES [THREADS…]]
#include <fmt/format.h>

#include <chrono>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "parallel_traces.h"
#include "revisit/revisit.h"

using namespace revisit;

namespace {

double seconds() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

struct Measured {
    Profile profile;
    double rate = 0;  // accesses a second
};

Measured best_of(int runs, std::span<const std::uint64_t> blocks, const char* method,
                 unsigned threads) {
    Measured out;
    for (int run = 0; run < runs; ++run) {
        EngineOptions options;
        options.granularity = 1;
        options.threads = threads;
        options.bins = Binning::log2(64);
        const double begin = seconds();
        out.profile = analyze(blocks, method, options).value();
        out.rate = std::max(out.rate, static_cast<double>(blocks.size()) / (seconds() - begin));
    }
    return out;
}

// Mean absolute difference of the miss-ratio curves over cache sizes spread evenly up to all blocks.
double curve_error(const Profile& truth, const Profile& estimate) {
    auto miss = [](const Histogram& histogram, double blocks) {
        double hits = 0;
        for (const Bin& bin : histogram.bins)
            if (static_cast<double>(bin.low) < blocks) hits += bin.count;
        return 1 - hits / histogram.total();
    };
    double sum = 0;
    constexpr int kSizes = 1000;
    for (int i = 1; i <= kSizes; ++i) {
        const double blocks = truth.distinct * i / kSizes;
        sum += std::abs(miss(truth.reuse, blocks) - miss(estimate.reuse, blocks));
    }
    return sum / kSizes;
}

// The program itself under mpirun, timed from outside; start-up is measured with a trace of one access.
double cluster_seconds(const std::string& program, const std::string& file, unsigned ranks) {
    const std::string command = fmt::format(
        "mpirun --allow-run-as-root --oversubscribe -n {} {} analyze --cluster --format u64 "
        "--granularity 1 --quiet {} >/dev/null 2>&1",
        ranks, program, file);
    double least = 1e9;
    for (int run = 0; run < 2; ++run) {
        const double begin = seconds();
        if (std::system(command.c_str()) != 0) return 0;
        least = std::min(least, seconds() - begin);
    }
    return least;
}

void store(const std::string& path, std::span<const std::uint64_t> blocks) {
    std::ofstream(path, std::ios::binary)
        .write(reinterpret_cast<const char*>(blocks.data()),
               static_cast<std::streamsize>(blocks.size_bytes()));
}

}  // namespace

int main(int count, char** values) {
    const std::size_t accesses = std::size_t{1} << (count > 1 ? std::atoi(values[1]) : 25);
    std::vector<unsigned> threads;
    for (int i = 2; i < count; ++i) threads.push_back(static_cast<unsigned>(std::atoi(values[i])));
    if (threads.empty()) threads = {thread_count(0)};
    const std::string program = (std::filesystem::path(values[0]).parent_path() / "revisit").string();
    const bool has_mpi =
        std::system("command -v mpirun >/dev/null 2>&1") == 0 && std::filesystem::exists(program);
    const std::string file =
        (std::filesystem::temp_directory_path() / fmt::format("revisit-bench-{}.u64", accesses))
            .string();
    std::vector<std::uint64_t> blocks(accesses);
    fmt::print("{} accesses in memory, M accesses/s; ratios to one thread of exact\n", accesses);
    for (const bench::TraceKind& kind : bench::parallel_traces()) {
        bench::fill(kind, blocks);
        const Measured one = best_of(2, blocks, "exact", 1);
        fmt::print("{:<24} exact {:7.1f}", kind.name, one.rate / 1e6);
        for (unsigned n : threads) {
            const Measured many = best_of(2, blocks, "exact", n);
            fmt::print("   {} threads {:7.1f} ({:.2f}x{})", n, many.rate / 1e6, many.rate / one.rate,
                       many.profile.reuse == one.profile.reuse ? "" : ", DIFFERENT");
        }
        const Measured sampled = best_of(2, blocks, "shards", 1);
        fmt::print("   shards 1 % {:7.1f} ({:.1f}x, curve off by {:.4f})", sampled.rate / 1e6,
                   sampled.rate / one.rate, curve_error(one.profile, sampled.profile));
        if (has_mpi) {
            store(file, std::span(blocks).first(1));
            std::vector<double> start;
            for (unsigned n : threads) start.push_back(cluster_seconds(program, file, n));
            const double start_one = cluster_seconds(program, file, 1);
            store(file, blocks);
            const double alone = cluster_seconds(program, file, 1) - start_one;
            for (std::size_t i = 0; i < threads.size(); ++i) {
                const double together = cluster_seconds(program, file, threads[i]) - start[i];
                if (start_one <= 0 || start[i] <= 0 || alone <= 0 || together <= 0)
                    continue;  // no such job here
                fmt::print("   {} ranks {:.2f}x one rank", threads[i], alone / together);
            }
            std::filesystem::remove(file);
        }
        fmt::print("\n");
        std::fflush(stdout);
    }
    return 0;
}
