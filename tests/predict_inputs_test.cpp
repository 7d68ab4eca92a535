// Sizes that are no integer arguments: behind pointers, in structures, of vectors, on the command line;
// programs of several files, and functions with their callers in sight.
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

#include "predict/predict.h"
#include "predict/slice/compile_commands.h"

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

TEST_F(Inputs, a_number_behind_a_pointer_is_a_size) {
    const char* const text =
        "void f(const int *n, double *a) { for (int i = 0; i < *n; i++) a[i] += 1; }";
    EXPECT_EQ(footprint(predict(request(text, "f", {{"n", 40}}))), 41);
    const auto missing = predict(request(text, "f", {}));
    ASSERT_FALSE(missing);
    EXPECT_NE(missing.error().message.find("--param n="), std::string::npos);
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
    const auto r = request(text, "f", {{"v.rows", 7}, {"v.columns", 9}});
    const auto p = predict(r);
#if defined(__x86_64__)
    if (!p) GTEST_SKIP() << "two ints are passed in one register there, and have no names of their own";
#endif
    EXPECT_EQ(footprint(p), 63);
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
