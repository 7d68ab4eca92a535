// The recorders as users meet them: programs run by `revisit profile` and `revisit record`.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "record/launch.h"
#include "revisit/profile.h"

namespace revisit {
namespace {

namespace fs = std::filesystem;

struct Ran {
    int status = 0;
    std::string out, err;
};

std::string slurp(const fs::path& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
}

class RecordProgram : public ::testing::Test {
 protected:
    void SetUp() override {
        char name[] = "/tmp/revisit-record-XXXXXX";
        folder_ = mkdtemp(name);
        fs::path libexec = fs::path(REVISIT_PROGRAM).parent_path() / "libexec/revisit";
        setenv("REVISIT_LIBEXEC", libexec.c_str(), 1);
        if (auto parts = record::find_valgrind(); !parts) GTEST_SKIP() << parts.error().sentence();
    }
    void TearDown() override { fs::remove_all(folder_); }

    // Runs a shell line in the test's own folder; $R is the program.
    Ran run(const std::string& line) const {
        std::string command = "cd " + folder_.string() + " && R=" REVISIT_PROGRAM "; (" + line +
                              ") >.out 2>.err </dev/null";
        int status = std::system(command.c_str());
        return {WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status),
                slurp(folder_ / ".out"), slurp(folder_ / ".err")};
    }
    void write(const std::string& name, const std::string& text) const {
        std::ofstream(folder_ / name) << text;
    }
    void compile(const std::string& name, const std::string& source) const {
        write(name + ".c", source);
        Ran made = run("cc -O1 -g -fno-inline -pthread " + name + ".c -o " + name);
        ASSERT_EQ(made.status, 0) << made.err;
    }
    Profile profile(const std::string& name) const {
        auto loaded = load_profile(folder_ / name);
        EXPECT_TRUE(loaded) << loaded.error().sentence();
        return loaded ? *loaded : Profile{};
    }

    fs::path folder_;
};

// What a return adds to a function's own accesses: x86_64 reads the return address from the stack,
// aarch64 has it in a register.
#if defined(__x86_64__)
constexpr double kReturnReads = 1;
#else
constexpr double kReturnReads = 0;
#endif

// Accesses of a function counted by hand: 1000 × (load, load, store), one after the other.
constexpr const char* kTriad = R"(
#include <stdio.h>
static long a[1000] __attribute__((aligned(64))), b[1000] __attribute__((aligned(64))), c[1000] __attribute__((aligned(64)));
void triad(void) { for (int i = 0; i < 1000; i++) { long x = *(volatile long*)&b[i], y = *(volatile long*)&c[i]; *(volatile long*)&a[i] = x + y; } }
int main(void) { triad(); puts("done"); return 7; }
)";

TEST_F(RecordProgram, output_and_status_are_the_programs_own) {
    Ran ran =
        run("$R profile --method exact -o p.json -- sh -c 'echo to out; echo to err >&2; exit 3'");
    EXPECT_EQ(ran.status, 3);
    EXPECT_EQ(ran.out, "to out\n");
    EXPECT_NE(ran.err.find("to err\n"), std::string::npos);
    EXPECT_NE(ran.err.find("revisit report p.json"), std::string::npos);
    Profile p = profile("p.json");
    EXPECT_GT(p.accesses, 10000);
    EXPECT_EQ(p.reuse.total(), p.accesses);
}

TEST_F(RecordProgram, function_has_the_accesses_its_source_has) {
    compile("triad", kTriad);
    Ran ran = run("$R profile --quiet --function triad -o p.json -- ./triad");
    EXPECT_EQ(ran.status, 7);
    EXPECT_EQ(ran.out, "done\n");
    EXPECT_EQ(ran.err, "");
    Profile p = profile("p.json");
    EXPECT_EQ(p.accesses, 3000 + kReturnReads);
    EXPECT_EQ(p.distinct, 375 + kReturnReads);  // 3 × 1000 × 8 bytes, and the stack
    double writes = 0;
    for (const Site& site : p.sites) {
        EXPECT_EQ(site.frame.function, "triad");
        EXPECT_EQ(fs::path(site.frame.file).filename(), "triad.c");
        EXPECT_EQ(site.frame.line, 4u);
        writes += site.writes;
    }
    EXPECT_EQ(writes, 1000);
}

TEST_F(RecordProgram, trace_gives_the_profile_that_profiling_gives) {
    compile("triad", kTriad);
    EXPECT_EQ(run("$R record --quiet --function triad -o t.rvt -- ./triad").status, 7);
    Ran analyzed = run("$R analyze --method olken --quiet -o a.json t.rvt");
    EXPECT_EQ(analyzed.status, 0) << analyzed.err;
    EXPECT_EQ(run("$R profile --method olken --quiet --function triad -o p.json -- ./triad").status, 7);
    Profile a = profile("a.json"), p = profile("p.json");
    EXPECT_EQ(a.reuse, p.reuse);
    EXPECT_EQ(a.command, p.command);
    ASSERT_EQ(a.sites.size(), p.sites.size());
    for (std::size_t i = 0; i < a.sites.size(); i++) {
        EXPECT_EQ(a.sites[i].frame, p.sites[i].frame);
        EXPECT_EQ(a.sites[i].reuse, p.sites[i].reuse);
    }
    EXPECT_EQ(a.pairs.size(), p.pairs.size());
}

TEST_F(RecordProgram, data_objects_and_call_paths_are_told_apart) {
    compile("objects", R"(
#include <stdlib.h>
int table[4096];
int fill(int* to, int n) { for (int i = 0; i < n; i++) ((volatile int*)to)[i] = i; return to[n - 1]; }
int one(void) { int* block = malloc(4000); int x = fill(block, 1000); free(block); return x; }
int two(void) { return fill(table, 4096); }
int main(void) { return one() + two() == 999 + 4095 ? 0 : 1; }
)");
    ASSERT_EQ(run("$R profile --method exact --quiet -o p.json -- ./objects").status, 0);
    Profile p = profile("p.json");
    double table = 0, block = 0;
    for (const Object& object : p.objects) {
        if (object.kind == "global" && object.name.starts_with("table")) table += object.accesses;
        if (object.kind == "heap" && object.name == "one (objects.c:5)") {
            block += object.accesses;
            EXPECT_EQ(object.bytes, 4000u);
        }
    }
    EXPECT_EQ(table, 4097);
    EXPECT_EQ(block, 1001);
    std::vector<std::string> callers;
    for (const Pair& pair : p.pairs)
        for (std::uint32_t at = pair.reuse_context; at != 0; at = p.contexts[at].parent)
            if (p.contexts[at].frame.function == "one" || p.contexts[at].frame.function == "two") {
                callers.push_back(p.contexts[at].frame.function);
                EXPECT_EQ(p.contexts[p.contexts[at].parent].frame.function, "main");
            }
    EXPECT_NE(std::ranges::find(callers, "one"), callers.end());
    EXPECT_NE(std::ranges::find(callers, "two"), callers.end());
}

TEST_F(RecordProgram, child_processes_are_in_one_profile_led_by_the_program_that_did_the_work) {
    const std::string source = R"(
#include <sys/wait.h>
#include <unistd.h>
static volatile int data[50000];
void work(int n) { for (int i = 0; i < n; i++) data[i] = i; }
int main(int count, char** words) {
    if (fork() == 0) {
        if (count > 1) execv(words[1], words + 1);
        work(50000);
        _exit(0);
    }
    wait(0);
    work(100);
    return 0;
}
)";
    compile("family", source);
    compile("starter", source);
    auto accesses_by_process = [](const Profile& of) {
        std::vector<std::pair<std::string, double>> all;
        for (const ProcessSummary& one : of.processes)
            all.emplace_back(one.command.empty() ? "" : one.command[0], one.accesses);
        std::ranges::sort(all);
        return all;
    };
    using List = std::vector<std::pair<std::string, double>>;
    // Processes of one program are summed, and each is listed.
    ASSERT_EQ(run("$R profile --quiet --function work -o p.json -- ./family").status, 0);
    EXPECT_EQ(profile("p.json").accesses, 50100 + 2 * kReturnReads);
    EXPECT_EQ(accesses_by_process(profile("p.json")),
              (List{{"./family", 100 + kReturnReads}, {"./family", 50000 + kReturnReads}}));
    EXPECT_EQ(profile("p.json").command, (std::vector<std::string>{"./family"}));
    // The child knows its parent, in the file as in the program.
    auto processes = profile("p.json").processes;
    ASSERT_EQ(processes.size(), 2u);
    std::ranges::sort(processes, {}, &ProcessSummary::accesses);
    EXPECT_EQ(processes[1].parent, processes[0].pid);
    EXPECT_NE(processes[0].parent, processes[1].pid);
    // Another program that did more leads, whoever started it; --follow takes both.
    for (std::string follow : {"", "--follow "}) {
        ASSERT_EQ(
            run("$R profile --quiet --function work " + follow + "-o all.json -- ./starter ./family")
                .status,
            0);
        Profile all = profile("all.json");
        EXPECT_EQ(all.accesses, follow.empty() ? 50100 + 2 * kReturnReads : 50200 + 3 * kReturnReads);
        EXPECT_EQ(all.processes.size(), 4u);  // the fork of the starter, too, before it is the family
        if (follow.empty()) EXPECT_EQ(all.command, (std::vector<std::string>{"./family"}));
    }
    EXPECT_EQ(run("ls *.json").out, "all.json\np.json\n");
    ASSERT_EQ(
        run("$R profile --quiet --no-children --function work -o own.json -- ./starter ./family && "
            "$R merge --quiet p.json own.json -o sum.json")
            .status,
        0);
    EXPECT_EQ(profile("own.json").accesses, 100 + kReturnReads);
    EXPECT_TRUE(profile("own.json").processes.empty());
    EXPECT_EQ(profile("sum.json").reuse, profile("all.json").reuse);
}

TEST_F(RecordProgram, limits_end_the_program_and_regions_cut_it_out) {
    compile("loop", "int main(void) { volatile int x = 0; for (;;) x++; }");
    Ran ran = run("$R profile --quiet --granularity 1 --max-accesses 1M -o p.json -- ./loop");
    EXPECT_EQ(ran.status, 0) << ran.err;
    EXPECT_EQ(profile("p.json").accesses, 1e6);
    // On a busy machine valgrind may take longer than this to start.
    double accesses = 0;
    for (std::string duration : {"300ms", "3s", "20s"}) {
        ran = run("$R profile --quiet --duration " + duration + " --method time -o p.json -- ./loop");
        EXPECT_EQ(ran.status, 0) << ran.err;
        if ((accesses = profile("p.json").accesses) > 0) break;
    }
    EXPECT_GT(accesses, 0);
    ran = run("$R profile --region nowhere --max-accesses 1 --duration 300ms -o p.json -- ./loop");
    EXPECT_NE(ran.err.find("region \"nowhere\" was never entered"), std::string::npos) << ran.err;
}

TEST_F(RecordProgram, killed_analyzer_leaves_the_program_running_to_its_end) {
    // It is killed once the program runs, and the program works on after that, however fast or busy
    // the machine is.
    compile("busy", R"(
#include <stdio.h>
#include <unistd.h>
int main(void) {
    volatile long x = 0;
    pid_t parent = getppid();
    puts("begun");
    fflush(stdout);
    for (int left = 20; left > 0; left -= getppid() != parent)
        for (long i = 0; i < 1000000; i++) x += i;
    puts("whole");
}
)");
    Ran ran =
        run("until_is() { for i in $(seq 1200); do grep -q $1 .out && break; sleep 0.1; done; }; "
            "$R profile --method exact -o p.json -- ./busy & until_is begun; kill -KILL $!; "
            "until_is whole; wait");
    EXPECT_EQ(ran.out, "begun\nwhole\n");
    EXPECT_NE(ran.err.find("the analyzer is gone"), std::string::npos) << ran.err;
}

TEST_F(RecordProgram, end_by_signal_is_passed_on_with_a_complete_profile) {
    compile("crash",
            "#include <signal.h>\nint main(void) { volatile int x[100]; for (int i = 0; i < 100; i++) "
            "x[i] = i;\n"
            "raise(SIGKILL); return x[3]; }\n");
    Ran ran = run("$R profile --method exact --quiet -o p.json -- ./crash");
    EXPECT_EQ(ran.status, 128 + SIGKILL);
    Profile p = profile("p.json");
    double seen = 0;
    for (const Site& site : p.sites)
        if (site.frame.function == "main") seen += site.writes;
    EXPECT_GE(seen, 100);
}

TEST_F(RecordProgram, folders_of_the_path_that_may_not_be_entered_are_passed_over) {
    if (getuid() != 0) GTEST_SKIP() << "needs root to become another user";
    if (run("setpriv --version").status != 0) GTEST_SKIP() << "needs setpriv";
    if (run("setpriv --reuid 65534 --regid 65534 --clear-groups $R --version").status != 0)
        GTEST_SKIP() << "another user cannot reach the build";
    Ran ran =
        run("mkdir -m 700 closed; PATH=$PWD/closed:$PATH setpriv --reuid 65534 --regid 65534 "
            "--clear-groups $R doctor");
    EXPECT_EQ(ran.status, 0) << ran.err;
    EXPECT_EQ(ran.err, "");
}

TEST_F(RecordProgram, what_cannot_run_is_told_in_one_line) {
    write("text", "no program\n");
    struct {
        const char *line, *message;
    } cases[] = {
        {"$R profile -- ./missing", "program not found"},
        {"$R profile -- no-such-program-anywhere", "program not found"},
        {"$R profile -- ./text", "is not executable"},
        {"$R profile -- /tmp", "is a directory"},
        {"$R profile --via clang -- ls", "was not built with the compiler plug-in"},
        {"PATH=/nowhere $R profile --method exact -- /bin/ls", "valgrind is not installed"},
        {"$R profile --duration soon -- ls", "expected a time"},
        {"$R record -o /dev/full -- ls", "No space left"},
        {"cp /bin/true foreign && printf '\\003\\000' | dd of=foreign bs=1 seek=18 conv=notrunc && $R "
         "profile -- ./foreign",
         "is a program for"},
    };
    for (const auto& [line, message] : cases) {
        Ran ran = run(line);
        EXPECT_EQ(ran.status, 2) << line << "\n" << ran.err;
        EXPECT_NE(ran.err.find(message), std::string::npos) << line << "\n" << ran.err;
    }
}

}  // namespace
}  // namespace revisit
