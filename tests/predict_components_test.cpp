// Which sizes must keep residues by the step of a loop: those that can meet what it counts.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>

#include "predict/fit/sampling.h"
#include "predict/predict.h"

namespace revisit::predict {
namespace {

struct Meeting {
    const char* name;
    const char* text;
    std::int64_t n, m;  // periods by lines
};

// Loops that step by five count rows up to n, unless said otherwise.
constexpr Meeting kMeetings[] = {
    {"columns are apart from rows",
     "double A[900][400];"
     "void f(int n, int m) { for (int j = 0; j < m; j++) for (int i = 0; i < n; i += 5) A[i][j] += 1; "
     "}",
     5, 1},
    {"rows that are not whole lines",
     "double A[900][401];"
     "void f(int n, int m) { for (int j = 0; j < m; j++) for (int i = 0; i < n; i += 5) A[i][j] += 1; "
     "}",
     5, 5},
    {"another loop counts rows up to m",
     "double A[900][400];"
     "void f(int n, int m) { for (int i = 0; i < n; i += 5) A[i][0] += 1;"
     " for (int k = 0; k < m; k++) A[k][0] += 1; }",
     5, 5},
    {"the same of another array",
     "double A[900][400], B[900][400];"
     "void f(int n, int m) { for (int i = 0; i < n; i += 5) A[i][0] += 1;"
     " for (int k = 0; k < m; k++) B[k][0] += 1; }",
     5, 1},
    {"through a flat pointer",
     "double A[900][400];"
     "void f(int n, int m) { double *p = &A[0][0]; for (int i = 0; i < n; i += 5) A[i][0] += 1;"
     " for (int k = 0; k < m; k++) p[k * 400] += 1; }",
     5, 5},
    {"the smaller of two",
     "double A[900][400];"
     "void f(int n, int m) { int b = n < m ? n : m; for (int i = 0; i < b; i += 5) A[i][0] += 1; }",
     5, 5},
    {"starts at m",
     "double A[900][400];"
     "void f(int n, int m) { for (int i = m - 7; i < n; i += 5) A[i][0] += 1; }",
     5, 5},
    {"bounded by another loop's counter",
     "double A[900][400];"
     "void f(int n, int m) { for (int k = 0; k < m; k++) for (int i = 0; i < k; i += 5) A[i][0] += 1;"
     " for (int k = 0; k < n; k++) A[0][k] += 1; }",
     1, 5},
    {"bounded by an argument",
     "double A[900][400];"
     "__attribute__((noinline)) static void g(int b, int c) {"
     " for (int i = 0; i < b; i += 5) A[i][c] += 1; }"
     "void f(int n, int m) { for (int t = 0; t < m; t++) g(n, t); }",
     5, 1},
    {"and once by m",
     "double A[900][400];"
     "__attribute__((noinline)) static void g(int b, int c) {"
     " for (int i = 0; i < b; i += 5) A[i][c] += 1; }"
     "void f(int n, int m) { for (int t = 0; t < 60; t++) g(n, t); g(m, 0); }",
     5, 5},
    {"compared in the loop",
     "double A[900][400], B[8];"
     "void f(int n, int m) { for (int i = 0; i < n; i += 5) { A[i][0] += 1; if (i < m) B[0] += 1; } }",
     5, 5},
    {"a condition chooses and does not meet",
     "double A[900][400];"
     "void f(int n, int m) { for (int j = 0; j < m; j++) for (int i = 0; i < n; i += 5)"
     " A[j < m - 9 ? i : i + 1][0] += 1; }",
     5, 1},
    {"added to the index",
     "double A[1900][400];"
     "void f(int n, int m) { for (int i = 0; i < n; i += 5) A[i + m][0] += 1; }",
     5, 5},
    {"transposed",
     "double A[904][904];"
     "void f(int n, int m) { for (int i = 0; i < n; i += 5) for (int j = 0; j < m; j++)"
     " A[i][j] += A[j][i]; }",
     5, 5},
    {"a diagonal",
     "double A[904][904];"
     "void f(int n, int m) { for (int j = 0; j < m; j++) for (int i = 0; i < n; i += 5) A[i][j] += 1;"
     " for (int i = 0; i < n; i++) A[i][i] += 1; }",
     5, 5},
    {"rows that are filled at once",
     "double A[900][400]; void *memset(void *, int, unsigned long);"
     "void f(int n, int m) { for (int i = 0; i < n; i += 5) A[i][0] += 1;"
     " memset(A, 0, (unsigned long)m * 3200); }",
     5, 5},
    {"a pointer to one of two arrays",
     "double A[900][400], B[900][400];"
     "void f(int n, int m) { for (int t = 0; t < 20; t++) { double(*p)[400] = t & 1 ? A : B;"
     " for (int i = 0; i < n; i += 5) p[i][0] += 1; for (int i = 0; i < m; i++) A[i][0] += 1; } }",
     5, 5},
    {"a pointer that goes round the loop",
     "double A[900][400];"
     "void f(int n, int m) { double *p = &A[0][0]; for (int i = 0; i < n; i++, p += 2000) *p += 1;"
     " for (int i = 0; i < m; i++) A[i][0] += 1; }",
     1, 1},
    {"how far a counter came",
     "double A[900][400];"
     "void f(int n, int m) { long i; for (i = 0; i < m; i += 5) A[0][i] += 1;"
     " for (int k = 0; k < n; k++) A[k][i] += 1; }",
     1, 5},
    {"two counters of one loop",
     "double A[900][400], B[900][400];"
     "void f(int n, int m) { for (int i = 0, k = 0; i < n; i += 5, k++) { A[i][0] += 1; B[k][0] += 1; }"
     " for (int k = 0; k < m; k++) B[k][0] += 1; }",
     5, 5},
};

TEST(Components, sizes_keep_residues_of_what_they_meet) {
    setenv("REVISIT_SLICE", REVISIT_TEST_SLICER, 1);
    if (access(REVISIT_TEST_SLICER, X_OK) != 0) GTEST_SKIP() << "built without LLVM 19";
    const auto path = ::testing::TempDir() + "revisit_components_" + std::to_string(getpid()) + ".c";
    constexpr std::int64_t kModulus = 40;
    for (const Meeting& k : kMeetings) {
        std::ofstream(path) << k.text;
        Request r;
        r.source = {path, "f", 1, {}};
        r.parameters = {{"n", 403}, {"m", 262}};
        Session session{r, {}, r.parameters, {}};
        auto compiled = session.compiled({{}});
        ASSERT_TRUE(compiled) << k.name;
        session.target = std::move(compiled->front());
        const auto programs = Programs::prepare(session, kModulus);
        ASSERT_TRUE(programs) << k.name;
        DesignOptions options;
        options.modulus = kModulus;
        const auto design = plan_samples(programs->sizes(), options);
        const auto periods = programs->periods(design, 64, kModulus);
        ASSERT_TRUE(periods) << k.name;
        for (std::size_t a = 0; a < design.axes.size(); ++a) {
            const auto& name = design.axes[a].names.front().first;
            if (name == "n") {
                EXPECT_EQ((*periods)[a], k.n) << k.name;
            } else if (name == "m") {
                EXPECT_EQ((*periods)[a], k.m) << k.name;
            }
        }
    }
}

// Rows of a size that is a macro: whole lines at the target and in every sample, or not.
TEST(Components, rows_of_a_size_are_apart_from_columns_where_they_are_whole_lines) {
    setenv("REVISIT_SLICE", REVISIT_TEST_SLICER, 1);
    if (access(REVISIT_TEST_SLICER, X_OK) != 0) GTEST_SKIP() << "built without LLVM 19";
    const auto path = ::testing::TempDir() + "revisit_rows_" + std::to_string(getpid()) + ".c";
    std::ofstream(path)
        << "double A[N][M]; void f(void) {"
           " for (int j = 0; j < M; j++) for (int i = 0; i < N; i += 5) A[i][j] += 1; }";
    for (const std::int64_t m : {264, 262}) {
        Request r;
        r.source = {path, "f", 1, {}};
        r.macros = {{"N", 403}, {"M", m}};
        Session session{r, {}, r.macros, {}};
        auto compiled = session.compiled({r.macros});
        ASSERT_TRUE(compiled);
        session.target = std::move(compiled->front());
        const auto programs = Programs::prepare(session, 40);
        ASSERT_TRUE(programs);
        DesignOptions options;
        options.modulus = 40;
        const auto periods = programs->periods(plan_samples(programs->sizes(), options), 64, 40);
        ASSERT_TRUE(periods);
        ASSERT_EQ(periods->size(), 2u);
        EXPECT_EQ(periods->front(), m % 8 == 0 ? 1 : 5) << m;  // of M
        EXPECT_EQ(periods->back(), 5) << m;
    }
}

// It crashed: where constants are no polynomials, sizes for checking are compiled anew.
TEST(Components, a_size_for_checking_may_be_compiled_to_another_program) {
    setenv("REVISIT_SLICE", REVISIT_TEST_SLICER, 1);
    if (access(REVISIT_TEST_SLICER, X_OK) != 0) GTEST_SKIP() << "built without LLVM 19";
    const auto path = ::testing::TempDir() + "revisit_shape_" + std::to_string(getpid()) + ".c";
    std::ofstream(path) << "double K[900]; void f(void) { for (int i = N - 40; i < N / 2; i += 3)"
                           " for (int j = M / 4; j < N; j += 1) {"
                           " if (j < N - 9) K[i < M ? i : j] += 1; if (i + j < N) K[i] += 1; } }";
    Request r;
    r.source = {path, "f", 1, {}};
    r.macros = {{"N", 64}, {"M", 192}};
    r.method = Method::fit;
    r.estimate = false;
    const auto p = predict(r);
    ASSERT_TRUE(p);
    EXPECT_FALSE(p->failures.empty());
}

}  // namespace
}  // namespace revisit::predict
