// Functions that are not C or C++: Fortran where flang 19 is installed, Rust by its LLVM IR. Skipped
// where the compiler is missing.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include "predict/predict.h"

namespace revisit::predict {
namespace {

// What a shell prints, and whether the command went well.
struct Printed {
    std::string text;
    bool fine = false;
};
Printed shell(const std::string& command) {
    Printed p;
    std::FILE* pipe = popen(("{ " + command + "; } 2>&1").c_str(), "r");
    if (pipe == nullptr) return p;
    std::array<char, 4096> buffer{};
    while (const auto n = std::fread(buffer.data(), 1, buffer.size(), pipe))
        p.text.append(buffer.data(), n);
    p.fine = pclose(pipe) == 0;
    return p;
}

constexpr int kNewestLlvm = 19;

class Languages : public ::testing::Test {
 protected:
    void SetUp() override {
        setenv("REVISIT_SLICE", REVISIT_TEST_SLICER, 1);
        if (access(REVISIT_TEST_SLICER, X_OK) != 0) GTEST_SKIP() << "built without LLVM 19";
    }
    void TearDown() override {
        for (const auto& f : files_) unlink(f.c_str());
    }
    std::string file(const std::string& name, const std::string& text = {}) {
        files_.push_back(::testing::TempDir() + "revisit_" + std::to_string(getpid()) + name);
        if (!text.empty()) std::ofstream(files_.back()) << text;
        return files_.back();
    }
    static Result<Prediction> predicted(const std::string& path, const std::string& function) {
        Request r;
        r.source.path = path;
        r.source.function = function;
        r.parameters = {{"n", 40}};
        r.granularity = 1;
        r.bins = Binning::exact();
        return predict(r);
    }
    std::vector<std::string> files_;
};

constexpr const char* kTransposeC =
    "void transpose(unsigned long n, double (*a)[64], double (*b)[64]) { for (int t = 0; t < 3; t++) "
    "for "
    "(unsigned long i = 0; i < n; i++) for (unsigned long j = 0; j < n; j++) b[j][i] += a[i][j]; }";

class Rust : public Languages {
 protected:
    void SetUp() override {
        Languages::SetUp();
        if (IsSkipped()) return;
        const char* given = std::getenv("REVISIT_RUSTC");
        rustc_ = given ? given : "rustc";
        const auto version = shell(rustc_ + " -vV");
        const auto at = version.text.find("LLVM version: ");
        if (!version.fine || at == std::string::npos) GTEST_SKIP() << "rustc is not installed";
        llvm_ = std::atoi(version.text.c_str() + at + 14);
    }
    std::string compiled(const std::string& kind) {
        const auto source = file(
            ".rs",
            "pub fn transpose(n: usize, a: &[[f64; 64]; 64], b: &mut [[f64; 64]; 64]) { for _ in 0..3 "
            "{ for i in 0..n { for j in 0..n { b[j][i] += a[i][j]; } } } }\n");
        const auto to = file(kind == "llvm-bc" ? ".bc" : ".ll");
        const auto done =
            shell(rustc_ + " --crate-type lib --crate-name k --emit=" + kind +
                  " -C debuginfo=2 -C opt-level=1 -C codegen-units=1 -o " + to + " " + source);
        EXPECT_TRUE(done.fine) << done.text;
        return to;
    }
    std::string rustc_;
    int llvm_ = 0;
};

TEST_F(Rust, bitcode_is_as_exact_as_the_same_function_in_c) {
    if (llvm_ > kNewestLlvm) GTEST_SKIP() << "rustc writes LLVM " << llvm_ << ", and 19 is read";
    const auto rust = predicted(compiled("llvm-bc"), "transpose");
    const auto c = predicted(file(".c", kTransposeC), "transpose");
    ASSERT_TRUE(rust) << rust.error().sentence();
    ASSERT_TRUE(c) << c.error().sentence();
    EXPECT_EQ(rust->certainty(), Certainty::exact);
    EXPECT_EQ(c->certainty(), Certainty::exact);
    EXPECT_EQ(rust->profile.accesses, 3 * 3 * 40 * 40);
    EXPECT_EQ(rust->profile.reuse, c->profile.reuse);
}

TEST_F(Rust, what_is_too_new_is_said_in_one_line) {
    if (llvm_ <= kNewestLlvm) GTEST_SKIP() << "rustc writes LLVM " << llvm_ << ", which is read";
    for (const char* kind : {"llvm-bc", "llvm-ir"}) {
        const auto path = compiled(kind);
        const auto answer = predicted(path, "transpose");
        ASSERT_FALSE(answer) << kind;
        const auto said = answer.error().sentence();
        EXPECT_NE(said.find("written by rustc 1."), std::string::npos) << said;
        EXPECT_NE(said.find("too new"), std::string::npos) << said;
        EXPECT_EQ(said.find('\n'), std::string::npos) << said;
        const auto seen =
            shell(std::string(REVISIT_PROGRAM) + " predict " + path + "; echo status $?").text;
        EXPECT_TRUE(seen.ends_with("\nstatus 2\n")) << seen;
        EXPECT_EQ(std::count(seen.begin(), seen.end(), '\n'), 2) << seen;
    }
}

class Fortran : public Languages {
 protected:
    void SetUp() override {
        Languages::SetUp();
        if (IsSkipped()) return;
        const char* given = std::getenv("REVISIT_FLANG");
        if (!shell((given ? std::string(given) : "flang-new-19") + " --version").fine)
            GTEST_SKIP() << "flang 19 (flang-new-19) is not installed";
    }
};

TEST_F(Fortran, procedures_go_by_their_names_and_touch_what_they_do_in_c) {
    const std::string body =
        "integer, intent(in) :: n\n real(8), intent(in) :: a(64,64)\n real(8), intent(inout) :: "
        "b(64,64)\n"
        "integer :: t, i, j\n do t = 1, 3\n do i = 1, n\n do j = 1, n\n b(i,j) = b(i,j) + a(j,i)\n end "
        "do\n end "
        "do\n end do\n end subroutine\n";
    const auto path = file(".f90", "module lin\n contains\n subroutine transpose(n, a, b)\n" + body +
                                       "end module\n subroutine plain(n, a, b)\n" + body);
    const auto c = predicted(file(".c", kTransposeC), "transpose");
    ASSERT_TRUE(c) << c.error().sentence();
    for (const char* name : {"transpose", "lin::transpose", "plain", "plain_"}) {
        const auto fortran = predicted(path, name);
        ASSERT_TRUE(fortran) << name << ": " << fortran.error().sentence();
        EXPECT_EQ(fortran->certainty(), Certainty::exact) << name;
        // The size lies behind a pointer, and is read again in each loop.
        EXPECT_EQ(fortran->profile.reuse.cold, c->profile.reuse.cold + 1) << name;
        for (const Object& o : fortran->profile.objects)
            if (o.name != "n") EXPECT_EQ(o.accesses, (o.name == "b" ? 2 : 1) * 3 * 40 * 40) << o.name;
    }
}

}  // namespace
}  // namespace revisit::predict
