#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "report/knees.h"
#include "revisit/revisit.h"

namespace revisit {
namespace {

// The binomial sum with plain factorial arithmetic, for distances small enough for it.
double sdcm_by_hand(int distance, int ways, int blocks) {
    double p = static_cast<double>(ways) / blocks, sum = 0;
    for (int a = 0; a < std::min(ways, distance + 1); ++a) {
        double choose = 1;
        for (int i = 0; i < a; ++i) choose *= static_cast<double>(distance - i) / (i + 1);
        sum += choose * std::pow(p, a) * std::pow(1 - p, distance - a);
    }
    return sum;
}

TEST(Cache, set_associative_hit_probability_is_the_binomial_sum) {
    for (int blocks : {16, 64, 512})
        for (int ways : {1, 2, 4, 8})
            for (int distance : {0, 1, 3, 7, 8, 20, 100, 300}) {
                CacheSpec cache{static_cast<std::uint64_t>(blocks) * 64,
                                static_cast<std::uint64_t>(ways), 64, "c"};
                EXPECT_NEAR(hit_probability(cache, distance), sdcm_by_hand(distance, ways, blocks),
                            1e-12);
            }
}

TEST(Cache, far_distances_neither_overflow_nor_hit) {
    auto cache = CacheSpec::parse("32M:16:64").value();
    EXPECT_EQ(hit_probability(cache, 1e9), 0);
    EXPECT_EQ(hit_probability(cache, 1e18), 0);
    EXPECT_EQ(hit_probability(cache, 0), 1);
    double previous = 1;
    for (double distance = 1; distance < 1e9; distance *= 1.3) {
        double hit = hit_probability(cache, distance);
        EXPECT_LE(hit, previous + 1e-9);
        EXPECT_GE(hit, 0);
        previous = hit;
    }
}

TEST(Cache, specs) {
    auto spec = CacheSpec::parse("64K:32:32").value();
    EXPECT_EQ(spec.bytes, 65536u);
    EXPECT_EQ(spec.blocks(), 2048u);
    EXPECT_EQ(spec.associativity(), 32u);
    EXPECT_EQ(CacheSpec::parse("1MiB:full:64").value().associativity(), 16384u);
    for (const char* bad : {"", "64K", "64K:8", "64K:8:0", "64K:0:64", "64K:7:64", "100:1:64", "x:1:64",
                            "0:1:64", "64:full:full"})
        EXPECT_FALSE(CacheSpec::parse(bad)) << bad;
}

TEST(Cache, prediction_counts_cold_as_misses_and_splits_bins) {
    Profile profile;
    profile.reuse = {10, 0, 0, 0, {{0, 1, 30, 0}, {4, 8, 40, 0}, {100, 101, 20, 0}}};
    CachePrediction prediction = predict_cache(profile, {6 * 64, 0, 64, "six blocks"});
    EXPECT_DOUBLE_EQ(prediction.hit_rate, (30 + 20) / 100.0);
    EXPECT_DOUBLE_EQ(prediction.miss_rate, 0.5);
    EXPECT_EQ(predict_cache(Profile{}, {64, 0, 64, "c"}).hit_rate, 0);
}

TEST(Cache, curve_falls_from_one_to_the_cold_share) {
    std::mt19937_64 random(1);
    std::vector<std::uint64_t> blocks(5000);
    for (auto& block : blocks) block = random() % 700;
    EngineOptions options;
    options.granularity = 1;
    Profile profile = analyze(blocks, "olken", options).value();
    auto curve = miss_ratio_curve(profile.reuse);
    EXPECT_EQ(curve.front().miss_rate, 1);
    EXPECT_NEAR(curve.back().miss_rate, profile.reuse.cold / 5000, 1e-12);
    for (std::size_t i = 1; i < curve.size(); ++i) {
        EXPECT_LE(curve[i].miss_rate, curve[i - 1].miss_rate + 1e-12);
        EXPECT_GT(curve[i].blocks, curve[i - 1].blocks);
    }
}

TEST(Knees, two_loops_have_two_working_sets) {
    std::vector<std::uint64_t> blocks;
    for (int round = 0; round < 50; ++round)
        for (int i = 0; i < 100; ++i) blocks.push_back(i);
    for (int round = 0; round < 20; ++round)
        for (int i = 0; i < 3000; ++i) blocks.push_back(1000 + i);
    EngineOptions options;
    options.granularity = 1;
    auto knees = working_set_knees(analyze(blocks, "olken", options)->reuse);
    ASSERT_EQ(knees.size(), 2u);
    EXPECT_EQ(knees[0].blocks, 4096);
    EXPECT_EQ(knees[1].blocks, 128);
}

}  // namespace
}  // namespace revisit
