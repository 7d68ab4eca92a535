// The program by the clock: what a user gets of the engines' speed.
//
//     bench_commands PROGRAM [LOG2_ACCESSES]     the table of docs/benchmarks.md, two to five minutes
//     bench_commands PROGRAM gpu [LOG2_ACCESSES] its table of the GPU; the first has it too, with 2^30
//                                                accesses, where there is one
//     bench_commands PROGRAM guard BOUNDS        ratios against the bounds in that file, two minutes
//     bench_commands PROGRAM check BOUNDS        memory and passes over the data, seconds: these do not
//                                                depend on an idle machine and are part of make check
//
// Traces are written to a temporary folder and read once, so that they are in the page cache. Of
// several runs the fastest counts. Ratios are taken within this run. Status 1: a bound does not hold.
// Programs are compiled by the revisit-clang beside PROGRAM; without it, what needs them is left out.
#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <stdexcept>
#include <thread>

#include "parallel_traces.h"
#include "revisit/revisit.h"

namespace {

using namespace revisit;

double now() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

[[noreturn]] void give_up(const std::string& why) {
    throw std::runtime_error(why);  // and not exit: traces of gigabytes are removed
}

struct Ran {
    double seconds = 0;
    double peak_bytes = 0;
    double read_bytes = 0;  // by system calls
};

// The peak of a child is at least that of its parent, which is reset to the memory it has now (5): keep
// that small.
Ran run(std::vector<std::string> arguments) {
    std::vector<char*> list;
    for (std::string& one : arguments) list.push_back(one.data());
    list.push_back(nullptr);
    posix_spawn_file_actions_t files;
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    std::ofstream("/proc/self/clear_refs") << 5;
    Ran ran;
    pid_t child = 0;
    // Not fork: copying the page tables of a process that holds a trace takes 29 ms.
    const double begin = now();
    if (posix_spawn(&child, list[0], &files, nullptr, list.data(), environ) != 0)
        give_up(fmt::format("cannot start {}", arguments[0]));
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
        const std::vector<std::uint32_t> sizes(suffix.starts_with("u64") ? 0 : addresses.size(), 8);
        if (!writer || !(*writer)->write({addresses, {}, sizes, {}, {}}) || !(*writer)->finish({}))
            give_up("cannot write " + path);
        return path;
    }
    // For traces that are larger than memory may be.
    std::string make_and_store(const char* kind, std::uint64_t count, const char* suffix) const {
        const auto traces = bench::parallel_traces();
        const auto trace = std::ranges::find(traces, kind, &bench::TraceKind::name);
        const std::string path = folder_ + "/trace." + suffix;
        auto writer = create_trace(path);
        if (trace == traces.end() || !writer) give_up(fmt::format("cannot write {}", path));
        std::vector<std::uint64_t> part;
        for (std::uint64_t done = 0; done < count; done += part.size()) {
            part.resize(std::min<std::uint64_t>(count - done, std::uint64_t{1} << 24));
            constexpr std::size_t kTask = std::size_t{1} << 16;
            parallel_for(std::max(1u, std::thread::hardware_concurrency()),
                         (part.size() + kTask - 1) / kTask, [&](std::size_t task) {
                             const std::size_t end = std::min(part.size(), (task + 1) * kTask);
                             for (std::size_t i = task * kTask; i < end; ++i)
                                 part[i] = trace->block(done + i) * 64;
                         });
            if (!(*writer)->write({part, {}, {}, {}, {}})) give_up("cannot write " + path);
        }
        if (!(*writer)->finish({})) give_up("cannot write " + path);
        return path;
    }
    Ran on_gpu(const std::string& trace, const char* granularity) const {
        return fastest(3, {program_, "analyze", "--quiet", "--json", "--no-sites", "--device", "gpu",
                           "--granularity", granularity, trace});
    }
    // Of the whole command, the fastest.
    Ran command(const std::string& trace, unsigned threads, int runs = 2) const {
        return fastest(runs, {program_, "analyze", "--quiet", "--json", "--no-sites", "--granularity",
                              "64", "--threads", std::to_string(threads), trace});
    }
    static Ran fastest(int runs, const std::vector<std::string>& command) {
        Ran best{1e9, 0, 0};
        for (int i = 0; i < runs; ++i)
            if (const Ran ran = run(command); ran.seconds < best.seconds) best = ran;
        return best;
    }
    // One of the examples, built for recording; empty without the plug-in.
    std::string build_example(const std::string& name) const {
        const auto folder = std::filesystem::path(program_).parent_path();
        const std::string compiler = (folder / "revisit-clang").string();
        if (!std::filesystem::exists(folder / "lib/revisit/revisit-clang.so")) return {};
        const std::string out = folder_ + "/" + name;
        run({compiler, "-O2", std::string(BENCH_EXAMPLES) + "/" + name + ".c", "-o", out, "-lm"});
        return out;
    }
    Ran profile(const std::vector<std::string>& options, const std::vector<std::string>& program,
                int runs) const {
        std::vector<std::string> command{program_,  "profile",  "--via",
                                         "clang",   "--method", "exact",
                                         "--quiet", "-o",       folder_ + "/profile.json"};
        command.insert(command.end(), options.begin(), options.end());
        command.push_back("--");
        command.insert(command.end(), program.begin(), program.end());
        return fastest(runs, command);
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

constexpr double kMiB = 1 << 20;

// What does not depend on how busy the machine is.
void check(const Bench& bench, Bounds& bounds) {
    for (const char* format : {"u64", "records", "rvt", "lackey"}) {
        std::string path;
        {
            // 2^16 blocks, so that the engine takes next to nothing.
            auto near = bench.make("uniform 2^20", std::size_t{1} << 22);
            for (std::uint64_t& address : near) address &= (1u << 22) - 1;
            path = bench.store(near, format);
        }
        const auto size = static_cast<double>(std::filesystem::file_size(path));
        for (unsigned threads : {1u, 2u}) {
            const Ran ran = bench.command(path, threads, 1);
            bounds.hold(fmt::format("{}-threads-{}-MiB", format, threads), ran.peak_bytes / kMiB);
            bounds.hold(fmt::format("{}-threads-{}-passes", format, threads), ran.read_bytes / size);
        }
    }
    const std::string spmv = bench.build_example("spmv");
    if (spmv.empty()) return;
    const Ran ran = bench.profile({"--threads", "2"}, {spmv, "random", "100000", "2"}, 1);
    bounds.hold("profile-spmv-MiB", ran.peak_bytes / kMiB);
}

void guard(const Bench& bench, Bounds& bounds) {
    for (const char* kind : {"uniform 2^20", "zipf 2^24"}) {
        const std::string name = std::string(kind).substr(0, std::string(kind).find(' '));
        const auto addresses = bench.make(kind, std::size_t{1} << 26);
        const double engine = Bench::engine(addresses, 1);
        for (const char* format : {"u64", "records", "rvt"}) {
            const std::string path = bench.store(addresses, format);
            const double one = bench.command(path, 1).seconds;
            bounds.hold(fmt::format("{}-{}-command-over-engine", name, format), engine / one);
            bounds.hold(fmt::format("{}-{}-two-threads", name, format),
                        one / bench.command(path, 2).seconds);
            std::filesystem::remove(path);
        }
        const std::vector<std::uint64_t> start(addresses.begin(), addresses.begin() + (1 << 20));
        EngineOptions options;
        const double begin = now();
        if (!analyze(start, "olken", options)) give_up("olken failed");
        const double olken = (now() - begin) / static_cast<double>(start.size());
        bounds.hold(name + "-engine-over-olken",
                    olken / (engine / static_cast<double>(addresses.size())));
    }
    const auto addresses = bench.make("matrix multiply 512", std::size_t{1} << 23);
    const double engine = Bench::engine(addresses, 1);
    for (const char* format : {"lackey", "din", "csv"}) {
        const std::string path = bench.store(addresses, format);
        bounds.hold(fmt::format("{}-two-threads-over-engine", format),
                    engine / bench.command(path, 2, 3).seconds);
    }
    const std::string matmul = bench.build_example("matmul");
    if (matmul.empty()) return;
    const double native = Bench::fastest(3, {matmul, "ijk", "400"}).seconds;
    bounds.hold(
        "profile-over-native",
        bench.profile({"--no-sites", "--no-pairs"}, {matmul, "ijk", "400"}, 2).seconds / native);
    bounds.hold("profile-sites-over-native",
                bench.profile({}, {matmul, "ijk", "400"}, 2).seconds / native);
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
            // In turn, so that a machine that slows down slows down both.
            const int runs = length < 20 ? 41 : length < 24 ? 15 : 5;
            double one = 1e9, many = 1e9;
            for (int i = 0; i < runs; ++i) {
                one = std::min(one, bench.command(path, 1, 1).seconds);
                many = std::min(many, bench.command(path, cores, 1).seconds);
            }
            fmt::print("  2^{} {:.2f}", length, one / many);
            std::fflush(stdout);
        }
        fmt::print("\n");
    }
    fmt::print("\ntext and packed, {} threads, M accesses/s\n", cores);
    for (const char* format : {"lackey", "din", "csv", "lackey.gz", "lackey.zst", "u64.zst"}) {
        const std::string path =
            bench.store(bench.make("matrix multiply 512", std::size_t{1} << 24), format);
        fmt::print("{:<10} {:.1f}\n", format,
                   static_cast<double>(1 << 24) / bench.command(path, cores).seconds / 1e6);
        std::filesystem::remove(path);
    }
}

void gpu_table(const Bench& bench, unsigned log2) {
    const std::uint64_t count = std::uint64_t{1} << log2;
    const double start = bench.on_gpu(bench.store({0, 64, 0}, "u64"), "64").seconds;
    fmt::print("\n--device gpu, G accesses/s, 2^{} accesses; start-up alone takes {:.3f} s\n", log2,
               start);
    fmt::print("{:<20} {:<7} {:>11} {:>9} {:>8} {:>15}\n", "trace", "format", "granularity", "seconds",
               "with it", "after start-up");
    auto row = [&](const char* kind, const char* format, std::initializer_list<const char*> all) {
        const std::string path = bench.make_and_store(kind, count, format);
        for (const char* granularity : all) {
            const double seconds = bench.on_gpu(path, granularity).seconds;
            fmt::print("{:<20} {:<7} {:>11} {:>9.3f} {:>8.2f} {:>15.2f}\n", kind, format, granularity,
                       seconds, static_cast<double>(count) / seconds / 1e9,
                       static_cast<double>(count) / (seconds - start) / 1e9);
            std::fflush(stdout);
        }
        std::filesystem::remove(path);
    };
    row("uniform 2^20", "u64", {"64", "1"});
    row("zipf 2^24", "u64", {"64", "1"});
    row("matrix multiply 512", "rvt", {"64"});
}

}  // namespace

int main(int argc, char** argv) try {
    if (argc < 2)
        give_up(
            "usage: bench_commands PROGRAM [LOG2_ACCESSES | gpu [LOG2_ACCESSES] | guard BOUNDS | check "
            "BOUNDS]");
    const Bench bench(argv[1]);
    const std::string_view what = argc > 2 ? argv[2] : "26";
    if (what == "guard" || what == "check") {
        if (argc < 4) give_up("expected the file of bounds");
        Bounds bounds(argv[3]);
        // First: a process that is started begins with the peak of the one that started it, and traces
        // are large.
        check(bench, bounds);
        if (what == "guard") guard(bench, bounds);
        return bounds.status();
    }
    if (what == "gpu") {
        gpu_table(bench, static_cast<unsigned>(std::atoi(argc > 3 ? argv[3] : "30")));
        return 0;
    }
    table(bench, static_cast<unsigned>(std::atoi(argc > 2 ? argv[2] : "26")));
    // Without asking CUDA: a process that has the device open makes the start of others quicker.
    if (std::filesystem::exists("/dev/nvidia0")) gpu_table(bench, 30);
} catch (const std::exception& failure) {
    fmt::print(stderr, "bench_commands: {}\n", failure.what());
    return 2;
}
