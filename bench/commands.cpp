// The program by the clock: what a user gets of the engines' speed.
//
//     bench_commands PROGRAM [LOG2_ACCESSES]     the table of docs/benchmarks.md, two to five minutes
//     bench_commands PROGRAM guard BOUNDS        ratios against the bounds in that file, under three
//     minutes bench_commands PROGRAM check BOUNDS        those that do not depend on an idle machine,
//     seconds
//
// Traces are written to a temporary folder and read once, so that they are in the page cache. Of two
// runs the faster counts. Ratios are taken within this run. Status 1: a bound does not hold.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <thread>

#include "parallel_traces.h"
#include "revisit/revisit.h"

namespace {

using namespace revisit;

double now() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

[[noreturn]] void give_up(const std::string& why) {
    fmt::print(stderr, "bench_commands: {}\n", why);
    std::exit(2);
}

struct Ran {
    double seconds = 0;
    double peak_bytes = 0;
    double read_bytes = 0;  // by system calls
};

Ran run(std::vector<std::string> arguments) {
    std::vector<char*> list;
    for (std::string& one : arguments) list.push_back(one.data());
    list.push_back(nullptr);
    Ran ran;
    const double begin = now();
    const pid_t child = fork();
    if (child == 0) {
        const int nowhere = open("/dev/null", O_WRONLY);
        dup2(nowhere, STDOUT_FILENO);
        execv(list[0], list.data());
        _exit(127);
    }
    siginfo_t ended;
    waitid(P_PID, static_cast<id_t>(child), &ended, WEXITED | WNOWAIT);
    ran.seconds = now() - begin;
    std::ifstream io(fmt::format("/proc/{}/io", child));
    for (std::string key; io >> key;)
        if (double value; io >> value && key == "rchar:") ran.read_bytes = value;
    int status = 0;
    rusage usage{};
    wait4(child, &status, 0, &usage);
    ran.peak_bytes = static_cast<double>(usage.ru_maxrss) * 1024;
    if (status != 0) give_up(fmt::format("{} failed", fmt::join(arguments, " ")));
    return ran;
}

class Bench {
 public:
    explicit Bench(std::string program) : program_(std::move(program)) {
        char name[] = "/tmp/revisit-bench-XXXXXX";
        folder_ = mkdtemp(name);
    }
    ~Bench() { std::filesystem::remove_all(folder_); }

    std::vector<std::uint64_t> make(const char* kind, std::size_t count) const {
        for (const bench::TraceKind& trace : bench::parallel_traces()) {
            if (trace.name != kind) continue;
            std::vector<std::uint64_t> addresses(count);
            for (std::size_t i = 0; i < count; ++i) addresses[i] = trace.block(i) * 64;
            return addresses;
        }
        give_up(fmt::format("no trace {}", kind));
    }
    std::string store(const std::vector<std::uint64_t>& addresses, const std::string& suffix) const {
        const std::string path = folder_ + "/trace." + suffix;
        auto writer = create_trace(path);
        const std::vector<std::uint32_t> sizes(suffix == "u64" ? 0 : addresses.size(), 8);
        if (!writer || !(*writer)->write({addresses, {}, sizes, {}, {}}) || !(*writer)->finish({}))
            give_up("cannot write " + path);
        return path;
    }
    // Of the whole command, the faster of two.
    Ran command(const std::string& trace, unsigned threads, int runs = 2) const {
        Ran best{1e9, 0, 0};
        for (int i = 0; i < runs; ++i) {
            const Ran ran = run({program_, "analyze", "--quiet", "--json", "--no-sites",
                                 "--granularity", "64", "--threads", std::to_string(threads), trace});
            if (ran.seconds < best.seconds) best = ran;
        }
        return best;
    }
    static double engine(const std::vector<std::uint64_t>& addresses, unsigned threads) {
        double best = 1e9;
        for (int i = 0; i < 2; ++i) {
            EngineOptions options;
            options.threads = threads;
            const double begin = now();
            if (!analyze(addresses, "exact", options)) give_up("the engine failed");
            best = std::min(best, now() - begin);
        }
        return best;
    }

 private:
    std::string program_, folder_;
};

// Names and what they must not be under (">=") or over ("<=").
class Bounds {
 public:
    explicit Bounds(const std::string& path) {
        std::ifstream in(path);
        if (!in) give_up("cannot read " + path);
        for (std::string line; std::getline(in, line);) {
            std::istringstream words(line);
            std::string name, relation;
            double bound;
            if (line.starts_with('#') || !(words >> name >> relation >> bound)) continue;
            bounds_[name] = {relation == ">=", bound};
        }
    }
    void hold(const std::string& name, double value) {
        const auto found = bounds_.find(name);
        if (found == bounds_.end()) give_up("no bound for " + name);
        const auto [at_least, bound] = found->second;
        const bool good = at_least ? value >= bound : value <= bound;
        broken_ |= !good;
        fmt::print("{:<36} {:8.3f}   {} {:g}{}\n", name, value, at_least ? ">=" : "<=", bound,
                   good ? "" : "   BROKEN");
        std::fflush(stdout);
    }
    int status() const { return broken_ ? 1 : 0; }

 private:
    std::map<std::string, std::pair<bool, double>> bounds_;
    bool broken_ = false;
};

// What does not depend on how busy the machine is.
void check(const Bench& bench, Bounds& bounds) {
    const auto addresses = bench.make("scan 2^22", std::size_t{1} << 24);
    std::vector<std::uint64_t> near = addresses;
    for (std::uint64_t& address : near) address &= (1u << 20) - 1;
    for (const char* format : {"u64", "records", "rvt"}) {
        const std::string path = bench.store(near, format);
        const auto size = static_cast<double>(std::filesystem::file_size(path));
        for (unsigned threads : {1u, 2u}) {
            const Ran ran = bench.command(path, threads, 1);
            bounds.hold(fmt::format("{}-threads-{}-MiB", format, threads), ran.peak_bytes / (1 << 20));
            if (std::string_view(format) != "rvt")
                bounds.hold(fmt::format("{}-threads-{}-passes", format, threads),
                            ran.read_bytes / size);
        }
    }
}

void guard(const Bench& bench, Bounds& bounds) {
    for (const char* kind : {"uniform 2^20", "zipf 2^24"}) {
        const std::string name = std::string(kind).substr(0, std::string(kind).find(' '));
        const auto addresses = bench.make(kind, std::size_t{1} << 25);
        const std::string path = bench.store(addresses, "u64");
        const double engine = Bench::engine(addresses, 1), one = bench.command(path, 1).seconds;
        bounds.hold(name + "-command-over-engine", engine / one);
        bounds.hold(name + "-two-threads", one / bench.command(path, 2).seconds);
        const std::vector<std::uint64_t> start(addresses.begin(), addresses.begin() + (1 << 20));
        EngineOptions options;
        const double begin = now();
        if (!analyze(start, "olken", options)) give_up("olken failed");
        const double olken = (now() - begin) / static_cast<double>(start.size());
        bounds.hold(name + "-engine-over-olken",
                    olken / (engine / static_cast<double>(addresses.size())));
    }
}

void table(const Bench& bench, unsigned log2) {
    const std::size_t count = std::size_t{1} << log2;
    const auto accesses = static_cast<double>(count);
    const unsigned cores = std::max(2u, std::thread::hardware_concurrency());
    fmt::print("M accesses/s by the clock, 2^{} accesses, files in the page cache\n", log2);
    fmt::print("{:<14} {:<8} {:>9} {:>9} {:>8} {:>9} {:>9}\n", "trace", "format", "engine", "1 thread",
               "ratio", fmt::format("{}", cores), "speed-up");
    for (const char* kind : {"uniform 2^20", "zipf 2^24", "matrix multiply 512"}) {
        const auto addresses = bench.make(kind, count);
        const double engine = Bench::engine(addresses, 1), all = Bench::engine(addresses, cores);
        fmt::print("{:<14.14} {:<8} {:>9.1f} {:>9} {:>8} {:>9.1f} {:>9.2f}\n", kind, "memory",
                   accesses / engine / 1e6, "", "", accesses / all / 1e6, engine / all);
        for (const char* format : {"u64", "records", "rvt"}) {
            const std::string path = bench.store(addresses, format);
            const double one = bench.command(path, 1).seconds;
            const double many = bench.command(path, cores).seconds;
            fmt::print("{:<14.14} {:<8} {:>9} {:>9.1f} {:>8.2f} {:>9.1f} {:>9.2f}\n", kind, format, "",
                       accesses / one / 1e6, engine / one, accesses / many / 1e6, one / many);
            std::fflush(stdout);
            std::filesystem::remove(path);
        }
    }
    fmt::print("\nu64, {} threads over one, by length\n", cores);
    for (const char* kind : {"uniform 2^20", "zipf 2^24"}) {
        fmt::print("{:<14.14}", kind);
        for (unsigned length = 12; length < log2; length += 2) {
            const std::string path = bench.store(bench.make(kind, std::size_t{1} << length), "u64");
            const int runs = length < 22 ? 9 : 3;
            fmt::print("  2^{} {:.2f}", length,
                       bench.command(path, 1, runs).seconds / bench.command(path, cores, runs).seconds);
            std::fflush(stdout);
        }
        fmt::print("\n");
    }
    fmt::print("\ntext, {} threads, M accesses/s\n", cores);
    for (const char* format : {"lackey", "din", "csv"}) {
        const std::string path =
            bench.store(bench.make("matrix multiply 512", std::size_t{1} << 24), format);
        fmt::print("{:<8} {:.1f}\n", format,
                   static_cast<double>(1 << 24) / bench.command(path, cores).seconds / 1e6);
    }
}

}  // namespace

int main(int argc, char** argv) {
    if (argc < 2)
        give_up("usage: bench_commands PROGRAM [LOG2_ACCESSES | guard BOUNDS | check BOUNDS]");
    const Bench bench(argv[1]);
    const std::string_view what = argc > 2 ? argv[2] : "26";
    if (what == "guard" || what == "check") {
        if (argc < 4) give_up("expected the file of bounds");
        Bounds bounds(argv[3]);
        if (what == "guard") guard(bench, bounds);
        check(bench, bounds);
        return bounds.status();
    }
    table(bench, static_cast<unsigned>(std::atoi(argv[2] != nullptr ? argv[2] : "26")));
}
