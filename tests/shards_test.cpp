#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "revisit/revisit.h"

namespace revisit {
namespace {

double miss_ratio(const Profile& profile, double blocks) {
    double hits = 0;
    for (const Bin& bin : profile.reuse.bins)
        if (static_cast<double>(bin.low) < blocks) hits += bin.count;
    return 1 - hits / profile.reuse.total();
}

// Mean over cache sizes spaced evenly up to the number of blocks.
double curve_error(const Profile& truth, const Profile& estimate) {
    double sum = 0;
    constexpr int kSizes = 200;
    for (int i = 1; i <= kSizes; ++i) {
        const double blocks = truth.distinct * i / kSizes;
        sum += std::abs(miss_ratio(truth, blocks) - miss_ratio(estimate, blocks));
    }
    return sum / kSizes;
}

std::vector<std::uint64_t> zipf(std::size_t count, double blocks) {
    std::mt19937_64 random(8);
    std::vector<std::uint64_t> out(count);
    for (auto& block : out)
        block = static_cast<std::uint64_t>(
            std::exp(static_cast<double>(random() >> 11) * 0x1p-53 * std::log(blocks)));
    return out;
}

Profile estimate(const std::vector<std::uint64_t>& blocks, double rate,
                 std::uint64_t sample_blocks = 0) {
    EngineOptions options;
    options.granularity = 1;
    options.bins = Binning::log2(64);
    options.shards.rate = rate;
    options.shards.most_blocks = sample_blocks;
    auto profile = analyze(blocks, "shards", options);
    EXPECT_TRUE(profile) << (profile ? "" : profile.error().sentence());
    return profile.value_or(Profile{});
}

Profile exact_profile(const std::vector<std::uint64_t>& blocks) {
    EngineOptions options;
    options.granularity = 1;
    options.bins = Binning::log2(64);
    return analyze(blocks, "exact", options).value();
}

TEST(Shards, rate_one_is_exact) {
    auto blocks = zipf(20000, 3000);
    EXPECT_EQ(estimate(blocks, 1).reuse.bins.size(), exact_profile(blocks).reuse.bins.size());
    EXPECT_NEAR(curve_error(exact_profile(blocks), estimate(blocks, 1)), 0, 1e-9);
    EXPECT_NEAR(curve_error(exact_profile(blocks), estimate(blocks, 1, 100000)), 0, 1e-9);
}

TEST(Shards, one_percent_of_zipf_is_within_a_percent) {
    auto blocks = zipf(1 << 21, 1 << 18);
    Profile truth = exact_profile(blocks), guess = estimate(blocks, 0.01);
    EXPECT_LE(curve_error(truth, guess), 0.01);
    EXPECT_NEAR(guess.reuse.total(), truth.reuse.total(), 1);
    EXPECT_NEAR(guess.distinct / truth.distinct, 1, 0.1);
    EXPECT_NEAR(guess.sampled->period, 100, 0.01);
    EXPECT_FALSE(guess.notes.empty());
}

TEST(Shards, fixed_size_lowers_its_rate_and_stays_within_two_percent) {
    auto blocks = zipf(1 << 20, 1 << 17);
    Profile truth = exact_profile(blocks), guess = estimate(blocks, 1, 2000);
    EXPECT_LE(curve_error(truth, guess), 0.02);
    EXPECT_GT(guess.sampled->period, 10);
    EXPECT_LT(guess.sampled->samples, 1 << 20);
}

// Of the bins that hold a percent of all accesses or more, nearly all lie within their stated error.
TEST(Shards, stated_errors_cover_the_truth) {
    auto blocks = zipf(1 << 20, 1 << 17);
    EngineOptions options;
    options.granularity = 1;
    Profile truth = analyze(blocks, "exact", options).value();
    options.shards.rate = 0.05;
    int covered = 0, bins = 0;
    for (std::uint64_t seed = 1; seed <= 5; ++seed) {
        options.seed = seed;
        Profile guess = analyze(blocks, "shards", options).value();
        for (const Bin& bin : guess.reuse.bins) {
            if (bin.low < 1024) continue;  // below 1/rate, and the adjusted bin
            for (const Bin& real : truth.reuse.bins)
                if (real.low == bin.low && real.count > 10000) {
                    ++bins;
                    covered += std::abs(real.count - bin.count) <= bin.error;
                }
        }
    }
    EXPECT_GT(bins, 20);
    EXPECT_GE(covered, bins * 8 / 10);
}

TEST(Shards, seeds_change_the_sample_and_nothing_else_does) {
    auto blocks = zipf(50000, 10000);
    EXPECT_EQ(to_json(estimate(blocks, 0.1)), to_json(estimate(blocks, 0.1)));
    EXPECT_TRUE(estimate({}, 0.1).reuse.bins.empty());
}

TEST(Shards, what_it_cannot_do_is_said) {
    EngineOptions options;
    options.shards.rate = 0;
    EXPECT_FALSE(make_engine("shards", options));
    options.shards.rate = 0.5;
    options.time = true;
    EXPECT_FALSE(make_engine("shards", options));
}

}  // namespace
}  // namespace revisit
