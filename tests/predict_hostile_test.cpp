// Kernels that were called exact and were not, or would be: the certificate has to see through them.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "predict/extremes.h"
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

TEST(Hostile, kernels_that_change_beyond_the_samples_are_never_called_exact) {
    setenv("REVISIT_SLICE", REVISIT_TEST_SLICER, 1);
    if (access(REVISIT_TEST_SLICER, X_OK) != 0) GTEST_SKIP() << "built without LLVM 19";
    const auto path = ::testing::TempDir() + "revisit_hostile_" + std::to_string(getpid()) + ".c";
    std::size_t tried = 0;
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
        EXPECT_TRUE(!p || !p->profile.exact.value_or(true)) << k.name;
    }
    EXPECT_GT(tried, 20u);
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
