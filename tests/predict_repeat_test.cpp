// Runs of which a part stands for the whole (repeat.cpp, replay.cpp, steady_loops.cpp), against the
// whole.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <map>
#include <random>

#include "predict/run/simulate.h"
#include "predict/run/steady_loops.h"

namespace revisit::predict {
namespace {

class Repeating : public ::testing::Test {
 protected:
    void SetUp() override {
        setenv("REVISIT_SLICE", REVISIT_TEST_SLICER, 1);
        if (access(REVISIT_TEST_SLICER, X_OK) != 0) GTEST_SKIP() << "built without LLVM 19";
    }
    void TearDown() override { unlink(path_.c_str()); }

    // Compiles `f(int n)`, for n = 85.
    void take(const std::string& text, int level) {
        std::ofstream(path_) << text;
        request_.source = {path_, "f", level, {}};
        request_.parameters = {{"n", 85}};
        request_.granularity = 64;
        request_.bins = Binning::exact();
        auto programs = compile(request_.source, {{}});
        ASSERT_TRUE(programs) << programs.error().sentence() << text;
        program_ = std::move(programs->front());
    }
    std::optional<Repetition> part() {
        auto found = simulate_repeating(program_, request_.parameters, request_, Deadline(),
                                        std::uint64_t{1} << 40);
        EXPECT_TRUE(found);
        return found ? std::move(*found) : std::nullopt;
    }
    // Every bin, site and pair.
    void expect_whole(const Simulation& run, const std::string& text) {
        const auto whole = simulate(program_, request_.parameters, request_, request_.bins, Deadline(),
                                    std::uint64_t{1} << 40);
        ASSERT_TRUE(whole);
        const Profile &a = run.profile, &b = whole->profile;
        EXPECT_EQ(a.reuse, b.reuse) << text;
        EXPECT_EQ(a.accesses, b.accesses) << text;
        ASSERT_EQ(a.sites.size(), b.sites.size()) << text;
        for (std::size_t i = 0; i < a.sites.size(); ++i)
            EXPECT_EQ(a.sites[i].reuse, b.sites[i].reuse) << text;
        std::map<std::pair<std::uint32_t, std::uint32_t>, double> pairs;
        for (const Pair& p : a.pairs) pairs[{p.use, p.reuse}] += p.count;
        for (const Pair& p : b.pairs) pairs[{p.use, p.reuse}] -= p.count;
        for (const auto& [key, difference] : pairs) EXPECT_EQ(difference, 0) << text;
    }

    const std::string path_ = ::testing::TempDir() + "revisit_part_" + std::to_string(getpid()) + ".c";
    Request request_;
    Program program_;
};

// Runs that repeat, from a part of them, against all of them: every bin, site and pair.
TEST_F(Repeating, a_part_of_a_run_that_repeats_tells_the_whole) {
    struct Case {
        const char* text;
        bool repeats;
    };
    for (const auto& [text, repeats] : std::initializer_list<Case>{
             // time steps, with something before and after
             {"double A[50][50], B[50][50], s; void f(int n) { for (int i = 0; i < 50; i++) B[i][3] = "
              "1; "
              "for (int t = 0; t < n; t++) { for (int i = 1; i < 49; i++) for (int j = 1; j < 49; j++) "
              "B[i][j] = A[i][j - 1] + A[i + 1][j]; for (int i = 1; i < 49; i++) for (int j = 1; j < "
              "49; "
              "j++) A[i][j] = B[i][j]; } for (int i = 0; i < 50; i++) s += A[7][i]; }",
              true},
             // rows of 50 doubles: the same place in a line after four of them
             {"double A[90][50], B[50][44], C[90][44]; void f(int n) { for (int i = 0; i < n; i++) for "
              "(int k = 0; k < 50; k++) for (int j = 0; j < 44; j++) C[i][j] += A[i][k] * B[k][j]; }",
              true},
             // a row read again twelve iterations later
             {"double A[99][48], C[99][48]; void f(int n) { for (int i = 0; i < n; i++) for (int j = "
              "0; j "
              "< 48; j++) C[i][j] += A[i][j] + A[i + 12][j]; }",
              true},
             // a vector read once an iteration
             {"double A[48][48], v[99]; void f(int n) { for (int t = 0; t < n; t++) for (int i = 0; i "
              "< 48; i++) for (int j = 0; j < 48; j++) A[i][j] += v[t]; }",
              true},
             // the first iteration meets a row that comes much later
             {"double A[99][48], C[99][48]; void f(int n) { for (int i = 0; i < n; i++) for (int j = "
              "0; j < 48; j++) C[i][j] += A[i == 0 ? 82 : i][j]; }",
              false},
             // what moves was touched before the loop
             {"double A[99][48]; void f(int n) { for (int i = 0; i < n; i++) A[i][5] = 1; for (int i = "
              "0; "
              "i < n; i++) for (int k = 0; k < 9; k++) for (int j = 0; j < 48; j++) A[i][j] += k; }",
              true},
             // and is read after it
             {"double A[99][48], s; void f(int n) { for (int i = 0; i < n; i++) for (int k = 0; k < 9; "
              "k++) for (int j = 0; j < 48; j++) A[i][j] += k; for (int i = 0; i < n; i++) s += "
              "A[i][0]; "
              "}",
              true},
             // a triangle does not repeat
             {"double A[99][99]; void f(int n) { for (int i = 0; i < n; i++) for (int j = 0; j < i; "
              "j++) "
              "A[i][j] += A[j][i]; }",
              false},
             // the last iteration is without A, which moves by a quarter of a line every two
             {"double A[99], B[48]; void f(int n) { for (int i = 0; i < n - 1; i++) { for (int j = 0; "
              "j "
              "< 48; j++) B[j] += 1; if (i % 2 == 0) A[i] += 1; } }",
              true},
             // one array moved through at two speeds
             {"double A[9000]; void f(int n) { for (int i = 0; i < n; i++) for (int j = 0; j < 48; "
              "j++) "
              "A[i * 64 + j] += A[i * 32 + j]; }",
              false}}) {
        take(text, 1);
        const auto run = part();
        EXPECT_EQ(run.has_value(), repeats) << text;
        if (!run) continue;
        EXPECT_LT(run->loops.back().shown, 40) << text;
        expect_whole(run->run, text);
    }
}

// What the text shows of a loop, against walking it: the number of iterations, or nothing where they
// may differ.
TEST_F(Repeating, iterations_that_do_the_same_are_read_from_the_text) {
    const std::string step =
        "for (int i = 1; i < 49; i++) for (int j = 1; j < 49; j++) B[i][j] = A[i][j - 1] + A[i + "
        "1][j];";
    struct Case {
        std::string body;
        std::int64_t iterations;  // 0: not shown
    };
    for (const auto& [body, iterations] : std::initializer_list<Case>{
             {"for (int t = 0; t < n; t++) { " + step + " }", 85},
             {"for (int t = 3; t <= n; t += 2) { " + step + " }", 42},
             {"for (int t = n; t-- > 1;) { " + step + " }", 84},
             {"for (int i = 0; i < n / 2; i++) B[1][i] = 1; for (int t = 0; t < n; t++) { " + step +
                  " }",
              85},
             // the step is an index, a bound, a case
             {"for (int t = 0; t < n; t++) { " + step + " A[t % 50][0] = 1; }", 0},
             {"for (int t = 0; t < n; t++) for (int i = 0; i < t % 40; i++) A[i][0] += 1;", 0},
             {"for (int t = 0; t < n; t++) { " + step + " if (t == 60) A[0][0] = 1; }", 0},
             // something else goes from step to step
             {"double *p = A[0], *q = B[0]; for (int t = 0; t < n; t++) { for (int i = 0; i < 2000; "
              "i++) "
              "p[i] += q[i]; double *r = p; p = q; q = r; }",
              0},
             {"int k = 0; for (int t = 0; t < n; t++) { " + step + " A[k][0] = 1; k = (k + 7) % 50; }",
              0},
             {"int k = 9; for (int t = 0; t < n; t++) { for (int i = 0; i < 2000; i++) A[0][i + k] += "
              "1; "
              "k = 2; }",
              0},
             // the data ends it, or the middle of a step
             {"for (int t = 0; t < n; t++) { " + step + " if (A[3][3] > 1) break; }", 0},
             {"for (int t = 0; ; t++) { for (int i = 1; i < 49; i++) A[i][0] += 1; if (t >= n) break; "
              "for "
              "(int i = 1; i < 49; i++) B[i][0] += 1; }",
              0},
             // accesses follow
             {"for (int t = 0; t < n; t++) { " + step + " } for (int i = 0; i < 50; i++) A[7][i] = 1;",
              85},
             {"for (int t = 0; t < n; t++) { " + step + " } A[7][7] = 1;", 85}}) {
        for (const int level : {1, 2}) {
            take("double A[50][50], B[50][50]; void f(int n) { " + body + " }", level);
            const auto steady = steady_loops(program_, request_.parameters, 1000);
            const auto found = std::find_if(steady.begin(), steady.end(), [&](const SteadyLoop& l) {
                return l.iterations == iterations;
            });
            EXPECT_TRUE(found != steady.end() || level == 2 || iterations == 0) << body;
            if (iterations == 0) EXPECT_TRUE(steady.empty()) << body;
            if (found == steady.end()) continue;
            // And what is made of it is the whole.
            const auto run = part();
            ASSERT_TRUE(run) << body;
            const auto repeated =
                std::find_if(run->loops.begin(), run->loops.end(),
                             [&](const Repetition::Loop& l) { return l.iterations == iterations; });
            ASSERT_TRUE(repeated != run->loops.end()) << body;
            EXPECT_EQ(repeated->shown, 0) << body;
            expect_whole(run->run, body);
        }
    }
}

// The compiler writes n - 1 - j as n + ~j: rounds taken at once are the rounds one by one.
TEST_F(Repeating, complements_of_counters_are_strides) {
    for (const char* text :
         {"double A[99][99]; void f(int n) { for (int i = 0; i < n; i++) for (int j = 0; j < i; j++) "
          "A[i][j] += A[j][i - j - 1]; }",
          "double A[9999]; void f(int n) { for (int i = 0; i < n; i++) for (int j = 0; j < 700; j++) "
          "A[(unsigned char)~j] += A[(unsigned short)~(j * 94) & 8191]; }",
          "double A[9999]; void f(int n) { for (int i = 0; i < n; i++) for (long j = n; j > 0; j--) "
          "A[n + ~(j >> 1)] += A[-(~j)]; }"})
        for (const int level : {1, 2}) {
            take(text, level);
            RunOptions options;
            const auto fast = interpret(program_, request_.parameters, options);
            options.stride = false;
            const auto slow = interpret(program_, request_.parameters, options);
            ASSERT_TRUE(fast && slow) << text;
            ASSERT_EQ(fast->accesses.size(), slow->accesses.size()) << text;
            for (std::size_t k = 0; k < fast->accesses.size(); ++k)
                ASSERT_EQ(fast->accesses[k].address, slow->accesses[k].address) << text << k;
        }
}

// Loops in a chain over the same arrays, moved through by rows, columns and elements, up and down.
std::string random_chain(std::mt19937& random) {
    const auto any = [&](int low, int high) {
        return std::uniform_int_distribution<int>(low, high)(random);
    };
    const auto one_of = [&](std::initializer_list<const char*> words) {
        return std::string(words.begin()[any(0, static_cast<int>(words.size()) - 1)]);
    };
    const auto number = [&](int low, int high) { return std::to_string(any(low, high)); };
    std::string text;
    for (const char* name : {"A", "B", "C"})
        text += one_of({"double ", "float ", "char "}) + name + "[200][" +
                one_of({"56", "60", "64", "96"}) + "]; ";
    text += one_of({"double ", "int "}) + "v[2000]; void f(int n) { ";
    const int loops = any(1, 4);
    for (int l = 0; l < loops; ++l) {
        if (any(0, 3) == 0) text += "v[" + number(0, 90) + "] += 1; ";
        text += one_of({"for (int i = 0; i < n; i++) { ", "for (int i = n - 1; i >= 0; i--) { ",
                        "for (int i = 0; i < n; i++) { ", "for (int i = 3; i < 2 * n; i += 2) { "});
        const int nests = any(1, 2);
        for (int s = 0; s < nests; ++s) {
            const auto inner = number(20, 55);
            const bool deep = any(0, 2) > 0;
            text += "for (int j = " + number(0, 2) + "; j < " + inner + "; j++) " +
                    (deep ? "for (int k = 0; k < " + number(2, 12) + "; k++) { " : "{ ");
            const int statements = any(1, 3);
            for (int a = 0; a < statements; ++a) {
                const auto name = one_of({"A", "B", "C"});
                const auto shift = number(0, 5);
                switch (any(0, 7)) {
                    case 0:
                    case 1:
                        text += name + "[i + " + shift + "][j] += 1; ";
                        break;
                    case 2:
                        text += name + "[j][" + (deep ? "k" : "5") + "] += 1; ";
                        break;
                    case 3:
                        text += name + (deep ? "[k][j] += 1; " : "[7][j] += 1; ");
                        break;
                    case 4:
                        text += name + "[i][" + shift + "] += " + one_of({"A", "B", "C"}) + "[j][3]; ";
                        break;
                    case 5:
                        text += "v[i * " + number(1, 8) + " + " + shift + "] += 1; ";
                        break;
                    case 6:
                        text += "v[j] += " + name + "[i][j]; ";
                        break;
                    default:
                        text += name + "[j + 20][i / 4 * 0 + " + shift + "] += v[i]; ";
                }
            }
            text += "} ";
        }
        text += "} ";
    }
    if (any(0, 2) == 0) text += "for (int j = 0; j < 50; j++) v[j] += A[j][j]; ";
    return text + "}";
}

TEST_F(Repeating, chains_of_loops_come_out_as_the_whole) {
    std::mt19937 random(7);
    int repeated = 0, chained = 0;
    for (int trial = 0; trial < 40; ++trial) {
        const auto text = random_chain(random);
        take(text, 1 + trial % 2);
        request_.granularity = trial % 5 == 4 ? 1 : 64;
        const auto run = part();
        if (!run) continue;
        ++repeated;
        chained += run->loops.size() > 1;
        expect_whole(run->run, text);
    }
    EXPECT_GT(repeated, 15);
    EXPECT_GT(chained, 5);
}

}  // namespace
}  // namespace revisit::predict
