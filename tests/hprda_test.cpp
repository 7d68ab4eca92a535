#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "random_traces.h"
#include "revisit/revisit.h"

namespace revisit {
namespace {

EngineOptions tuned(unsigned thread_trace, unsigned block_threads, bool adjust = true) {
    EngineOptions options;
    options.granularity = 1;
    options.bins = Binning::exact();
    options.hprda.thread_trace = thread_trace;
    options.hprda.block_threads = block_threads;
    options.hprda.adjust = adjust;
    return options;
}

double count_at(const Profile& profile, std::uint64_t distance) {
    for (const Bin& bin : profile.reuse.bins)
        if (bin.low == distance) return bin.count;
    return 0;
}

// The paper's Figures 6 and 8: 16 accesses by three threads. Merging gives a 5 and 1, b 5 and 1, g 6;
// the true distance of g is 4.
TEST(Hprda, merges_the_paper_example) {
    const std::string letters = "dacbcgefafbabaga";
    // The figure's third trace begins at access 13, the others have six.
    std::vector<std::uint64_t> blocks(letters.begin(), letters.end());
    Profile profile = analyze(blocks, "hprda", tuned(6, 3, false)).value();
    EXPECT_EQ(profile.reuse.cold, 7);
    EXPECT_EQ(count_at(profile, 6), 1);  // g, two blocks counted twice
    EXPECT_EQ(count_at(profile, 5), 2);  // a and b into the second trace
    Profile truth = analyze(blocks, "naive", tuned(6, 3)).value();
    EXPECT_EQ(count_at(truth, 6), 0);
    EXPECT_EQ(profile.reuse.total(), truth.reuse.total());
}

TEST(Hprda, is_exact_within_one_thread) {
    for (const auto& trace : testing::small_traces(41)) {
        Profile profile = analyze(trace.blocks, "hprda", tuned(60000, 1)).value();
        EXPECT_EQ(profile.reuse, analyze(trace.blocks, "naive", tuned(60000, 1)).value().reuse)
            << trace.name;
    }
}

// Two traces side by side: nothing lies between, so nothing is counted twice but what both have.
TEST(Hprda, totals_agree_and_threads_do_not_matter) {
    for (const auto& trace : testing::small_traces(42)) {
        EngineOptions options = tuned(50, 4);
        Profile one = analyze(trace.blocks, "hprda", options).value();
        options.threads = 3;
        Profile three = analyze(trace.blocks, "hprda", options).value();
        EXPECT_EQ(one.reuse, three.reuse) << trace.name;
        EXPECT_EQ(one.reuse.total(), static_cast<double>(trace.blocks.size())) << trace.name;
        Profile truth = analyze(trace.blocks, "naive", options).value();
        EXPECT_EQ(one.reuse.cold, truth.reuse.cold) << trace.name;
    }
}

// Whether that is closer to the truth depends on the trace; docs/benchmarks.md has both.
TEST(Hprda, adjusted_distances_do_not_exceed_the_blocks_there_are) {
    std::mt19937_64 random(1);
    std::vector<std::uint64_t> blocks(200000);
    for (auto& block : blocks) block = random() % 5000;
    EngineOptions options = tuned(512, 8);
    EXPECT_LE(analyze(blocks, "hprda", options).value().reuse.bins.back().low, 5000);
    options.hprda.adjust = false;
    EXPECT_GT(analyze(blocks, "hprda", options).value().reuse.bins.back().low, 5000);
}

TEST(Hprda, what_it_cannot_do_is_said) {
    EXPECT_FALSE(make_engine("hprda", tuned(0, 64)));
    EXPECT_FALSE(make_engine("hprda", tuned(70000, 64)));
    EngineOptions options;
    options.sites = true;
    EXPECT_FALSE(make_engine("hprda", options));
}

}  // namespace
}  // namespace revisit
