#include <gtest/gtest.h>

#include <map>
#include <random>

#include "engines/set_associative.h"
#include "random_traces.h"
#include "revisit/revisit.h"

namespace revisit {
namespace {

Profile analyzed(const std::string& method, const std::vector<std::uint64_t>& blocks,
                 EngineOptions options = {}) {
    options.granularity = 1;
    auto profile = analyze(blocks, method, options);
    EXPECT_TRUE(profile) << method;
    return profile.value_or(Profile{});
}

std::vector<std::uint64_t> letters(const std::string& text) {
    return {text.begin(), text.end()};
}

TEST(Engines, rdx_example_a_b_c_b_a) {
    EngineOptions options;
    options.bins = Binning::exact();
    options.time = true;
    for (const char* method : {"naive", "olken"}) {
        Profile profile = analyzed(method, letters("abcba"), options);
        // b: distance 1 after c; a: b and c in between, so reuse distance 2 and time distance 4.
        EXPECT_EQ(profile.reuse, (Histogram{3, 0, 0, 0, {{1, 2, 1, 0}, {2, 3, 1, 0}}}));
        EXPECT_EQ(*profile.time, (Histogram{3, 0, 0, 0, {{2, 3, 1, 0}, {4, 5, 1, 0}}}));
    }
}

TEST(Engines, gpu_paper_figure_1_distance_of_b_is_5) {
    EngineOptions options;
    options.bins = Binning::exact();
    // b, five other addresses with repeats among them, b again.
    Profile profile = analyzed("olken", letters("bacadacefb"), options);
    EXPECT_EQ(profile.reuse.bins.back(), (Bin{5, 6, 1, 0}));
}

TEST(Engines, olken_and_time_agree_with_naive) {
    for (std::uint64_t seed = 1; seed <= 3; ++seed)
        for (const auto& trace : testing::small_traces(seed)) {
            EngineOptions options;
            options.bins = Binning::exact();
            options.time = true;
            Profile naive = analyzed("naive", trace.blocks, options);
            EXPECT_EQ(analyzed("olken", trace.blocks, options).reuse, naive.reuse) << trace.name;
            EXPECT_EQ(analyzed("olken", trace.blocks, options).time, naive.time) << trace.name;
            EXPECT_EQ(analyzed("time", trace.blocks, options).time, naive.time) << trace.name;
            EXPECT_EQ(naive.reuse.total(), static_cast<double>(trace.blocks.size()));
        }
}

TEST(Engines, sites_and_pairs_agree_with_naive_and_sum_to_the_whole) {
    std::mt19937_64 random(9);
    std::vector<std::uint64_t> blocks(4000);
    std::vector<std::uint32_t> sites(4000);
    std::vector<std::uint8_t> flags(4000);
    for (std::size_t i = 0; i < blocks.size(); ++i)
        blocks[i] = random() % 200, sites[i] = random() % 9, flags[i] = random() % 2;
    EngineOptions options;
    options.sites = options.pairs = true;
    Profile profiles[2];
    for (int k = 0; k < 2; ++k) {
        auto engine = make_engine(k == 0 ? "naive" : "olken", options).value();
        ASSERT_TRUE(engine->add({blocks, sites, {}, flags}));
        profiles[k] = engine->finish().value();
        profiles[k].method = "same";
    }
    EXPECT_EQ(to_json(profiles[0]), to_json(profiles[1]));
    double accesses = 0, pairs = 0;
    for (const Site& site : profiles[0].sites) accesses += site.accesses;
    for (const Pair& pair : profiles[0].pairs) pairs += pair.count;
    EXPECT_EQ(accesses, 4000);
    EXPECT_EQ(pairs, profiles[0].reuse.finite());
}

TEST(Engines, phases_follow_each_other_and_sum_to_the_whole) {
    std::mt19937_64 random(11);
    for (std::size_t length : {0, 1, 15, 16, 17, 100, 5'000, 70'001}) {
        std::vector<std::uint64_t> blocks(length);
        for (std::size_t i = 0; i < length; i++) blocks[i] = random() % (i < length / 2 ? 50 : 3'000);
        for (const char* method : {"naive", "olken", "exact"}) {
            if (length > 5'000 && method == std::string("naive")) continue;
            EngineOptions options;
            options.threads = 1;
            const Profile plain = analyzed(method, blocks, options);
            options.phases = 7;
            const Profile cut = analyzed(method, blocks, options);
            EXPECT_EQ(cut.reuse, plain.reuse) << method << length;
            EXPECT_EQ(cut.phases.size(), std::min<std::size_t>(7, (length + 15) / 16)) << method;
            Histogram sum;
            double at = 0;
            for (const Phase& phase : cut.phases) {
                EXPECT_EQ(phase.begin, at);
                EXPECT_EQ(phase.reuse.total(), phase.end - phase.begin);
                at = phase.end;
                sum.merge(phase.reuse);
            }
            EXPECT_EQ(at, length);
            EXPECT_EQ(sum, plain.reuse);
            if (length < 5'000) continue;
            // The windows are alike in length, and their histograms are those of their own accesses.
            for (const Phase& phase : cut.phases)
                EXPECT_NEAR(phase.end - phase.begin, static_cast<double>(length) / 7, length / 7.0 / 4);
            EXPECT_LT(cut.phases[1].reuse.bins.back().high, 64);
            EXPECT_GT(cut.phases[6].reuse.bins.back().high, 1'000);
        }
    }
    EngineOptions options;
    options.phases = 4;
    EXPECT_FALSE(make_engine("sample", options));
}

// A site of each half of the run, and one of both: windows know which ran when, and what they did there
// sums to what they did in all, in powers of two.
TEST(Engines, phases_know_their_sites) {
    std::mt19937_64 random(5);
    constexpr std::size_t kLength = 40'000;
    std::vector<std::uint64_t> blocks(kLength);
    std::vector<std::uint32_t> sites(kLength);
    std::vector<std::uint16_t> threads(kLength);
    std::vector<std::uint8_t> flags(kLength);
    for (std::size_t i = 0; i < kLength; i++) {
        const bool late = i >= kLength / 2;
        sites[i] = random() % 4 == 0 ? 9 : late ? 5 : 3;
        blocks[i] = random() % (late ? 2'000 : 60);
        threads[i] = static_cast<std::uint16_t>(random() % 3);
        flags[i] = random() % 16 == 0 ? kWrite : 0;
    }
    for (StackModel model : {StackModel::single, StackModel::private_})
        for (bool pairs : {false, true})
            for (unsigned workers : {1, 2}) {
                EngineOptions options;
                options.model = model;
                options.shared = options.sharing = model == StackModel::private_;
                options.sites = true;
                options.pairs = pairs;
                options.threads = workers;
                options.phases = 6;
                auto engine = make_engine("exact", options).value();
                for (std::size_t at = 0; at < kLength; at += 7'001) {
                    BlockBatch batch{blocks, sites, threads, flags};
                    ASSERT_TRUE(
                        engine->add(batch.part(at, std::min<std::size_t>(7'001, kLength - at))));
                }
                const Profile profile = engine->finish().value();
                ASSERT_EQ(profile.phases.size(), 6u);
                std::map<std::uint32_t, Histogram> sums;
                for (const Phase& phase : profile.phases) {
                    double all = 0;
                    for (const PhaseSite& one : phase.sites) {
                        all += one.accesses;
                        EXPECT_EQ(one.accesses, one.reuse.total());
                        sums[one.site].merge(one.reuse);
                        if (one.site == 3) EXPECT_LT(phase.begin, kLength / 2);
                        if (one.site == 5) EXPECT_GT(phase.end, kLength / 2);
                    }
                    EXPECT_EQ(all, phase.end - phase.begin);
                }
                ASSERT_EQ(sums.size(), 3u);
                for (const Site& site : profile.sites)
                    EXPECT_EQ(sums[site.id], site.reuse.rebin(Binning::log2())) << site.id;
            }
}

TEST(Engines, unknown_names_and_models_are_refused) {
    EXPECT_FALSE(make_engine("nonsense", {}));
    EngineOptions options;
    options.model = StackModel::private_;
    EXPECT_FALSE(make_engine("olken", options));
}

// Fully associative: a simulated hit is exactly a reuse distance below the size.
TEST(CacheSimulator, full_associativity_agrees_with_reuse_distances) {
    for (const auto& trace : testing::small_traces(5)) {
        if (trace.blocks.empty()) continue;
        EngineOptions options;
        options.bins = Binning::exact();
        Profile profile = analyzed("naive", trace.blocks, options);
        for (std::uint64_t blocks : {1, 2, 50, 100, 1000}) {
            CacheSpec spec{blocks, 0, 1, "c"};
            auto cache = CacheSimulator::create(spec).value();
            cache.access(trace.blocks);
            double hit_rate =
                1 - static_cast<double>(cache.misses()) / static_cast<double>(cache.accesses());
            EXPECT_NEAR(hit_rate, predict_cache(profile, spec).hit_rate, 1e-12)
                << trace.name << " " << blocks;
        }
    }
}

// Each set is a small fully associative cache of the lines that fall into it.
TEST(CacheSimulator, sets_are_caches_of_their_own) {
    std::mt19937_64 random(6);
    std::vector<std::uint64_t> lines(20000);
    for (auto& line : lines) line = random() % 500;
    for (std::uint64_t ways : {1, 4, 80}) {
        CacheSpec spec{ways * 8, ways, 1, "c"};
        auto whole = CacheSimulator::create(spec).value();
        whole.access(lines);
        std::uint64_t misses = 0;
        for (std::uint64_t set = 0; set < 8; ++set) {
            std::vector<std::uint64_t> mine;
            for (auto line : lines)
                if (line % 8 == set) mine.push_back(line);
            auto one = CacheSimulator::create({ways, 0, 1, "set"}).value();
            one.access(mine);
            misses += one.misses();
        }
        EXPECT_EQ(whole.misses(), misses);
    }
}

}  // namespace
}  // namespace revisit
