// What sampling may cost: the budget of a run.
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "watch/outside/budget.h"
#include "watch/outside/moments.h"
#include "watch/outside/replay.h"

namespace revisit::watch::outside {
namespace {

constexpr std::uint64_t kSecond = 1000000000, kMillisecond = 1000000;

Budget four_percent_of(std::uint64_t ran) {
    Budget budget;
    budget.share = 40;
    budget.ran = ran;
    budget.usual_cost = kMillisecond;
    return budget;
}

TEST(WatchBudget, waits_for_nothing_within_the_share) {
    Budget budget = four_percent_of(10 * kSecond);
    budget.spent = 400 * kMillisecond;
    EXPECT_EQ(budget.wait(), 0);
    budget.spent = 450 * kMillisecond;
    EXPECT_GT(budget.wait(), 0);
    budget.share = 0;  // no limit
    EXPECT_EQ(budget.wait(), 0);
}

TEST(WatchBudget, samples_come_a_third_as_often_where_others_take_all) {
    Budget budget = four_percent_of(1000 * kSecond);
    budget.imposed = 100 * kSecond;
    budget.spent = 13 * kSecond;
    EXPECT_NEAR(budget.wait(), 3 * kMillisecond / 0.04, kMillisecond);
}

TEST(WatchBudget, what_samples_took_of_others_part_is_made_good_at_once) {
    Budget budget = four_percent_of(1000 * kSecond);
    budget.spent = 40500 * kMillisecond;  // allowed: 40011 ms
    EXPECT_NEAR(budget.wait(), 3 * kMillisecond / 0.04, kMillisecond);
    budget.imposed = 10 * kSecond;
    EXPECT_NEAR(budget.wait(), 10 * kSecond / 0.04, 10 * kSecond);
}

TEST(WatchBudget, switches_take_at_most_a_third_of_the_share) {
    Budget budget = four_percent_of(10 * kSecond);
    const std::uint64_t many = 130 * kMillisecond / Budget::kSwitchCost;
    EXPECT_EQ(budget.charge_switches(many, 0), many * Budget::kSwitchCost);
    EXPECT_FALSE(budget.switches_take_too_much());
    EXPECT_GT(budget.charge_switches(many / 10, 2), many / 10 * Budget::kSwitchCost);
    EXPECT_TRUE(budget.switches_take_too_much());
    EXPECT_EQ(budget.imposed, budget.switching);
}

// A loop that has 0.9 of every 4 ms, and samples every 4 ms: what 80 of them say differs from run to
// run by little more than what 80 moments drawn at random would.
TEST(WatchBudget, samples_do_not_fall_into_step_with_a_program) {
    constexpr double kRound = 4, kTurn = 0.9, kShare = kTurn / kRound;
    constexpr int kRuns = 400, kSamples = 80;
    std::mt19937_64 random(5);
    std::uniform_real_distribution<double> chance;
    double off = 0;
    for (int run = 0; run < kRuns; run++) {
        double now = kRound * chance(random), there = 0, all = 0;
        for (int i = 0; i < kSamples; i++) {
            const double period = Budget::out_of_step(kRound, chance(random));
            now += period;
            all += period;
            there += std::fmod(now, kRound) < kTurn ? period : 0;
        }
        off += std::pow(there / all - kShare, 2) / kRuns;
    }
    EXPECT_LT(std::sqrt(off), 1.4 * std::sqrt(kShare * (1 - kShare) / kSamples));
}

// A loop of 0.4 of every 5 ms that makes 1.3 accesses per nanosecond, and one that makes 0.1: most
// accesses are in the first, and a twelfth of the time.
TEST(WatchMoments, more_samples_where_accesses_are_made_fast_and_no_bias) {
    constexpr double kRound = 5, kTurn = 0.4, kSpacing = 8;  // milliseconds
    constexpr int kRuns = 300, kSamples = 60;
    constexpr std::uint64_t kFast = 0x1000, kSlow = 0x2000;
    std::mt19937_64 random(11);
    std::uniform_real_distribution<double> evenly;
    double share = 0, in_fast = 0, all_moments = 0;
    for (int run = 0; run < kRuns; run++) {
        Moments moments;
        moments.measured(kSlow, 0.1);
        moments.measured(kFast, 1.3);
        double now = kRound * evenly(random), fast = 0, slow = 0;
        for (int taken = 0; taken < kSamples;) {
            const double period = Budget::out_of_step(kSpacing * moments.taken(), evenly(random));
            now += period;
            all_moments++;
            const bool is_fast = std::fmod(now, kRound) < kTurn;
            const double chance = moments.chance(is_fast ? kFast : kSlow);
            if (evenly(random) >= chance) continue;
            taken++;
            (is_fast ? fast : slow) += period / chance;
            in_fast += is_fast;
        }
        share += fast / (fast + slow) / kRuns;
    }
    EXPECT_NEAR(share, kTurn / kRound, 0.006);
    EXPECT_LT(all_moments / (kRuns * kSamples), 5);
    // Where the loops' accesses are known, so many samples taken evenly say as much of them.
    auto worth = [](double part_of_samples) {
        constexpr double kOfFast = 0.53;
        return kSamples / (kOfFast * kOfFast / part_of_samples +
                           (1 - kOfFast) * (1 - kOfFast) / (1 - part_of_samples));
    };
    EXPECT_GT(worth(in_fast / (kRuns * kSamples)), 1.8 * worth(kTurn / kRound));
}

TEST(WatchMoments, all_are_taken_where_no_rate_is_known_or_all_are_alike) {
    Moments moments;
    EXPECT_EQ(moments.chance(0x1000), 1);
    moments.measured(0x1000, 2);
    for (int i = 0; i < 100; i++) EXPECT_EQ(moments.chance(0x1000), 1);
    EXPECT_EQ(moments.taken(), 1);
}

TEST(WatchBudget, stops_of_threads_that_others_wait_for_count_twice) {
    EXPECT_EQ(Budget::felt(kMillisecond, 20000, kSecond), 2 * kMillisecond);
    EXPECT_EQ(Budget::felt(kMillisecond, 200, kSecond), kMillisecond);
}

TEST(WatchBudget, heap_library_counts_by_its_part_of_the_window) {
    AccessLog window;
    for (std::uint64_t i = 0; i < 100; i++) window.add(64 * i, 8, i < 2 ? 0x2000 : 0x1000, true);
    auto is_in_library = [](std::uint64_t pc) { return pc == 0x2000; };
    Budget budget;
    budget.charge_heap_library(window, 30 * kMillisecond, is_in_library);
    EXPECT_NEAR(static_cast<double>(budget.imposed), 0.034 * 30 * kMillisecond, 1);
    EXPECT_EQ(budget.switching, 0);
    budget.charge_heap_library(AccessLog(), kSecond, is_in_library);
    EXPECT_NEAR(static_cast<double>(budget.imposed), 0.034 * 30 * kMillisecond, 1);
}

// 83 us of an interpreter that is in the same state after each round, of a list that misses, of an
// allocator that waits for a page, of a loop that only computes.
TEST(WatchReplayed, counts_that_do_not_explain_the_time_are_not_believed) {
    auto count = [](std::uint64_t accesses, double executed) {
        machine::ReplayCount counted;
        counted.accesses = accesses;
        counted.executed = executed;
        return counted;
    };
    constexpr std::uint64_t kTime = 83000;
    EXPECT_TRUE(Replayer::stood_still(count(716, 2500), kTime, 0.04));
    EXPECT_FALSE(Replayer::stood_still(count(716, 2500), kTime, 0.5));
    EXPECT_TRUE(Replayer::stood_still(count(40, 150), kTime, 0.5));
    EXPECT_FALSE(Replayer::stood_still(count(10, 20000), kTime, 0));
    EXPECT_FALSE(Replayer::stood_still(count(0, 0), kTime, 0)) << "not counted";
}

}  // namespace
}  // namespace revisit::watch::outside
