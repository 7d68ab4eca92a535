// Sizes that are no integer arguments: behind pointers, in structures, of vectors, on the command line;
// programs of several files, and functions with their callers in sight.
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

#include "predict/predict.h"
#include "predict/slice/compile_commands.h"
#include "revisit/accuracy.h"

namespace revisit::predict {
namespace {

class Inputs : public ::testing::Test {
 protected:
    void SetUp() override {
        setenv("REVISIT_SLICE", REVISIT_TEST_SLICER, 1);
        if (access(REVISIT_TEST_SLICER, X_OK) != 0) GTEST_SKIP() << "built without LLVM 19";
        base_ = ::testing::TempDir() + "revisit_inputs_" + std::to_string(getpid());
    }
    void TearDown() override {
        for (const auto& f : files_) unlink(f.c_str());
    }
    std::string file(const std::string& end, const std::string& text) {
        files_.push_back(base_ + end);
        std::ofstream(files_.back()) << text;
        return files_.back();
    }
    Request request(const std::string& text, const std::string& function, Parameters parameters,
                    const char* end = ".c") {
        Request r;
        r.source.path = file(end, text);
        r.source.function = function;
        r.parameters = std::move(parameters);
        r.granularity = 1;
        r.bins = Binning::exact();
        return r;
    }
    // Elements touched, of an answer that is exact.
    static double footprint(const Result<Prediction>& p) {
        if (!p) {
            ADD_FAILURE() << p.error().sentence();
            return -1;
        }
        EXPECT_EQ(p->certainty(), Certainty::exact);
        return p->profile.reuse.cold;
    }
    std::string base_;
    std::vector<std::string> files_;
};

// Checked arithmetic is arithmetic, and whether it overflows a comparison.
TEST_F(Inputs, counters_that_say_whether_they_overflow_are_counters) {
    for (const char* next : {"__builtin_add_overflow(i, 3, &i)", "__builtin_sub_overflow(i, -3, &i)"})
        for (const char* type : {"int", "long", "unsigned"}) {
            if (type[0] == 'u' && std::string(next).find("sub") != std::string::npos) continue;
            const auto text = std::string("double A[400]; void f(") + type + " n) { for (" + type +
                              " i = 0; i < n; ) { A[i] += 1; if (" + next + ") break; } }";
            EXPECT_EQ(footprint(predict(request(text, "f", {{"n", 100}}))), 34) << text;
        }
    // At the edge: i is 0, 100 … 2^15 - 68, which the next sum would pass.
    for (const auto& [next, touched] : {std::pair{"__builtin_add_overflow(i, (short)100, &i)", 328},
                                        std::pair{"__builtin_mul_overflow(i, (short)3, &i)", 10},
                                        std::pair{"__builtin_sub_overflow(i, (short)-100, &i)", 328}}) {
        const auto text = std::string(
                              "char A[40000]; void f(int n) { short i = n; do A[i] += 1; while "
                              "(!") +
                          next + "); }";
        const bool product = std::string(next).find("mul") != std::string::npos;
        EXPECT_EQ(footprint(predict(request(text, "f", {{"n", product ? 1 : 0}}))), touched) << text;
    }
}

TEST_F(Inputs, a_number_behind_a_pointer_is_a_size) {
    const char* const text =
        "void f(const int *n, double *a) { for (int i = 0; i < *n; i++) a[i] += 1; }";
    EXPECT_EQ(footprint(predict(request(text, "f", {{"n", 40}}))), 41);
    const auto missing = predict(request(text, "f", {}));
    ASSERT_FALSE(missing);
    EXPECT_NE(missing.error().message.find("sizes are missing: n"), std::string::npos);
    EXPECT_EQ(missing.error().code, ErrorCode::no_size);
    // What the function writes is no input.
    const auto written = predict(request(
        "void f(int *n, double *a) { for (int i = 0; i < *n; i++) { a[i] += 1; if (i > 5) *n = 20; } }",
        "f", {}));
    if (written) EXPECT_NE(written->certainty(), Certainty::exact);
}

TEST_F(Inputs, members_of_structures_are_sizes_by_their_names) {
    const char* const text =
        "struct M { int rows, columns; double *at; };"
        "void f(const struct M *m) { for (int i = 0; i < m->rows; i++) for (int j = 0; j < m->columns;"
        " j++) m->at[i * m->columns + j] += 1; }";
    EXPECT_EQ(footprint(predict(request(text, "f", {{"m.rows", 7}, {"m.columns", 9}}))), 63 + 3);
    const auto missing = predict(request(text, "f", {{"m.rows", 7}}));
    ASSERT_FALSE(missing);
    EXPECT_NE(missing.error().message.find("m.columns"), std::string::npos);
}

TEST_F(Inputs, structures_by_value_have_members_too) {
    const char* const text =
        "struct V { double *at; int rows, columns; };"
        "void f(struct V v) { for (int i = 0; i < v.rows; i++) for (int j = 0; j < v.columns; j++)"
        " v.at[i * v.columns + j] += 1; }";
    // Each machine passes them in its own way: two in one register, a pointer in another, by address.
    for (const char* target : {"aarch64-linux-gnu", "x86_64-linux-gnu"}) {
        auto r = request(text, "f", {{"v.rows", 7}, {"v.columns", 9}});
        r.source.flags = {std::string("--target=") + target};
        EXPECT_EQ(footprint(predict(r)), 63) << target;
        auto one = request(
            "struct N { int n; float f; }; struct M { short w, h; };"
            "float f(struct N s, struct M m, const float *a) { float t = 0;"
            " for (int i = 0; i < s.n; i++) for (int j = 0; j < m.h; j++) t += a[i * m.w + j] * s.f;"
            " return t; }",
            "f", {{"s.n", 11}, {"m.w", 9}, {"m.h", 8}});
        one.source.flags = r.source.flags;
        EXPECT_EQ(footprint(predict(one)), 88) << target;
        auto large = request(
            "struct V { double *at; long rows, columns, stride[2]; };"
            "void f(struct V v) { for (long i = 0; i < v.rows; i++) for (long j = 0; j < v.columns; "
            "j++)"
            " v.at[i * v.stride[0] + j * v.stride[1]] += 1; }",
            "f", {{"v.rows", 7}, {"v.columns", 9}, {"v.stride[0]", 20}, {"v.stride[1]", 2}});
        large.source.flags = r.source.flags;
        EXPECT_EQ(footprint(predict(large)), 63 + 5) << target;
    }
}

TEST_F(Inputs, what_a_pointer_that_moves_overwrites_is_no_input) {
    const char* const text =
        "void f(int *a, int n, double *A) { int *e = a + n; for (int *p = a; p != e; ++p) *p = 5;"
        " for (int j = 0; j < a[0]; ++j) A[j] += 1; }";
    EXPECT_FALSE(predict(request(text, "f", {{"n", 10}, {"a", 100}})));
    EXPECT_EQ(footprint(predict(request(text, "f", {{"n", 10}}))), 10 + 5);
}

TEST_F(Inputs, functions_that_nothing_uses_are_found) {
    const char* const text =
        "template <class T> struct M { explicit M(int n) : n_(n) {}"
        " private: void scale(T *a) const { for (int i = 0; i < n_; i++) a[i] *= 2; } int n_; };"
        "auto twice = [](int n, double *a) { for (int i = 0; i < n; i++) a[i] *= 2; };"
        "static inline void thrice(int n, double *a) { for (int i = 0; i < n; i++) a[i] *= 3; }";
    EXPECT_EQ(footprint(predict(request(text, "M<float>::scale", {{"n_", 30}}, ".cpp"))), 31);
    EXPECT_EQ(footprint(predict(request(text, "twice", {{"n", 30}}, ".cpp"))), 30);
    EXPECT_EQ(footprint(predict(request(text, "thrice", {{"n", 30}}, ".cpp"))), 30);
    const auto none = predict(request(text, "fourfold", {{"n", 30}}, ".cpp"));
    ASSERT_FALSE(none);
    EXPECT_NE(none.error().message.find("defines no function"), std::string::npos);
}

TEST_F(Inputs, the_only_function_that_others_can_call_is_meant) {
    const std::string helper =
                          "double A[900]; static int least(int a, int b) { return a < b ? a : b; } ",
                      nest = "(int n) { for (int i = 0; i < least(n, 700); i++) A[i] += 1; } ";
    EXPECT_EQ(footprint(predict(request(helper + "void f" + nest, "", {{"n", 300}}))), 300);
    EXPECT_EQ(
        footprint(predict(request("double A[900]; static __attribute__((used)) void f(int n) { for "
                                  "(int i = 0; i < n; i++) A[i] += 1; }",
                                  "", {{"n", 200}}))),
        200);
    const auto two = predict(request(helper + "void f" + nest + "void g" + nest, "", {{"n", 300}}));
    ASSERT_FALSE(two);
    EXPECT_NE(two.error().sentence().find("f, g"), std::string::npos) << two.error().sentence();
}

TEST_F(Inputs, vectors_in_a_vector_have_one_length) {
    const auto rows = predict(request(
        "#include <vector>\n"
        "void f(std::vector<std::vector<double>>& m) { for (auto& r : m) for (auto& x : r) x += 1; }",
        "f", {{"m.size()", 12}, {"m[].size()", 5}}, ".cpp"));
    EXPECT_EQ(footprint(rows), 2 + 12 * (2 + 5));
}

TEST_F(Inputs, what_is_cleared_or_copied_at_once_is_known) {
    // The sieve of Eratosthenes: 10 crossed out by 2 to 5 are left, and 1.
    const char* const sieve =
        "#include <string.h>\nchar p[31]; double A[31]; void f(int n) { memset(p, 1, 31);"
        " for (int i = 2; i * i <= n; i++) if (p[i]) for (int j = i * i; j <= n; j += i) p[j] = 0;"
        " for (int i = 1; i <= n; i++) if (p[i]) A[i] += 1; }";
    EXPECT_EQ(footprint(predict(request(sieve, "f", {{"n", 30}}))), 31 + 11);
    const char* const copied =
        "#include <stdlib.h>\n#include <string.h>\nlong a[20], b[20]; double A[90]; void f(int n) {"
        " long *c = calloc(20, 8); for (int i = 0; i < n; i++) a[i] = 3 * i + c[i];"
        " memcpy(b + 2, a, 8 * 16); for (int i = 2; i < n + 2; i++) A[b[i] + c[19]] += 1; }";
    EXPECT_EQ(footprint(predict(request(copied, "f", {{"n", 9}}))), 9 + 9 + 10 + 9);
    // Not from where something else was written since.
    const auto halves = predict(request(
        "#include <string.h>\nint p[9]; double A[90000]; void f(int n) { memset(p, 0, sizeof p);"
        " ((short *)p)[3] = 1; for (int i = 0; i < n; i++) A[p[i]] += 1; }",
        "f", {{"n", 5}}));
    if (halves) EXPECT_EQ(halves->certainty(), Certainty::estimated);
}

TEST_F(Inputs, a_vector_has_its_size) {
    const auto sum =
        predict(request("#include <vector>\n"
                        "double sum(const std::vector<double>& v) { double s = 0;"
                        " for (std::size_t i = 0; i < v.size(); i++) s += v[i]; return s; }",
                        "sum", {{"v.size()", 30}}, ".cpp"));
    EXPECT_EQ(footprint(sum), 30 + 2);
    const auto range =
        predict(request("#include <vector>\n"
                        "void f(std::vector<float>& v) { for (auto& x : v) x += 1; }",
                        "f", {{"v.size()", 30}}, ".cpp"));
    EXPECT_EQ(footprint(range), 30 + 2);
}

TEST_F(Inputs, main_takes_its_sizes_from_the_command_line) {
    auto r = request(
        "#include <stdlib.h>\ndouble A[1000];"
        "int main(int argc, char **argv) { int n = argc > 1 ? atoi(argv[1]) : 10;"
        " for (int t = 0; t < 3; t++) for (int i = 0; i < n; i++) A[i] += 1; return 0; }",
        "main", {});
    r.argv = {"70"};
    const auto p = predict(r);
    EXPECT_EQ(footprint(p), 70 + 1);  // and argv[1]
    EXPECT_EQ(p->profile.accesses, 3 * 70 * 2 + 1);
    r.argv = {"seventy"};
    EXPECT_FALSE(predict(r));
}

TEST_F(Inputs, calls_into_other_files_are_followed) {
    auto r =
        request("extern double A[]; void g(int); void f(int n) { for (int i = 0; i < n; i++) g(i); }",
                "f", {{"n", 25}});
    const auto alone = predict(r);
    ASSERT_TRUE(alone);
    EXPECT_NE(alone->certainty(), Certainty::exact);
    r.source.others = {{file("_other.c", "double A[100]; void g(int i) { A[i] += A[i + 1]; }"), {}}};
    EXPECT_EQ(footprint(predict(r)), 26);
}

TEST_F(Inputs, callers_in_sight_decide_what_is_left_to_do) {
    auto r = request(
        "double A[100]; static void f(int n, int twice) { for (int i = 0; i < n; i++) {"
        " A[i] += 1; if (twice) A[99 - i] += 1; } }"
        "int main() { f(50, 0); return (int)A[3]; }",
        "f", {});
    r.source.in_program = true;
    EXPECT_EQ(footprint(predict(r)), 50);
    r.source.in_program = false;
    EXPECT_FALSE(predict(r));  // sizes are missing
}

TEST_F(Inputs, a_compilation_database_has_flags_and_level) {
    const auto source = file(".c", "void f(void) {}");
    const auto slash = base_.rfind('/');
    const auto folder = base_.substr(0, slash), name = base_.substr(slash + 1) + ".c";
    const auto database = folder + "/compile_commands.json";
    files_.push_back(database);
    std::ofstream(database) << R"([{"directory": ")" << folder << R"(", "file": ")" << name
                            << R"(", "command": "cc -O3 -DN=\"a b\" -Iinc -Wall -MD -o x.o -c )" << name
                            << R"("}])";
    const auto command = compile_command(folder, source);
    ASSERT_TRUE(command) << command.error().sentence();
    EXPECT_EQ(command->optimise, 3);
    EXPECT_EQ(command->flags, (std::vector<std::string>{"-DN=a b", "-I" + folder + "/inc"}));
    EXPECT_FALSE(compile_command(folder, "other.c"));
    std::ofstream(database) << "{";
    EXPECT_FALSE(compile_command(folder, source));
}

TEST_F(Inputs, addresses_as_numbers_of_globals_are_known) {
    const auto p =
        predict(request("double A[300], B[300]; void f(int n) { for (double *p = A; p < A + n;"
                        " p += 3) B[p - A] += *p; }",
                        "f", {{"n", 90}}));
    EXPECT_EQ(footprint(p), 60);
}

TEST_F(Inputs, calls_that_might_throw_are_followed) {
    auto r = request(
        "double A[99]; void h(int i) { A[i] += 1; }"
        "void f(int n) { try { for (int i = 0; i < n; i++) h(i); } catch (...) { A[0] = 0; } }",
        "f", {{"n", 40}}, ".cpp");
    r.source.optimise = 0;  // nothing is known of h
    const auto p = predict(r);
    ASSERT_TRUE(p) << p.error().sentence();
    EXPECT_GE(p->profile.reuse.cold, 40);
    EXPECT_LE(p->profile.reuse.cold, 50);
}

// A product in tiles, of which no formulas are made. N - T was taken for a number of the source's where
// the largest sample was as large as the target: copies were another program, of other lengths.
TEST_F(Inputs, estimates_of_tiles_have_all_accesses) {
    for (const std::int64_t n : {248, 250, 312}) {
        Request r = request(
            "#define T 16\n#define END(x) (x + T < N ? x + T : N)\ndouble A[N][N], B[N][N], C[N][N];\n"
            "void f(void) { for (int ii = 0; ii < N; ii += T) for (int kk = 0; kk < N; kk += T) "
            "for (int jj = 0; jj < N; jj += T) for (int i = ii; i < END(ii); i++) "
            "for (int k = kk; k < END(kk); k++) for (int j = jj; j < END(jj); j++) "
            "C[i][j] += A[i][k] * B[k][j]; }",
            "f", {});
        r.macros = {{"N", n}};
        r.granularity = 64;
        r.bins = Binning::log2();
        r.method = Method::estimate;
        const auto p = predict(r);
        ASSERT_TRUE(p) << p.error().sentence();
        EXPECT_EQ(p->certainty(), Certainty::estimated);
        EXPECT_EQ(p->profile.accesses, 3 * n * n * n + n * n * ((n + 15) / 16)) << n;
        r.method = Method::simulate;
        const auto whole = predict(r);
        ASSERT_TRUE(whole) << whole.error().sentence();
        EXPECT_GT(accuracy(whole->profile.reuse, p->profile.reuse), 0.95) << n;
        // Which references touch the arrays first does not grow by any power: four in ten were missed.
        EXPECT_NEAR(p->profile.reuse.cold, whole->profile.reuse.cold, 3) << n;
    }
}

TEST_F(Inputs, a_value_that_the_data_selects_is_an_estimate) {
    const auto p =
        predict(request("double A[99], B[99]; void f(int n) { for (int i = 0; i < n; i++) {"
                        " int k = A[i] > 0 ? i : n - i; B[k] += 1; } }",
                        "f", {{"n", 40}}));
    ASSERT_TRUE(p) << p.error().sentence();
    EXPECT_EQ(p->certainty(), Certainty::estimated);
    EXPECT_EQ(p->profile.accesses, 120);
}

}  // namespace
}  // namespace revisit::predict
