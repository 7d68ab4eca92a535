#include <gtest/gtest.h>

#include <algorithm>
#include <list>
#include <random>
#include <set>

#include "generate/lru_stack.h"
#include "random_traces.h"
#include "revisit/revisit.h"

namespace revisit {
namespace {

std::vector<std::uint64_t> generated(const Histogram& reuse, const GenerateOptions& options) {
    auto generator = TraceGenerator::create(reuse, options);
    EXPECT_TRUE(generator) << (generator ? "" : generator.error().message);
    std::vector<std::uint64_t> out;
    for (;;) {
        AccessBatch batch = generator->next();
        if (batch.count() == 0) return out;
        out.insert(out.end(), batch.addresses.begin(), batch.addresses.end());
    }
}

std::vector<std::uint64_t> generated(const char* distribution, std::uint64_t length,
                                     std::uint64_t distinct, std::uint64_t seed = 1) {
    auto reuse = parse_distribution(distribution, distinct);
    EXPECT_TRUE(reuse) << (reuse ? "" : reuse.error().message);
    GenerateOptions options;
    options.length = length;
    options.distinct = distinct;
    options.granularity = 1;
    options.seed = seed;
    return generated(*reuse, options);
}

Profile exact_profile(const std::vector<std::uint64_t>& blocks, const Binning& bins) {
    EngineOptions options;
    options.granularity = 1;
    options.bins = bins;
    return analyze(blocks, "olken", options).value();
}

AccuracyOptions finite_only() {
    return {.infinite_as_bins = false};
}

TEST(LruStack, agrees_with_a_list) {
    std::mt19937_64 random(2);
    for (std::uint64_t blocks : {1, 2, 5, 33, 100, 4096, 20000}) {
        LruStack stack(blocks);
        std::list<std::uint64_t> list;
        for (std::uint64_t b = 0; b < blocks; ++b) list.push_front(b);
        for (int round = 0; round < 400; ++round) {
            std::vector<std::uint64_t> found(1 + random() % LruStack::kBatch), expected;
            std::uint64_t reach = random() % 2 == 0 ? blocks : std::min<std::uint64_t>(blocks, 20);
            for (auto& depth : found) {
                depth = random() % reach;
                auto at = std::next(list.begin(), static_cast<std::ptrdiff_t>(depth));
                expected.push_back(*at);
                list.splice(list.begin(), list, at);
            }
            stack.access(found);
            ASSERT_EQ(found, expected) << blocks << " blocks, round " << round;
        }
    }
}

TEST(Generate, a_trace_has_the_distances_asked_for) {
    for (const char* distribution : {"uniform", "zipf:0.8", "zipf:2", "normal:900,30", "normal:100,0",
                                     "exponential:0.01", "mix:0.25*normal:50,2+0.75*zipf:1"}) {
        auto blocks = generated(distribution, 100000, 2000);
        Profile profile = exact_profile(blocks, Binning::log2(8));
        EXPECT_EQ(profile.accesses, 100000) << distribution;
        EXPECT_EQ(profile.distinct, 2000) << distribution;
        Histogram wanted = parse_distribution(distribution, 2000)->rebin(Binning::log2(8));
        EXPECT_NEAR(wanted.finite(), 1, 1e-9) << distribution;
        EXPECT_GT(accuracy(wanted, profile.reuse, finite_only()), 0.995) << distribution;
    }
}

TEST(Generate, profiles_of_real_traces_come_back) {
    for (const auto& trace : testing::small_traces(4)) {
        if (trace.blocks.size() < 2000) continue;
        Profile wanted = exact_profile(trace.blocks, Binning::log2(8));
        if (wanted.reuse.bins.empty()) continue;
        GenerateOptions options;
        options.length = 50000;
        options.distinct = static_cast<std::uint64_t>(wanted.distinct);
        options.granularity = 1;
        Profile twin = exact_profile(generated(wanted.reuse, options), Binning::log2(8));
        EXPECT_EQ(twin.distinct, wanted.distinct) << trace.name;
        EXPECT_GT(accuracy(wanted.reuse, twin.reuse, finite_only()), 0.99) << trace.name;
    }
}

TEST(Generate, wide_bins_are_spread_evenly) {
    GenerateOptions options;
    options.length = 201000;
    options.distinct = 1000;
    options.granularity = 1;
    Histogram wanted{0, 0, 0, 0, {{100, 300, 1, 0}, {500, 4000, 3, 0}}};  // the last is cut at 1000
    Profile profile = exact_profile(generated(wanted, options), Binning::linear(100));
    ASSERT_EQ(profile.reuse.bins.size(), 7u);
    for (const Bin& bin : profile.reuse.bins)
        EXPECT_NEAR(bin.count, bin.low < 300 ? 25000 : 30000, 300);
}

TEST(Generate, a_seed_is_a_trace) {
    EXPECT_EQ(generated("zipf:1", 20000, 500, 7), generated("zipf:1", 20000, 500, 7));
    EXPECT_NE(generated("zipf:1", 20000, 500, 7), generated("zipf:1", 20000, 500, 8));
    EXPECT_EQ(generated("uniform", 1, 1), (std::vector<std::uint64_t>{0}));
    EXPECT_EQ(generated("uniform", 5, 1), (std::vector<std::uint64_t>(5, 0)));
}

TEST(Generate, threads_own_their_blocks_and_share_some) {
    GenerateOptions options;
    options.length = 200000;
    options.distinct = 3000;
    options.threads = 4;
    options.sharing = 0.3;
    options.writes = 0.2;
    auto generator = TraceGenerator::create(*parse_distribution("zipf:0.5", 3000), options).value();
    std::vector<std::set<unsigned>> users(3000);
    double writes = 0;
    for (;;) {
        AccessBatch batch = generator.next();
        if (batch.count() == 0) break;
        ASSERT_EQ(batch.threads.size(), batch.count());
        for (std::size_t i = 0; i < batch.count(); ++i) {
            EXPECT_EQ(batch.addresses[i] % 64, 0u);
            users[batch.addresses[i] / 64].insert(batch.threads[i]);
            writes += batch.flags[i] == kWrite;
        }
    }
    double shared = 0;
    std::set<unsigned> all;
    for (const auto& set : users) shared += set.size() > 1, all.insert(set.begin(), set.end());
    EXPECT_NEAR(shared / 3000, 0.3, 0.05);
    EXPECT_EQ(all.size(), 4u);
    EXPECT_NEAR(writes / 200000, 0.2, 0.01);
}

TEST(Generate, impossible_wishes_are_refused) {
    for (const char* bad : {"",
                            "normal",
                            "normal:5",
                            "normal:5,1,2",
                            "normal:x,1",
                            "normal:5,-1",
                            "normal:2000,10",
                            "normal:5,10",
                            "exponential:0",
                            "exponential:0.0001",
                            "exponential:-1",
                            "zipf:-1",
                            "zipf:",
                            "uniform:3",
                            "mix:",
                            "mix:0.5*uniform",
                            "mix:0.5*uniform+0.6*zipf:1",
                            "mix:uniform",
                            "mix:1*mix:1*uniform",
                            "mix:1*nonsense",
                            "poisson:3",
                            "normal:nan,1",
                            "normal:inf,1"})
        EXPECT_FALSE(parse_distribution(bad, 1000)) << bad;
    GenerateOptions options;
    Histogram near{0, 0, 0, 0, {{0, 1, 1, 0}}}, far{0, 0, 0, 0, {{100, 101, 1, 0}}};
    options.length = 100;
    options.distinct = 100;
    EXPECT_TRUE(TraceGenerator::create(near, options));
    EXPECT_FALSE(TraceGenerator::create(far, options));
    options.length = 99;
    EXPECT_FALSE(TraceGenerator::create(near, options));
    options.length = 200;
    EXPECT_FALSE(TraceGenerator::create(Histogram{}, options));
    options.sharing = 1.5;
    EXPECT_FALSE(TraceGenerator::create(near, options));
    options.sharing = 0;
    options.distinct = 0;
    EXPECT_FALSE(TraceGenerator::create(near, options));
}

}  // namespace
}  // namespace revisit
