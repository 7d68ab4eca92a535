#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "random_traces.h"
#include "revisit/revisit.h"

namespace revisit {
namespace {

constexpr TimeModel kModels[] = {TimeModel::expected, TimeModel::shen, TimeModel::shen_basic};

Histogram converted(const Histogram& time, double distinct, TimeModel model,
                    const Binning& bins = Binning::exact()) {
    auto reuse = reuse_from_time(time, distinct, model, bins);
    EXPECT_TRUE(reuse) << (reuse ? "" : reuse.error().message);
    return reuse.value_or(Histogram{});
}

void expect_sound(const Histogram& reuse, const Histogram& time, double distinct) {
    EXPECT_NEAR(reuse.total(), time.total(), 1e-9 * time.total() + 1e-12);
    EXPECT_EQ(reuse.cold, time.cold);
    std::uint64_t at = 0;
    for (const Bin& bin : reuse.bins) {
        EXPECT_TRUE(std::isfinite(bin.count));
        EXPECT_GT(bin.count, 0);
        EXPECT_GE(bin.low, at);
        EXPECT_LT(bin.low, bin.high);
        EXPECT_LT(static_cast<double>(bin.low), std::max(1.0, distinct));
        at = bin.high;
    }
}

TEST(TimeModels, counts_are_conserved_and_distances_stay_below_the_blocks) {
    for (const auto& trace : testing::small_traces(5)) {
        EngineOptions options;
        options.granularity = 1;
        options.bins = Binning::exact();
        options.time = true;
        Profile truth = analyze(trace.blocks, "olken", options).value();
        for (TimeModel model : kModels)
            for (const char* bins : {"exact", "log2", "log2:8", "linear:7"}) {
                SCOPED_TRACE(trace.name + " " + bins);
                expect_sound(
                    converted(*truth.time, truth.distinct, model, Binning::parse(bins).value()),
                    *truth.time, truth.distinct);
            }
    }
}

TEST(TimeModels, any_binning_any_scale) {
    std::mt19937_64 random(3);
    for (double distinct : {2.0, 3.0, 100.0, 1e6, 1e10})
        for (int round = 0; round < 20; ++round) {
            Histogram time;
            time.cold = static_cast<double>(random() % 1000);
            std::uint64_t at = 1;
            while (at < 1'000'000'000'000) {
                std::uint64_t width = 1 + random() % at;
                if (random() % 3 != 0)
                    time.bins.push_back(
                        {at, at + width, std::ldexp(1, static_cast<int>(random() % 40)), 0});
                at += width + (random() % 2 != 0 ? random() % at : 0);
            }
            for (TimeModel model : {TimeModel::expected, TimeModel::shen})
                for (const char* bins : {"log2", "log2:8", "linear:1000000", "exact"})
                    if (distinct <= 1e6 || bins[0] == 'l')
                        expect_sound(converted(time, distinct, model, Binning::parse(bins).value()),
                                     time, distinct);
        }
}

TEST(TimeModels, longer_times_never_give_shorter_distances) {
    std::mt19937_64 random(4);
    Histogram time;
    time.cold = 50;
    for (std::uint64_t d = 1; d < 400; d += 1 + random() % 5)
        time.bins.push_back({d, d + 1, static_cast<double>(random() % 100), 0});
    for (TimeModel model : kModels) {
        double previous = -1;
        for (std::size_t i = 0; i < time.bins.size(); ++i) {
            // One more reuse at this time, and where it went: the mean moves by a single access.
            Histogram more = time;
            more.bins[i].count += 1e-3;
            double mean[2];
            for (int k = 0; k < 2; ++k) {
                Histogram reuse = converted(k == 0 ? time : more, 120, model);
                mean[k] = 0;
                for (const Bin& bin : reuse.bins) mean[k] += static_cast<double>(bin.low) * bin.count;
            }
            if (time.bins[i].count == 0) continue;
            EXPECT_GT(mean[1] - mean[0], previous - 0.35) << i;
            previous = mean[1] - mean[0];
        }
    }
}

TEST(TimeModels, a_cyclic_scan_comes_out_exactly_where_nothing_is_random) {
    for (std::uint64_t blocks : {1, 2, 10, 1000, 70000}) {
        auto loops = 20.0;
        Histogram time{static_cast<double>(blocks),
                       0,
                       0,
                       0,
                       {{blocks, blocks + 1, loops * static_cast<double>(blocks), 0}}};
        Histogram reuse = converted(time, static_cast<double>(blocks), TimeModel::expected);
        ASSERT_EQ(reuse.bins.size(), 1u);
        EXPECT_EQ(reuse.bins[0].low, blocks - 1);
    }
}

TEST(TimeModels, neighbours_that_take_turns_are_at_distance_one) {
    Histogram time{2, 0, 0, 0, {{2, 3, 1000, 0}}};
    EXPECT_EQ(converted(time, 2, TimeModel::expected).bins, (std::vector<Bin>{{1, 2, 1000, 0}}));
}

// The scalable form on bars of width 1 is the basic form, but for the Normal in place of the binomial.
TEST(TimeModels, scalable_agrees_with_basic_on_unit_bars) {
    for (std::uint64_t seed = 1; seed <= 3; ++seed) {
        std::mt19937_64 random(seed);
        std::vector<std::uint64_t> blocks(20000);
        for (auto& block : blocks) block = (random() % 400) * (random() % 400) / 400;
        EngineOptions options;
        options.granularity = 1;
        options.bins = Binning::exact();
        options.time = true;
        Profile truth = analyze(blocks, "olken", options).value();
        Histogram scalable = converted(*truth.time, truth.distinct, TimeModel::shen);
        Histogram basic = converted(*truth.time, truth.distinct, TimeModel::shen_basic);
        EXPECT_GT(accuracy(basic, scalable), 0.985);
        EXPECT_GT(accuracy(truth.reuse, scalable), 0.9);
        // Bars of one percent instead of one access move little.
        Histogram coarse = truth.time->rebin(Binning::log2(64));
        EXPECT_GT(accuracy(basic, converted(coarse, truth.distinct, TimeModel::shen)), 0.97);
        EXPECT_GT(accuracy(converted(*truth.time, truth.distinct, TimeModel::expected),
                           converted(coarse, truth.distinct, TimeModel::expected)),
                  0.95);
    }
}

TEST(TimeModels, independent_accesses_are_what_the_models_are_made_for) {
    std::mt19937_64 random(8);
    std::vector<std::uint64_t> blocks(200000);
    for (auto& block : blocks) block = random() % 1000;
    EngineOptions options;
    options.granularity = 1;
    options.bins = Binning::log2(8);
    options.time = true;
    Profile truth = analyze(blocks, "olken", options).value();
    for (TimeModel model : {TimeModel::expected, TimeModel::shen}) {
        options.time_model = model;
        Profile estimate = analyze(blocks, "time", options).value();
        EXPECT_GT(accuracy(truth.reuse, estimate.reuse), 0.97);
        EXPECT_EQ(estimate.time, truth.time);
        EXPECT_EQ(estimate.reuse.total(), 200000);
    }
}

// The one thing all models assume: that windows of one length are alike. Two phases, one over few
// blocks and one over many, have reuses of equal time distance and very different reuse distance.
TEST(TimeModels, phases_break_the_independence_assumption) {
    std::mt19937_64 random(9);
    std::vector<std::uint64_t> blocks;
    for (int i = 0; i < 100000; ++i) blocks.push_back(i % 2 == 0 ? i / 2 % 1000 : 5000 + random() % 4);
    for (int i = 0; i < 100000; ++i) blocks.push_back(10000 + i % 2000);
    EngineOptions options;
    options.granularity = 1;
    options.bins = Binning::log2(8);
    Profile truth = analyze(blocks, "olken", options).value();
    for (TimeModel model : {TimeModel::expected, TimeModel::shen}) {
        options.time_model = model;
        EXPECT_LT(accuracy(truth.reuse, analyze(blocks, "time", options)->reuse), 0.75);
    }
    // Asking each phase by itself mends it.
    options.time_model = TimeModel::phases;
    EXPECT_GT(accuracy(truth.reuse, analyze(blocks, "time", options)->reuse), 0.88);
}

// What no model of time distances can know: which blocks a window holds. Two loops of one period, one
// over many blocks once, one over few many times, in turns too short to be phases.
TEST(TimeModels, loops_in_quick_turns_stay_beyond_every_model) {
    std::vector<std::uint64_t> blocks;
    for (int turn = 0; turn < 200; ++turn) {
        for (int i = 0; i < 1200; ++i) blocks.push_back(i % 400);
        for (int i = 0; i < 1200; ++i) blocks.push_back(i % 400 < 200 ? 1000 + i % 2 : 2000 + i % 400);
    }
    EngineOptions options;
    options.granularity = 1;
    options.bins = Binning::log2(8);
    Profile truth = analyze(blocks, "olken", options).value();
    for (const TimeModelEntry& entry : time_models()) {
        options.time_model = entry.model;
        EXPECT_LT(accuracy(truth.reuse, analyze(blocks, "time", options)->reuse), 0.9) << entry.name;
    }
}

TEST(TimeModels, phases_conserve_counts_and_one_phase_is_the_expected_model) {
    for (const auto& trace : testing::small_traces(6)) {
        EngineOptions options;
        options.granularity = 1;
        options.bins = Binning::exact();
        options.time = true;
        Profile truth = analyze(trace.blocks, "olken", options).value();
        std::vector<TimePhase> phases{{0, truth.accesses, *truth.time}};
        Histogram one = reuse_from_phases(phases, truth.distinct, Binning::exact());
        expect_sound(one, *truth.time, truth.distinct);
        // Cold accesses are all there are at the start, which one phase knows only through its length.
        if (trace.blocks.size() > 20 * truth.distinct)
            EXPECT_GT(
                smoothed_accuracy(converted(*truth.time, truth.distinct, TimeModel::expected), one),
                0.9)
                << trace.name;
        // The engine's own phases, of a run long enough to have several.
        std::vector<std::uint64_t> repeated;
        for (int i = 0; i < 12 && !trace.blocks.empty(); ++i)
            for (std::uint64_t block : trace.blocks) repeated.push_back(block + (i / 6) * 7);
        Profile estimate = analyze(repeated, "time", options).value();
        EXPECT_EQ(estimate.reuse.total(), static_cast<double>(repeated.size())) << trace.name;
        EXPECT_EQ(estimate.time, analyze(repeated, "olken", options)->time) << trace.name;
    }
}

TEST(TimeModels, phases_are_joined_when_there_are_too_many) {
    std::vector<std::uint64_t> blocks(2'500'000);
    for (std::size_t i = 0; i < blocks.size(); ++i) blocks[i] = i % 100;
    EngineOptions options;
    options.granularity = 1;
    options.bins = Binning::log2(8);
    Histogram reuse = analyze(blocks, "time", options)->reuse;
    EXPECT_EQ(reuse.cold, 100);
    ASSERT_EQ(reuse.bins.size(), 1u);
    EXPECT_EQ(reuse.bins[0].count, 2'499'900);
    EXPECT_TRUE(reuse.bins[0].low <= 99 && 99 < reuse.bins[0].high);
}

TEST(TimeModels, the_basic_form_refuses_what_it_cannot_finish) {
    Histogram time{5, 0, 0, 0, {{std::uint64_t{1} << 40, std::uint64_t{1} << 41, 10, 0}}};
    EXPECT_FALSE(reuse_from_time(time, 1000, TimeModel::shen_basic, Binning::log2()));
    EXPECT_FALSE(parse_time_model("nonsense"));
    EXPECT_EQ(parse_time_model("shen-basic").value(), TimeModel::shen_basic);
}

TEST(TimeModels, nothing_in_nothing_out) {
    for (TimeModel model : kModels) EXPECT_EQ(converted({}, 0, model), Histogram{});
    Histogram cold{7, 0, 0, 0, {}};
    for (TimeModel model : kModels) EXPECT_EQ(converted(cold, 7, model), cold);
}

}  // namespace
}  // namespace revisit
