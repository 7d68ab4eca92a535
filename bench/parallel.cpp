// What threads, ranks and sampling bring over one thread of the exact engine, on the same trace in the
// same run, beside what the machine has to give. usage: bench_parallel [LOG2_ACCESSES [THREADS…]]
//        bench_parallel beside [LOG2_ACCESSES [THREADS…]]      sites and pairs, times, phases
//        bench_parallel lengths [LOG2_ACCESSES [THREADS…]]     are several ever slower? short traces
//        too bench_parallel ranks [LOG2_ACCESSES [RANKS…]] bench_parallel volume
// BENCH_TRACES=stack,scan keeps the traces whose name has one of these in it.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "parallel_traces.h"
#include "revisit/revisit.h"

using namespace revisit;

namespace {

double seconds() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

std::vector<bench::TraceKind> traces() {
    const char* const wanted = std::getenv("BENCH_TRACES");
    std::vector<bench::TraceKind> out;
    for (const bench::TraceKind& kind : bench::parallel_traces())
        for (std::string_view rest = wanted == nullptr ? "" : wanted;;) {
            const std::string_view one = rest.substr(0, rest.find(','));
            if (kind.name.find(one) != kind.name.npos) {
                out.push_back(kind);
                break;
            }
            if (one.size() == rest.size()) break;
            rest.remove_prefix(one.size() + 1);
        }
    return out;
}

struct Measured {
    Profile profile;
    double rate = 0;  // accesses a second
};

EngineOptions plain_options(unsigned threads) {
    EngineOptions options;
    options.granularity = 1;
    options.threads = threads;
    return options;
}

Measured best_of(const BlockBatch& batch, const char* method, const EngineOptions& options,
                 int runs = 3) {
    Measured out;
    double spent = 0;
    for (int run = 0; run < runs && spent < 3; ++run) {
        const double begin = seconds();
        auto engine = make_engine(method, options).value();
        (void)engine->add(batch);
        out.profile = engine->finish().value();
        const double elapsed = seconds() - begin;
        spent += elapsed;
        out.rate = std::max(out.rate, static_cast<double>(batch.count()) / elapsed);
    }
    return out;
}

Measured best_of(std::span<const std::uint64_t> blocks, const char* method, unsigned threads) {
    EngineOptions options = plain_options(threads);
    options.bins = Binning::log2(64);
    return best_of(BlockBatch{blocks, {}, {}, {}}, method, options);
}

// The same with what is counted beside distances.
enum class Beside : std::uint8_t { nothing, sites, times, phases };

EngineOptions beside_options(Beside beside, unsigned threads) {
    EngineOptions options = plain_options(threads);
    options.sites = options.pairs = beside == Beside::sites;
    options.time = beside == Beside::times;
    options.phases = beside == Beside::phases ? 10 : 0;
    return options;
}

Measured best_beside(const BlockBatch& batch, Beside beside, unsigned threads) {
    return best_of(batch, "exact", beside_options(beside, threads));
}

// How many times as fast n threads do what one does, where nothing is shared but the machine: cores may
// be halves of one, and one thread alone may run at a higher clock.
template <class Work>
double machine_ratio(unsigned n, Work work) {
    auto least = [&](unsigned threads) {
        double best = 1e9;
        for (int run = 0; run < 3; ++run) {
            const double begin = seconds();
            parallel_for(threads, threads, work);
            best = std::min(best, seconds() - begin);
        }
        return best;
    };
    return n * least(1) / least(n);
}

void print_ceilings(std::span<const unsigned> counts, std::span<const std::uint64_t> memory) {
    std::atomic<std::uint64_t> sink = 0;
    fmt::print("what this machine gives n threads that share nothing else, in times one:\n");
    for (unsigned n : counts) {
        const double arithmetic = machine_ratio(n, [&](std::size_t k) {
            std::uint64_t a = k + 1, b = k + 2, c = k + 3, sum = 0;  // three chains and counts
            for (int i = 0; i < 20'000'000; ++i) {
                a = a * 0x9e3779b97f4a7c15u + 1;
                b ^= b << 7 ^ b >> 9;
                c += static_cast<std::uint64_t>(std::popcount(a ^ b));
                sum += c & a;
            }
            sink += sum;
        });
        const double small_table = machine_ratio(n, [&](std::size_t k) {
            std::vector<std::uint32_t> table(1 << 16);  // 256 KiB: what a chunk's tables take
            std::uint64_t a = k + 1;
            for (int i = 0; i < 10'000'000; ++i) {
                a = a * 0x9e3779b97f4a7c15u + 1;
                table[a >> 48]++;
            }
            sink += table[5];
        });
        const double reading = machine_ratio(n, [&](std::size_t k) {
            const std::size_t share = memory.size() / n;
            std::uint64_t sum = 0;
            for (std::uint64_t word : memory.subspan(k * share, share)) sum += word;
            sink += sum;
        });
        fmt::print(
            "  {:2} threads: arithmetic {:.2f}, counters in 256 KiB {:.2f}, reading memory {:.2f}\n", n,
            arithmetic, small_table, reading);
    }
    std::fflush(stdout);
}

// A trace with the columns that sites and pairs are made of.
struct Columns {
    std::vector<std::uint64_t> blocks;
    std::vector<std::uint32_t> sites;
    std::vector<std::uint8_t> flags;

    explicit Columns(std::size_t accesses) : blocks(accesses), sites(accesses), flags(accesses) {
        for (std::size_t i = 0; i < accesses; ++i) {
            sites[i] = static_cast<std::uint32_t>(i % 24);
            flags[i] = i % 4 == 3 ? kWrite : 0;
        }
    }
    BlockBatch batch(bool with_sites) const {
        if (!with_sites) return {blocks, {}, {}, {}};
        return {blocks, sites, {}, flags};
    }
};

void bench_beside(std::size_t accesses, std::span<const unsigned> counts) {
    Columns columns(accesses);
    fmt::print("{} accesses in memory, exact and beside it; ratios to one thread of the same\n",
               accesses);
    for (const bench::TraceKind& kind : traces()) {
        bench::fill(kind, columns.blocks);
        fmt::print("{:<24}", kind.name);
        for (auto [beside, name] : {std::pair{Beside::sites, "sites and pairs"},
                                    {Beside::times, "times"},
                                    {Beside::phases, "phases"}}) {
            const BlockBatch batch = columns.batch(true);
            const Measured one = best_beside(batch, beside, 1);
            fmt::print("   {} {:.1f} M/s", name, one.rate / 1e6);
            for (unsigned n : counts) {
                const Measured many = best_beside(batch, beside, n);
                fmt::print(" {}: {:.2f}x{}", n, many.rate / one.rate,
                           to_json(many.profile) == to_json(one.profile) ? "" : " DIFFERENT");
            }
            std::fflush(stdout);
        }
        fmt::print("\n");
    }
}

// Ratios to one thread for lengths up to `accesses`: what several threads cost shows where they have
// little time to pay, and where all accesses are first ones. Runs alternate; each side's best is taken.
void bench_lengths(std::size_t accesses, std::span<const unsigned> counts) {
    auto kinds = traces();
    if (std::getenv("BENCH_TRACES") == nullptr) {
        kinds.push_back(
            {"all cold, 32-bit ids", [](std::uint64_t i) { return i * 0x9e3779b1u & 0xffffffff; }});
        kinds.push_back({"all cold, 64-bit ids", bench::mixed});
        kinds.push_back({"one block", [](std::uint64_t) { return std::uint64_t{7}; }});
    }
    for (const unsigned threads : counts) {
        double least = 1e9;
        fmt::print("{} threads over one, by log2 of the length\n{:<36}", threads, "");
        for (std::size_t length = 1 << 16; length <= accesses; length *= 2)
            fmt::print(" {:5}", std::countr_zero(length));
        fmt::print("\n");
        for (const bench::TraceKind& kind : kinds) {
            Columns all(accesses);
            bench::fill(kind, all.blocks);
            for (auto [beside, name] : {std::pair{Beside::nothing, "distances"},
                                        {Beside::sites, "sites"},
                                        {Beside::times, "times"},
                                        {Beside::phases, "phases"}}) {
                fmt::print("{:<26}{:<10}", kind.name, name);
                for (std::size_t length = 1 << 16; length <= accesses; length *= 2) {
                    const BlockBatch batch = all.batch(beside == Beside::sites).part(0, length);
                    double one = 0, many = 0;
                    const int rounds = length <= 1 << 20 ? 9 : length <= 1 << 22 ? 5 : 3;
                    for (int round = 0; round < rounds; ++round) {
                        one = std::max(one, best_of(batch, "exact", beside_options(beside, 1), 1).rate);
                        many = std::max(
                            many, best_of(batch, "exact", beside_options(beside, threads), 1).rate);
                    }
                    fmt::print(" {:5.2f}", many / one);
                    std::fflush(stdout);
                    least = std::min(least, many / one);
                }
                fmt::print("\n");
            }
        }
        fmt::print("least: {:.2f}\n", least);
    }
}

// What the machine has to give: n engines that know nothing of each other, each on its piece of the
// trace. Cores share caches, memory and clock; exact on n threads cannot do better than this.
double rate_apart(std::span<const std::uint64_t> blocks, unsigned n) {
    double least = 1e9;
    for (int run = 0; run < 2; ++run) {
        const double begin = seconds();
        parallel_for(n, n, [&](std::size_t k) {
            const std::size_t low = blocks.size() * k / n, high = blocks.size() * (k + 1) / n;
            EngineOptions options;
            options.granularity = 1;
            options.bins = Binning::log2(64);
            (void)analyze(blocks.subspan(low, high - low), "exact", options);
        });
        least = std::min(least, seconds() - begin);
    }
    return static_cast<double>(blocks.size()) / least;
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

// The program itself under mpirun; what it counted goes to `output`.
double cluster_seconds(const std::string& program, const std::string& file, unsigned ranks,
                       const std::string& output = "/dev/null") {
    const std::string command = fmt::format(
        "mpirun --allow-run-as-root --oversubscribe -n {} {} analyze --cluster --format u64 "
        "--granularity 1 --json {} >{} 2>/dev/null",
        ranks, program, file, output);
    double least = 1e9, spent = 0;
    for (int run = 0; run < 2 && spent < 3; ++run) {
        const double begin = seconds();
        if (std::system(command.c_str()) != 0) return 0;
        least = std::min(least, seconds() - begin);
        spent += seconds() - begin;
    }
    return least;
}

void store(const std::string& path, std::span<const std::uint64_t> blocks) {
    std::ofstream(path, std::ios::binary)
        .write(reinterpret_cast<const char*>(blocks.data()),
               static_cast<std::streamsize>(blocks.size_bytes()));
}

void bench_threads(std::size_t accesses, std::span<const unsigned> counts) {
    std::vector<std::uint64_t> blocks(accesses);
    bench::fill(bench::parallel_traces().front(), blocks);
    print_ceilings(counts, blocks);
    fmt::print("{} accesses in memory, M accesses/s; ratios to one thread of exact\n", accesses);
    for (const bench::TraceKind& kind : traces()) {
        bench::fill(kind, blocks);
        const Measured one = best_of(blocks, "exact", 1);
        fmt::print("{:<24} exact {:7.1f}", kind.name, one.rate / 1e6);
        for (unsigned n : counts) {
            const Measured many = best_of(blocks, "exact", n);
            fmt::print("   {} threads {:7.1f} ({:.2f}x{})", n, many.rate / 1e6, many.rate / one.rate,
                       many.profile.reuse == one.profile.reuse ? "" : ", DIFFERENT");
        }
        fmt::print("   {} apart {:.2f}x", counts[0], rate_apart(blocks, counts[0]) / one.rate);
        const Measured sampled = best_of(blocks, "shards", 1);
        fmt::print("   shards 1 % {:7.1f} ({:.1f}x, curve off by {:.4f})\n", sampled.rate / 1e6,
                   sampled.rate / one.rate, curve_error(one.profile, sampled.profile));
        std::fflush(stdout);
    }
}

struct Cluster {
    std::string program, file;
    bool works = false;
};

Cluster find_cluster(const char* self) {
    Cluster found;
    found.program = (std::filesystem::path(self).parent_path() / "revisit").string();
    found.file =
        (std::filesystem::temp_directory_path() / fmt::format("revisit-bench-{}.u64", getpid()))
            .string();
    found.works =
        std::system("command -v mpirun >/dev/null 2>&1") == 0 && std::filesystem::exists(found.program);
    return found;
}

// Wall time of the whole job; starting ranks is measured with a trace of one access and taken off.
void bench_ranks(const Cluster& cluster, std::size_t accesses, std::span<const unsigned> counts) {
    std::vector<std::uint64_t> blocks(accesses);
    store(cluster.file, std::span(blocks).first(1));
    std::vector<double> start;
    const double start_one = cluster_seconds(cluster.program, cluster.file, 1);
    for (unsigned n : counts) start.push_back(cluster_seconds(cluster.program, cluster.file, n));
    fmt::print("{} accesses in a file; ratios to one rank, start-up ({:.2f} s for one) taken off\n",
               accesses, start_one);
    for (const bench::TraceKind& kind : traces()) {
        bench::fill(kind, blocks);
        store(cluster.file, blocks);
        const double alone = cluster_seconds(cluster.program, cluster.file, 1) - start_one;
        fmt::print("{:<24} one rank {:7.1f} M/s", kind.name,
                   static_cast<double>(accesses) / alone / 1e6);
        for (std::size_t i = 0; i < counts.size(); ++i) {
            const double together =
                cluster_seconds(cluster.program, cluster.file, counts[i]) - start[i];
            fmt::print("   {} ranks {:.2f}x", counts[i], alone / together);
        }
        fmt::print("\n");
        std::fflush(stdout);
    }
}

// Bytes that ranks send each other, as docs/cluster.md has them from a formula, and as measured.
void bench_volume(const Cluster& cluster) {
    std::vector<std::uint64_t> blocks(std::size_t{1} << 24);
    bench::fill({"zipf 2^22", bench::zipf<22>}, blocks);
    store(cluster.file, blocks);
    fmt::print("Zipf over 2^22, 2^24 accesses: ranks, bytes by the formula, then as measured\n");
    for (unsigned ranks : {2u, 4u, 8u, 16u}) {
        std::uint64_t sum = 0, most = 0;
        std::vector<bool> seen(std::size_t{1} << 22);
        std::uint64_t distinct = 0;
        for (unsigned rank = ranks; rank-- > 1;) {  // D(k): in part k and all after it
            for (std::size_t i = blocks.size() * rank / ranks; i < blocks.size() * (rank + 1) / ranks;
                 ++i)
                if (!seen[blocks[i]]) {
                    seen[blocks[i]] = true;
                    ++distinct;
                }
            sum += 8 * distinct;
            most = 8 * distinct;
        }
        const std::string output = cluster.file + ".json";
        if (cluster_seconds(cluster.program, cluster.file, ranks, output) == 0) continue;
        std::ifstream read(output);
        const std::string json((std::istreambuf_iterator<char>(read)), {});
        const std::size_t note = json.find("which sent each other");
        fmt::print("{:3}  {} (at most {} by one)  {}\n", ranks, sum, most,
                   note == json.npos ? "no note" : json.substr(note, json.find('"', note) - note));
        std::filesystem::remove(output);
    }
}

}  // namespace

int main(int count, char** values) {
    std::vector<std::string> rest(values + 1, values + count);
    std::string what = "threads";
    constexpr std::string_view kOthers[] = {"ranks", "volume", "beside", "lengths"};
    if (!rest.empty() && std::ranges::find(kOthers, rest[0]) != std::end(kOthers)) {
        what = rest[0];
        rest.erase(rest.begin());
    }
    const std::size_t accesses = std::size_t{1} << (rest.empty() ? 25 : std::atoi(rest[0].c_str()));
    std::vector<unsigned> counts;
    for (std::size_t i = 1; i < rest.size(); ++i)
        counts.push_back(static_cast<unsigned>(std::atoi(rest[i].c_str())));
    if (counts.empty()) counts = {thread_count(0)};
    if (what == "threads") {
        bench_threads(accesses, counts);
        return 0;
    }
    if (what == "beside") {
        bench_beside(accesses, counts);
        return 0;
    }
    if (what == "lengths") {
        bench_lengths(accesses, counts);
        return 0;
    }
    const Cluster cluster = find_cluster(values[0]);
    if (!cluster.works) {
        fmt::print("ranks: skipped, mpirun or the program is not there\n");
        return 0;
    }
    if (what == "ranks")
        bench_ranks(cluster, accesses, counts);
    else
        bench_volume(cluster);
    std::filesystem::remove(cluster.file);
    return 0;
}
