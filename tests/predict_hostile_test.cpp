// Kernels that were called exact and were not, or would be: the certificate has to see through them.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "predict/fit/extremes.h"
#include "predict/predict.h"

namespace revisit::predict {
namespace {

struct Kernel {
    std::string name, text;
    Parameters sizes;
    bool never = false;  // no certificate by formulas
};

std::vector<Kernel> hostile_kernels() {
    std::vector<Kernel> all;
    std::ifstream in(REVISIT_HOSTILE);
    for (std::string line; std::getline(in, line);) {
        if (!line.starts_with("## ")) {
            if (!all.empty()) all.back().text += line + "\n";
            continue;
        }
        std::istringstream words(line.substr(3));
        words >> all.emplace_back().name;
        for (std::string word; words >> word;) {
            if (word == "never")
                all.back().never = true;
            else if (const auto at = word.find('='); at != std::string::npos)
                all.back().sizes[word.substr(0, at)] = std::atoll(word.c_str() + at + 1);
        }
    }
    return all;
}

Kernel hostile_kernel(const std::string& name) {
    for (Kernel& k : hostile_kernels())
        if (k.name == name) return std::move(k);
    ADD_FAILURE() << "no kernel " << name << " in " REVISIT_HOSTILE;
    return {};
}

// Fixed tiles, whole ones and a rest: formulas in the number of tiles, and, where that takes too many
// accesses, in the size of a tile too.
TEST(Hostile, tiled_nests_have_formulas) {
    setenv("REVISIT_SLICE", REVISIT_TEST_SLICER, 1);
    if (access(REVISIT_TEST_SLICER, X_OK) != 0) GTEST_SKIP() << "built without LLVM 19";
    const auto path = ::testing::TempDir() + "revisit_tiled_" + std::to_string(getpid()) + ".c";
    for (const char* name : {"tilegemmrest", "tiletranspose", "tilestrip"}) {
        const Kernel k = hostile_kernel(name);
        std::ofstream(path) << k.text;
        for (const std::uint64_t granularity : {1, 64}) {
            if (granularity > 1 && k.name == "tilegemmrest") continue;
            Request r;
            r.source = {path, "f", 1, {}};
            r.parameters = k.sizes;
            r.granularity = granularity;
            r.bins = Binning::exact();
            r.method = Method::fit;
            r.estimate = false;
            const auto fitted = predict(r);
            ASSERT_TRUE(fitted) << k.name;
            EXPECT_TRUE(fitted->failures.empty()) << k.name << " by " << granularity;
            r.method = Method::simulate;
            const auto truth = predict(r);
            ASSERT_TRUE(truth) << k.name;
            EXPECT_EQ(fitted->profile.reuse, truth->profile.reuse) << k.name << " by " << granularity;
        }
    }
}

// It was answered with "nothing to vary": tiles that cannot be varied had taken all sizes with them.
TEST(Hostile, tiles_that_cannot_be_varied_are_named) {
    setenv("REVISIT_SLICE", REVISIT_TEST_SLICER, 1);
    if (access(REVISIT_TEST_SLICER, X_OK) != 0) GTEST_SKIP() << "built without LLVM 19";
    const auto path = ::testing::TempDir() + "revisit_sweeps_" + std::to_string(getpid()) + ".c";
    const Kernel k = hostile_kernel("tilesweeps");
    std::ofstream(path) << k.text;
    Request r;
    r.source = {path, "f", 1, {}};
    r.parameters = k.sizes;
    r.granularity = 1;
    r.method = Method::fit;
    r.estimate = false;
    const auto fitted = predict(r);
    ASSERT_TRUE(fitted) << fitted.error().sentence();
    EXPECT_FALSE(fitted->profile.exact().value_or(true));
    unlink(path.c_str());
}

// Iterations that differ in the length of a memset, or in whether two references take turns, were taken
// for repetitions: their addresses are the same.
TEST(Hostile, iterations_repeat_only_with_the_same_lengths_in_the_same_order) {
    setenv("REVISIT_SLICE", REVISIT_TEST_SLICER, 1);
    if (access(REVISIT_TEST_SLICER, X_OK) != 0) GTEST_SKIP() << "built without LLVM 19";
    const auto path = ::testing::TempDir() + "revisit_repeated_" + std::to_string(getpid()) + ".c";
    const char* const loop =
        "double A[400]; char B[9000]; void f(int n) { for (int t = 0; t < n; t++) {";
    const std::pair<const char*, bool> bodies[] = {
        {"__builtin_memset(B, 0, 6400); for (int j = 0; j < 40; j++) A[j] += 1; } }", true},
        {"__builtin_memset(B, 0, t < n / 2 ? 64 : 6400); for (int j = 0; j < 40; j++) A[j] += 1; } }",
         false},
        {"int late = t >= n / 2, end = late ? 40 : 80; for (int j = 0; j < end; j++) {"
         " if (late || j < 40) A[j] += 1; if (late || j >= 40) A[late ? j : j - 40] *= 2; } } }",
         false}};
    for (const auto& [body, repeats] : bodies) {
        std::ofstream(path) << loop << body;
        Request r;
        r.source = {path, "f", 1, {}};
        r.parameters = {{"n", 400}};
        r.bins = Binning::exact();
        r.simulate_up_to = 100;
        r.simulate_at_most = 4000;
        r.budget = 1;
        const auto p = predict(r);
        ASSERT_TRUE(p) << body;
        EXPECT_GE(p->profile.exact().value_or(false), repeats) << body;
        r.method = Method::simulate;
        const auto truth = predict(r);
        ASSERT_TRUE(truth) << body;
        if (p->profile.exact().value_or(false)) {
            EXPECT_EQ(p->profile.reuse, truth->profile.reuse) << body;
        }
    }
    unlink(path.c_str());
}

TEST(Hostile, kernels_that_change_beyond_the_samples_are_never_called_exact) {
    setenv("REVISIT_SLICE", REVISIT_TEST_SLICER, 1);
    if (access(REVISIT_TEST_SLICER, X_OK) != 0) GTEST_SKIP() << "built without LLVM 19";
    const auto path = ::testing::TempDir() + "revisit_hostile_" + std::to_string(getpid()) + ".c";
    std::size_t tried = 0, answered = 0;
    for (const Kernel& k : hostile_kernels()) {
        if (!k.never) continue;
        ++tried;
        std::ofstream(path) << k.text;
        Request r;
        r.source = {path, "f", 1, {}};
        r.parameters = k.sizes;
        r.granularity = 1;
        r.method = Method::fit;
        r.budget = 1;
        r.estimate = false;
        const auto p = predict(r);
        // An error is no answer, and no certificate; all of them being errors would be no test.
        answered += p.has_value();
        EXPECT_TRUE(!p || !p->profile.exact().value_or(true)) << k.name;
    }
    EXPECT_GT(tried, 20u);
    EXPECT_GT(answered * 10, tried * 9);
    unlink(path.c_str());
}

// What the samples show is not what the target does, and no sample could tell: exact by interpreting
// the whole run, or by proof, but never by formulas.
TEST(Hostile, formulas_without_a_proof_are_fitted_and_the_run_is_interpreted) {
    setenv("REVISIT_SLICE", REVISIT_TEST_SLICER, 1);
    if (access(REVISIT_TEST_SLICER, X_OK) != 0) GTEST_SKIP() << "built without LLVM 19";
    const auto path = ::testing::TempDir() + "revisit_unproven_" + std::to_string(getpid()) + ".c";
    for (const char* name : {"narrowload", "wraps578", "unionbyte", "bytestate"}) {
        const Kernel k = hostile_kernel(name);
        std::ofstream(path) << k.text;
        Request r;
        r.source = {path, "f", 1, {}};
        r.parameters = k.sizes;
        r.granularity = 1;
        r.method = Method::fit;
        r.estimate = false;
        const auto formulas = predict(r);
        ASSERT_TRUE(formulas) << name << formulas.error().sentence();
        EXPECT_NE(formulas->certainty(), Certainty::exact) << name;
        EXPECT_FALSE(formulas->failures.empty() && formulas->unproven.empty()) << name;
        r.method = Method::automatic;
        r.simulate_up_to = 1'000'000;
        // By lines the samples of narrowload cannot be run, which was taken for an answer.
        for (const std::uint64_t granularity : {1, 64}) {
            r.granularity = granularity;
            const auto whole = predict(r);
            ASSERT_TRUE(whole) << name << whole.error().sentence();
            EXPECT_EQ(whole->certainty(), Certainty::exact) << name;
            EXPECT_EQ(whole->model, nullptr) << name << ": by formulas";
        }
    }
    unlink(path.c_str());
}

TEST(Hostile, what_compiler_and_allocator_place_is_not_called_exact) {
    setenv("REVISIT_SLICE", REVISIT_TEST_SLICER, 1);
    if (access(REVISIT_TEST_SLICER, X_OK) != 0) GTEST_SKIP() << "built without LLVM 19";
    struct Case {
        const char* text;
        int opt;
        std::uint64_t granularity;
        bool exact;
    };
    const std::string two =
        "double A[99]; __attribute__((noinline)) static void g(int k) { for (int i = 0; i < k; i++) "
        "A[i] "
        "+= 1; } __attribute__((noinline)) static int h(int a, int b) { int s = a; while (s < b) s++; "
        "return s; } void f(int n) { for (int i = 0; i < n; i++) { g(i); h(i, n); } }";
    const std::string heap =
        "void *malloc(unsigned long); double *P; void f(int n) { double *p = malloc(n * 8); P = p; for "
        "(int i = 0; i < n; i++) p[i] = i; }";
    const Case cases[] = {
        {two.c_str(), 0, 1, false},  // two callees' variables on one stack
        {two.c_str(), 1, 1, true},
        {heap.c_str(), 1, 64, false},  // the allocator aligns to 16 bytes
        {heap.c_str(), 1, 16, true},
        {"double A[99]; void f(int n) { for (int i = 0; i < n; i++) A[i] += 1; }", 1, 4096, false},
        {"double A[99]; void f(int n) { for (__int128 i = 0; i < ((__int128)1 << 64) + n; i++) { A[1] "
         "+= 1; if (i == n) break; } }",
         0, 1, false},
        {"double A[99]; void f(unsigned n) { for (unsigned i = 0; i < (n > 7 ? n - 7 : 0); i++) A[i] "
         "+= "
         "1; }",
         1, 1, true},
    };
    const auto path = ::testing::TempDir() + "revisit_places_" + std::to_string(getpid()) + ".c";
    for (const Case& c : cases) {
        std::ofstream(path) << c.text;
        Request r;
        r.source = {path, "f", c.opt, {}};
        r.parameters = {{"n", 40}};
        r.granularity = c.granularity;
        r.method = Method::simulate;
        const auto p = predict(r);
        ASSERT_TRUE(p) << c.text << p.error().sentence();
        EXPECT_EQ(p->profile.exact().value_or(false), c.exact) << c.text << " by " << c.granularity;
    }
    unlink(path.c_str());
}

TEST(Extremes, paths_taken_at_once_show_the_same_extremes) {
    setenv("REVISIT_SLICE", REVISIT_TEST_SLICER, 1);
    if (access(REVISIT_TEST_SLICER, X_OK) != 0) GTEST_SKIP() << "built without LLVM 19";
    auto programs = compile({std::string(REVISIT_KERNELS) + "/nussinov.c", "", 1, {}}, {{{"N", 40}}});
    ASSERT_TRUE(programs) << programs.error().sentence();
    Program& program = programs->front();
    RunOptions options;
    options.keep = false;
    options.watch = watch_all(program);
    ASSERT_GT(options.watch, 0);
    const auto fast = interpret(program, {}, options);
    options.stride = false;
    const auto slow = interpret(program, {}, options);
    ASSERT_TRUE(fast && slow);
    for (std::size_t w = 0; w < fast->observed.size(); ++w) {
        EXPECT_EQ(fast->observed[w].margin, slow->observed[w].margin) << w;
        EXPECT_EQ(fast->observed[w].value, slow->observed[w].value) << w;
        EXPECT_EQ(fast->observed[w].taken, slow->observed[w].taken) << w;
    }
}

}  // namespace
}  // namespace revisit::predict
