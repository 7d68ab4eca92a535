// Data that decides, numbers in disguise and C++ names: what people write, against what it does when it
// is written out in C here.
#include <gtest/gtest.h>
#include <unistd.h>

#include <bit>
#include <cmath>
#include <fstream>
#include <list>
#include <map>
#include <random>

#include "predict/predict.h"

namespace revisit::predict {
namespace {

using Distances = std::map<std::int64_t, double>;

// Distances by a list, most recent first.
Distances naive(const std::vector<std::uint64_t>& addresses) {
    Distances out;
    std::list<std::uint64_t> stack;
    for (const auto a : addresses) {
        const auto at = std::find(stack.begin(), stack.end(), a);
        if (at == stack.end()) {
            ++out[-1];
        } else {
            ++out[std::distance(stack.begin(), at)];
            stack.erase(at);
        }
        stack.push_front(a);
    }
    return out;
}

Distances distances(const Profile& p) {
    Distances out;
    if (p.reuse.cold > 0) out[-1] = p.reuse.cold;
    for (const Bin& b : p.reuse.bins)
        if (b.count > 0) out[static_cast<std::int64_t>(b.low)] += b.count;
    return out;
}

class FromSourceWithData : public ::testing::Test {
 protected:
    void SetUp() override {
        setenv("REVISIT_SLICE", REVISIT_TEST_SLICER, 1);
        if (access(REVISIT_TEST_SLICER, X_OK) != 0) GTEST_SKIP() << "built without LLVM 19";
        base_ = ::testing::TempDir() + "revisit_data_" + std::to_string(getpid());
    }
    void TearDown() override {
        for (const auto& f : files_) unlink(f.c_str());
    }
    std::string file(const std::string& end, const std::string& text) {
        files_.push_back(base_ + end);
        std::ofstream(files_.back(), std::ios::binary) << text;
        return files_.back();
    }
    Request request(const std::string& text, const std::string& function, Parameters parameters,
                    const char* end = ".c") {
        Request r;
        r.source = {file(end, text), function, 1, {}};
        r.parameters = std::move(parameters);
        r.granularity = 1;
        r.bins = Binning::exact();
        return r;
    }
    std::string base_;
    std::vector<std::string> files_;
};

template <class T>
std::string raw(const std::vector<T>& values) {
    return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

const char* const kSpmv =
    "void spmv(int n, const int *ptr, const int *idx, const double *val, const double *x, double *y) {"
    " for (int i = 0; i < n; i++) { double s = 0; for (int k = ptr[i]; k < ptr[i + 1]; k++)"
    " s += val[k] * x[idx[k]]; y[i] = s; } }";

TEST_F(FromSourceWithData, a_sparse_product_is_exact_with_its_matrix) {
    std::mt19937 random(3);
    const int n = 60;
    std::vector<std::int32_t> ptr{0}, idx;
    for (int i = 0; i < n; ++i) {
        for (int k = random() % 7; k > 0; --k) idx.push_back(static_cast<int>(random() % n));
        ptr.push_back(static_cast<int>(idx.size()));
    }
    // Loads as -O1 has them: the end of a row is read once before it and once per entry of it.
    auto r = request(kSpmv, "spmv", {{"n", n}});
    r.data = {{"ptr", file(".ptr", raw(ptr))}, {"idx", file(".idx", raw(idx))}};
    const auto binary = predict(r);
    ASSERT_TRUE(binary) << binary.error().sentence();
    EXPECT_EQ(binary->certainty(), Certainty::exact);
    std::string text;
    for (const auto v : idx) text += std::to_string(v) + (v % 3 ? " " : "\n");
    std::string numpy = "\x93NUMPY";
    const std::string header = "{'descr': '<i4', 'fortran_order': False, 'shape': (9,), }\n";
    numpy += std::string{1, 0, static_cast<char>(header.size()), 0} + header + raw(ptr);
    r.data = {{"ptr", file(".npy", numpy)}, {"idx", file(".txt", text)}};
    const auto other = predict(r);
    ASSERT_TRUE(other) << other.error().sentence();
    EXPECT_EQ(other->profile.reuse, binary->profile.reuse);
    // The same rows with the matrix in the source.
    std::string source = "static const int P[] = {", inner;
    for (const auto v : ptr) source += std::to_string(v) + ",";
    source += "}, I[] = {";
    for (const auto v : idx) source += std::to_string(v) + ",";
    source +=
        "};\n" + std::string(kSpmv) +
        "void f(const double *val, const double *x, double *y, int n) { spmv(n, P, I, val, x, y); }";
    const auto constant = predict(request(source, "f", {{"n", n}}, "_constant.c"));
    ASSERT_TRUE(constant) << constant.error().sentence();
    EXPECT_EQ(constant->profile.accesses, binary->profile.accesses);
    EXPECT_EQ(constant->profile.reuse, binary->profile.reuse);
}

TEST_F(FromSourceWithData, data_that_does_not_fit_is_refused) {
    auto r = request(kSpmv, "spmv", {{"n", 4}});
    const auto ptr = file(".ptr", "0 2 4 6 8");
    for (const auto& [data, what] : std::vector<std::pair<std::vector<DataSource>, std::string>>{
             {{{"ptr", ptr}}, "on what idx holds"},
             {{{"ptr", ptr}, {"idx", file(".idx_short", "0 1 2")}}, "gives 3 entries"},
             {{{"ptr", ptr}, {"idx", file(".idx_odd", "abcde")}}, "no whole number of entries"},
             {{{"ptr", ptr}, {"idx", base_ + "_missing"}}, "cannot be read"},
             {{{"ptr", ptr}, {"nothing", ptr}}, "no array of that name"},
             {{{"ptr", ptr}, {"val", ptr}}, "decides"},
             {{{"ptr", ptr}, {"idx", "uniform:9..3"}}, "LOW..HIGH"},
             {{{"ptr", ptr}, {"idx", file(".idx_large", "99999999999999999999")}}, "64 bits"}}) {
        r.data = data;
        const auto p = predict(r);
        ASSERT_FALSE(p) << what;
        EXPECT_NE(p.error().sentence().find(what), std::string::npos) << p.error().sentence();
        // Where more data helps, the command says how to give it.
        const bool is_lacking = data.size() == 1 || what == "gives 3 entries";
        EXPECT_EQ(p.error().code == ErrorCode::no_data, is_lacking) << p.error().sentence();
    }
}

TEST_F(FromSourceWithData, random_data_is_an_estimate_that_holds) {
    auto r = request(
        "void f(int n, const int *idx, double *x) { for (int i = 0; i < n; i++) x[idx[i]] += 1; }", "f",
        {{"n", 20000}});
    r.bins = Binning::log2();
    r.data = {{"idx", "uniform:0..499"}};
    const auto p = predict(r);
    ASSERT_TRUE(p) << p.error().sentence();
    EXPECT_EQ(p->certainty(), Certainty::estimated);
    EXPECT_EQ(p->profile.accesses, 60000);
    EXPECT_EQ(p->profile.reuse.cold, 20000 + 500);
    // A uniform index among 500 comes back after 499 others on average; between two of them lie idx
    // too.
    EXPECT_NE(p->failures.back().text.find("with accuracy 0.9"), std::string::npos)
        << p->failures.back().text;
}

TEST_F(FromSourceWithData, overwritten_data_is_what_was_written) {
    auto r = request(
        "void f(int n, int *idx, double *x) { for (int i = 0; i < n; i++) { x[idx[i]] += 1; idx[i] = "
        "7; }"
        " for (int i = 0; i < n; i++) x[idx[i]] += 1; }",
        "f", {{"n", 5}});
    r.data = {{"idx", file(".i", "3 1 4 1 5")}};
    const auto p = predict(r);
    ASSERT_TRUE(p) << p.error().sentence();
    std::vector<std::uint64_t> trace;
    for (const std::uint64_t k : {3, 1, 4, 1, 5}) {
        const auto i = trace.size() / 4;
        for (const auto a : {1000 + i, k, k, 1000 + i}) trace.push_back(a);
    }
    for (std::uint64_t i = 0; i < 5; ++i)
        for (const auto a : {1000 + i, std::uint64_t{7}, std::uint64_t{7}}) trace.push_back(a);
    EXPECT_EQ(distances(p->profile), naive(trace));
}

TEST_F(FromSourceWithData, whole_numbers_in_disguise_are_followed) {
    struct Case {
        const char* text;
        std::function<std::vector<std::uint64_t>(int)> addresses;  // of what is touched, in order
    };
    const auto loop = [](int from, int to) {
        std::vector<std::uint64_t> out;
        for (int i = from; i < to; ++i) out.push_back(static_cast<std::uint64_t>(i));
        return out;
    };
    const auto each = [](int n, auto&& index) {
        std::vector<std::uint64_t> out;
        for (int i = 0; i < n; ++i) out.push_back(static_cast<std::uint64_t>(index(i)));
        return out;
    };
    const std::string before =
        "double floor(double), ceil(double); int abs(int); static volatile char A[9000]; void f(int n) "
        "{";
    const Case cases[] = {
        {"double x = n; for (int i = 0; i < x; i++) A[i] = 1;", [&](int n) { return loop(0, n); }},
        {"float x = n; for (int i = 0; i <= x; i++) A[i] = 1;", [&](int n) { return loop(0, n + 1); }},
        {"double x = n + 3; for (int i = 0; x - 1 > i; i++) A[i] = 1;",
         [&](int n) { return loop(0, n + 2); }},
        {"for (int i = floor(n / 2.0); i < ceil(n / 3.0) * 2; i++) A[i] = 1;",
         [&](int n) { return loop(n / 2, (n + 2) / 3 * 2); }},
        {"for (int i = 0; i < n * 0.5; i++) A[i] = 1;", [&](int n) { return loop(0, n / 2 + 1); }},
        {"for (int i = 0; i <= n * 0.5; i++) A[i] = 1;", [&](int n) { return loop(0, n / 2 + 1); }},
        {"for (int i = 0; i < (n + 1) / 4.0; i++) A[i] = 1;",
         [&](int n) { return loop(0, (n + 1) / 4); }},
        {"for (int i = 0; i <= (n + 1) / 4.0; i++) A[i] = 1;",
         [&](int n) { return loop(0, (n + 1) / 4 + 1); }},
        {"for (int i = 0; n / 3.0 > i; i++) A[i] = 1;", [&](int n) { return loop(0, n / 3 + 1); }},
        {"for (int i = 0; n / 3.0 >= i; i++) A[i] = 1;", [&](int n) { return loop(0, n / 3 + 1); }},
        {"for (int i = 0; (n + 1) / 4.0 >= i; i++) A[i] = 1;",
         [&](int n) { return loop(0, (n + 1) / 4 + 1); }},
        {"for (int i = 50; i > (n - 120) / 4.0; i--) A[100 + i] = 1;",
         [&](int n) { return each(50 - (n - 120) / 4 + 1, [](int i) { return 150 - i; }); }},
        {"for (int i = 50; i >= (n + 1) / 4.0; i--) A[i] = 1;",
         [&](int n) { return each(50 - (n + 1) / 4 + 1, [](int i) { return 50 - i; }); }},
        {"for (int i = 0; i < n; i++) A[(int)(i * 0.25)] = 1;",
         [&](int n) { return each(n, [](int i) { return i / 4; }); }},
        {"for (int i = 0; i < n; i++) A[500 + (int)floor((i - 40) / 7.0)] = 1;",
         [&](int n) { return each(n, [](int i) { return 500 + std::floor((i - 40) / 7.0); }); }},
        {"for (int i = 0; i < n; i++) A[500 + (int)((i - 40) / 7.0)] = 1;",
         [&](int n) { return each(n, [](int i) { return 500 + (i - 40) / 7; }); }},
        {"for (int i = 0; i < n; i++) A[500 + (int)ceil((40 - i) / 7.0)] = 1;",
         [&](int n) { return each(n, [](int i) { return 500 + std::ceil((40 - i) / 7.0); }); }},
        {"for (int i = 0; i < n; i++) A[abs(i - 30)] = 1;",
         [&](int n) { return each(n, [](int i) { return std::abs(i - 30); }); }},
        {"for (unsigned i = 0; i < n; i++) A[__builtin_popcount(i * 77)] = 1;",
         [&](int n) { return each(n, [](unsigned i) { return std::popcount(i * 77); }); }},
        {"for (unsigned i = 1; i <= n; i++) A[__builtin_ctz(i)] = 1;",
         [&](int n) { return each(n, [](unsigned i) { return std::countr_zero(i + 1); }); }},
        {"for (unsigned i = 1; i <= n; i++) A[__builtin_clz(i * 999)] = 1;",
         [&](int n) { return each(n, [](unsigned i) { return std::countl_zero((i + 1) * 999); }); }},
        {"for (unsigned long i = 1; i <= n; i++) A[__builtin_clzl(i) + __builtin_ctzl(i * 8)] = 1;",
         [&](int n) {
             return each(n, [](std::uint64_t i) {
                 return std::countl_zero(i + 1) + std::countr_zero((i + 1) * 8);
             });
         }},
        {"static int T[2][3] = {{5, 1, 2}, {0, 4, 3}}; for (int i = 0; i < n; i++) A[T[i % 2][i % 3]] "
         "= 1;",
         nullptr},
        {"static int last; for (int i = 0; i < n; i++) { A[last] = 1; last = (last + 3) & 15; }",
         nullptr},
    };
    // An argument in floating point that decides is given as an integer.
    for (const std::string type : {"double", "float"})
        for (const auto& [bound, end] : {std::pair{"n", 83}, {"n / 2", 42}, {"3 * n - 1", 248}}) {
            const auto text = "static volatile char A[9000]; void f(" + type +
                              " n) { for (int i = 0; i < " + bound + "; i++) A[i] = 1; }";
            const auto p = predict(request(text, "f", {{"n", 83}}));
            if (!p && type == "float") continue;  // quotients of floats are not followed
            ASSERT_TRUE(p) << text << p.error().sentence();
            EXPECT_EQ(p->certainty(), Certainty::exact) << text;
            EXPECT_EQ(distances(p->profile), naive(loop(0, end))) << text;
        }
    for (const Case& c : cases) {
        auto r = request(before + c.text + "}", "f", {{"n", 83}});
        const auto p = predict(r);
        ASSERT_TRUE(p) << c.text << p.error().sentence();
        EXPECT_EQ(p->certainty(), Certainty::exact) << c.text;
        if (c.addresses) {
            EXPECT_EQ(distances(p->profile), naive(c.addresses(83))) << c.text;
        }
    }
}

// Beyond 2^24 a float is no longer the integer it was made from.
TEST_F(FromSourceWithData, floats_that_round_are_not_called_exact) {
    auto r = request(
        "static volatile char A[64]; void f(int n) { for (int i = n; i < (float)n + 3; i++) A[i & 31] "
        "= 1; }",
        "f", {{"n", (1 << 24) + 1}});
    const auto p = predict(r);
    EXPECT_TRUE(!p || p->certainty() != Certainty::exact);
    r.parameters["n"] = 1000;
    const auto small = predict(r);
    ASSERT_TRUE(small);
    EXPECT_EQ(small->certainty(), Certainty::exact);
    EXPECT_EQ(small->profile.accesses, 3);
}

TEST_F(FromSourceWithData, functions_are_found_by_the_names_people_write) {
    const std::string text =
        "namespace lin { template <class T> void scale(T *x, int n) { for (int i = 0; i < n; i++) x[i] "
        "*= 2; }"
        " template void scale<float>(float *, int); template void scale<double>(double *, int);"
        " struct Grid { double *d; void fill(int n) { for (int i = 0; i < n; i++) d[i] = 1; } }; }"
        " template <class T> T sum(const T *x, int n) { T s{}; for (int i = 0; i < n; i++) s += x[i]; "
        "return s; }"
        " void twice(double *x, int n) { auto step = [&](int i) { x[i] += 1; }; for (int t = 0; t < 2; "
        "t++)"
        " for (int i = 0; i < n; i++) step(i); }";
    for (const auto& [name, accesses] : std::map<std::string, double>{{"lin::scale<float>", 80},
                                                                      {"scale<double>", 80},
                                                                      {"sum<long>", 40},
                                                                      {"twice", 160},
                                                                      {"twice(double*, int)", 160}}) {
        const auto p = predict(request(text, name, {{"n", 40}}, ".cpp"));
        ASSERT_TRUE(p) << name << p.error().sentence();
        EXPECT_EQ(p->profile.accesses, accesses) << name;
    }
    const auto several = predict(request(text, "scale", {{"n", 40}}, ".cpp"));
    ASSERT_FALSE(several);
    EXPECT_NE(several.error().sentence().find("several functions"), std::string::npos)
        << several.error().sentence();
    const auto none = predict(request(text, "scales", {{"n", 40}}, ".cpp"));
    ASSERT_FALSE(none);
    EXPECT_NE(none.error().sentence().find("lin::scale<float>"), std::string::npos)
        << none.error().sentence();
}

// A vector's elements lie where a pointer says that nobody here wrote; static pointers start as null.
TEST_F(FromSourceWithData, pointers_in_memory_are_followed) {
    const std::string text =
        "#include <vector>\nstruct N { N *next; int v; }; static N *head, *bucket[16]; N pool[200];"
        " void fill(std::vector<double> &v, int n) { for (int i = 0; i < n; i++) v[i] = 1; }"
        " void rows(std::vector<std::vector<double>> &v, int n) { for (int t = 0; t < 2; t++)"
        " for (int i = 0; i < n; i++) for (int j = 0; j < n; j++) v[i][j] = t; }"
        " int list(int n) { int s = 0; for (int i = 0; i < n; i++) { pool[i].next = head; head = "
        "&pool[i]; }"
        " for (N *p = head; p; p = p->next) s += p->v; return s; }"
        " int table(int n) { int s = 0; for (int i = 0; i < n; i++) { pool[i].next = bucket[i % 16];"
        " bucket[i % 16] = &pool[i]; } for (N *p = bucket[3]; p; p = p->next) s += p->v; return s; }";
    // Elements and the pointers to them; the list's 100 nodes and its head.
    for (const auto& [name, distinct] : std::map<std::string, double>{
             {"fill", 41}, {"rows", 1 + 40 + 1600}, {"list", 201}, {"table", 16 + 40 + 3}}) {
        auto r = request(text, name, {{"n", name == "list" ? 100 : 40}}, ".cpp");
        const auto p = predict(r);
        ASSERT_TRUE(p) << name << p.error().sentence();
        EXPECT_EQ(p->certainty(), Certainty::exact) << name;
        EXPECT_EQ(p->profile.reuse.cold, distinct) << name;
        // Where the arrays start is the allocator's choice.
        if (name != "fill") continue;
        r.granularity = 64;
        const auto lines = predict(r);
        ASSERT_TRUE(lines);
        EXPECT_EQ(lines->certainty(), Certainty::estimated);
    }
}

TEST_F(FromSourceWithData, a_run_gives_what_decides) {
    const char* const text =
        "#include <stdlib.h>\n"
        "double sum; int start[100]; static void spmv(int n, const int *start, const int *column,"
        " const double *a, const double *x, double *y) {"
        " for (int i = 0; i < n; i++) { double s = 0;"
        " for (int k = start[i]; k < start[i + 1]; k++) s += a[k] * x[column[k]]; y[i] = s; } }"
        "int main(int argc, char **argv) { int n = atoi(argv[1]); int *column = malloc(4 * 3 * n);"
        " double *a = calloc(3 * n, 8), *x = calloc(n, 8), *y = calloc(n, 8);"
        " for (int i = 0; i <= n; i++) start[i] = 3 * i;"
        " for (int k = 0; k < 3 * n; k++) column[k] = k * k % n;"
        " for (int t = 0; t < 2; t++) { spmv(n, start, column, a, x, y); column[0] = n - 1; }"
        " return (int)y[0]; }";
    auto r = request(text, "spmv", {});
    r.record = std::vector<std::string>{"30"};
    const auto recorded = predict(r);
    ASSERT_TRUE(recorded) << recorded.error().sentence();
    EXPECT_EQ(recorded->certainty(), Certainty::exact);
    std::string start, column;
    for (int i = 0; i <= 30; i++) start += std::to_string(3 * i) + " ";
    for (int k = 0; k < 90; k++) column += std::to_string(k * k % 30) + " ";
    auto given = request(text, "spmv", {{"n", 30}});
    given.data = {{"start", file("_start.txt", start)}, {"column", file("_column.txt", column)}};
    const auto expected = predict(given);
    ASSERT_TRUE(expected) << expected.error().sentence();
    EXPECT_EQ(distances(recorded->profile), distances(expected->profile));
    // What the run did not read is not made up.
    r.parameters = {{"n", 31}};
    const auto further = predict(r);
    if (further) EXPECT_NE(further->certainty(), Certainty::exact);
    r.record = std::vector<std::string>{"0"};
    r.source.function = "main";
    r.parameters.clear();
    (void)predict(r);  // any answer, and no crash
}

TEST_F(FromSourceWithData, threads_of_parallel_loops_have_their_own_stacks) {
    const char* const text =
        "double A[64], B[64]; void f(int n) { for (int t = 0; t < 2; t++) {\n"
        "#pragma omp parallel for\n"
        "for (int i = 0; i < n; i++) B[i] = A[i];\n"
        "} }";
    auto r = request(text, "f", {{"n", 10}});
    const auto sequence = predict(r);
    ASSERT_TRUE(sequence) << sequence.error().sentence();
    EXPECT_EQ(distances(sequence->profile), (Distances{{-1, 20}, {19, 20}}));
    r.threads = 4;  // 3, 3, 2 and 2 iterations
    const auto parallel = predict(r);
    ASSERT_TRUE(parallel) << parallel.error().sentence();
    EXPECT_EQ(parallel->certainty(), Certainty::estimated);
    EXPECT_EQ(distances(parallel->profile), (Distances{{-1, 20}, {5, 12}, {3, 8}}));
    r = request(
        std::string(text).replace(std::string(text).find("for\n"), 4, "for schedule(static, 1)\n"), "f",
        {{"n", 9}});
    r.threads = 4;  // 3, 2, 2 and 2
    const auto chunks = predict(r);
    ASSERT_TRUE(chunks) << chunks.error().sentence();
    EXPECT_EQ(distances(chunks->profile), (Distances{{-1, 18}, {5, 6}, {3, 12}}));
    r = request(
        std::string(text).replace(std::string(text).find("for\n"), 4, "for schedule(dynamic)\n"), "f",
        {{"n", 9}});
    r.threads = 4;
    EXPECT_FALSE(predict(r));
}

}  // namespace
}  // namespace revisit::predict
