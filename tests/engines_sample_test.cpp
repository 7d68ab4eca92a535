#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "engines/sample_sets.h"
#include "revisit/revisit.h"

namespace revisit {
namespace {

struct ThreadedTrace {
    std::vector<std::uint64_t> blocks;
    std::vector<std::uint32_t> sites;
    std::vector<std::uint16_t> threads;
    std::vector<std::uint8_t> flags;
};

ThreadedTrace random_trace(std::uint64_t seed, std::size_t count, unsigned threads,
                           std::uint64_t blocks, unsigned writes_in_100) {
    std::mt19937_64 random(seed);
    ThreadedTrace trace;
    for (std::size_t i = 0; i < count; ++i) {
        // Skewed, so that distances are of all sizes.
        double u = static_cast<double>(random() >> 11) * 0x1p-53;
        trace.blocks.push_back(static_cast<std::uint64_t>(std::pow(static_cast<double>(blocks), u)));
        trace.sites.push_back(static_cast<std::uint32_t>(random() % 6));
        trace.threads.push_back(static_cast<std::uint16_t>(random() % threads));
        trace.flags.push_back(random() % 100 < writes_in_100 ? kWrite : 0);
    }
    return trace;
}

EngineOptions options_for(StackModel model, double rate) {
    EngineOptions options;
    options.model = model;
    options.granularity = 1;
    options.sample.rate = rate;
    options.sample.prune_share = 1;
    return options;
}

Profile run(std::string_view method, const ThreadedTrace& trace, const EngineOptions& options,
            std::size_t cut = 1'000'000'000) {
    auto engine = make_engine(method, options).value();
    for (std::size_t at = 0; at < trace.blocks.size(); at += cut) {
        std::size_t n = std::min(cut, trace.blocks.size() - at);
        EXPECT_TRUE(engine->add({{trace.blocks.data() + at, n},
                                 {trace.sites.data() + at, n},
                                 {trace.threads.data() + at, n},
                                 {trace.flags.data() + at, n}}));
    }
    return engine->finish().value();
}

// The sets one by one, as sample_sets.h would have them without parts.
struct PlainSets {
    struct One {
        std::uint64_t start, depth = 0, holes = 0;
    };
    std::vector<One> all;

    void enter(std::uint64_t last) {
        for (One& one : all)
            if (one.start > last) one.holes > 0 ? void(--one.holes) : void(++one.depth);
    }
    void take(std::uint64_t last) {
        for (One& one : all) one.holes += one.start < last;
    }
};

TEST(SampleSets, of_thousands_of_samples_are_counted_as_one_by_one) {
    for (std::uint64_t seed : {1, 2, 3}) {
        std::mt19937_64 random(seed);
        sample_sets sets{};
        PlainSets plain;
        std::uint64_t now = 0;
        auto compare = [&] {
            ASSERT_EQ(sets.count, plain.all.size());
            ASSERT_EQ(sets_oldest(&sets, 7), plain.all.empty() ? 7 : plain.all[0].start);
            std::size_t i = 0;
            for (sets_place at{}; at.part < sets.parts; at = sets_next(&sets, at), ++i) {
                ASSERT_EQ(sets_sample(&sets, at)->start, plain.all[i].start);
                ASSERT_EQ(sets_depth(&sets, at), plain.all[i].depth) << "sample " << i;
            }
        };
        // Grows to some thousands, shrinks to nothing, and grows again.
        for (unsigned round = 0; round < 12'000; ++round) {
            ++now;
            const bool grows = round % 6000 < 3500;
            const std::uint64_t last = random() % (now + 1);
            const unsigned what = static_cast<unsigned>(random() % 10);
            if (what < (grows ? 7 : 1)) {
                open_sample made{now, random(), 0, 0, 0};
                ASSERT_TRUE(sets_add(&sets, &made));
                plain.all.push_back({now});
            } else if (what < 8 && !plain.all.empty()) {
                const std::size_t index = random() % plain.all.size();
                sets_place at;
                ASSERT_TRUE(sets_find(&sets, plain.all[index].start, &at));
                ASSERT_EQ(sets_depth(&sets, at), plain.all[index].depth);
                sets_remove(&sets, at);
                plain.all.erase(plain.all.begin() + static_cast<std::ptrdiff_t>(index));
            } else if (what == 8) {
                sets_take(&sets, last);
                plain.take(last);
            }
            sets_place ended;
            const bool is_found = sets_enter(&sets, last, &ended) != 0;
            plain.enter(last);
            const bool is_there =
                std::ranges::any_of(plain.all, [&](const auto& one) { return one.start == last; });
            ASSERT_EQ(is_found, is_there);
            if (is_found) {
                ASSERT_EQ(sets_sample(&sets, ended)->start, last);
            }
            if (round % 1000 == 999) {
                auto is_kept = [](const open_sample* s, void*) -> int { return s->block % 3 != 0; };
                std::erase_if(plain.all, [&](const auto& one) {
                    sets_place at;
                    return sets_find(&sets, one.start, &at) &&
                           !is_kept(sets_sample(&sets, at), nullptr);
                });
                sets_keep(&sets, is_kept, nullptr);
            }
            if (round % 97 == 0) compare();
        }
        compare();
        sets_free(&sets);
    }
}

TEST(Sample, with_every_access_chosen_it_is_the_full_analysis) {
    for (unsigned threads : {1u, 2u, 5u})
        for (unsigned writes : {0u, 5u, 40u, 100u})
            for (StackModel model : {StackModel::private_, StackModel::single}) {
                ThreadedTrace trace = random_trace(threads + writes, 3000, threads, 120, writes);
                EngineOptions options = options_for(model, 1);
                options.bins = Binning::exact();
                options.time = options.pairs = true;
                Profile full = run("naive", trace, options);
                Profile sampled = run("sample", trace, options);
                EXPECT_EQ(sampled.reuse, full.reuse) << threads << " " << writes;
                EXPECT_EQ(sampled.time, full.time);
                EXPECT_EQ(sampled.pairs.size(), full.pairs.size());
                ASSERT_EQ(sampled.threads.size(), full.threads.size());
                for (std::size_t i = 0; i < full.threads.size(); ++i)
                    EXPECT_EQ(sampled.threads[i].reuse, full.threads[i].reuse);
            }
}

TEST(Sample, sites_add_up_to_the_whole) {
    ThreadedTrace trace = random_trace(8, 50000, 4, 2000, 20);
    EngineOptions options = options_for(StackModel::private_, 0.05);
    options.sites = true;
    Profile profile = run("sample", trace, options);
    double invalidated = 0, all = 0;
    for (const Site& site : profile.sites)
        invalidated += site.reuse.invalidated, all += site.reuse.total();
    EXPECT_NEAR(invalidated, profile.reuse.invalidated, 1e-6);
    EXPECT_NEAR(all, 50000, 1e-6);
}

TEST(Sample, error_bars_hold_what_they_say) {
    double inside = 0, bins = 0, accuracies = 0;
    constexpr int kSeeds = 10;
    ThreadedTrace trace = random_trace(3, 60000, 4, 5000, 10);
    Profile full = run("exact", trace, options_for(StackModel::private_, 1));
    for (int seed = 1; seed <= kSeeds; ++seed) {
        EngineOptions options = options_for(StackModel::private_, 0.05);
        options.seed = static_cast<std::uint64_t>(seed);
        Profile sampled = run("sample", trace, options);
        EXPECT_NEAR(sampled.reuse.total(), 60000, 1e-6);
        accuracies += accuracy(full.reuse, sampled.reuse);
        for (const Bin& truth : full.reuse.bins) {
            if (truth.count < 600) continue;  // the normal approximation needs some 30 samples
            for (const Bin& bin : sampled.reuse.bins)
                if (bin.low == truth.low)
                    bins += 1, inside += std::fabs(bin.count - truth.count) <= bin.error;
        }
    }
    EXPECT_GT(accuracies / kSeeds, 0.93);
    EXPECT_GT(bins, 100);
    EXPECT_GT(inside / bins, 0.9);
}

TEST(Sample, every_access_is_as_likely_as_any_other) {
    ThreadedTrace trace;
    for (std::uint32_t i = 0; i < 40; ++i)
        trace.blocks.push_back(i), trace.sites.push_back(i), trace.threads.push_back(0),
            trace.flags.push_back(0);
    std::vector<double> chosen(40);
    constexpr int kRuns = 1600;
    for (int seed = 0; seed < kRuns; ++seed) {
        EngineOptions options = options_for(StackModel::single, 0.1);
        options.seed = static_cast<std::uint64_t>(seed);
        options.sites = true;
        for (const Site& site : run("sample", trace, options).sites) chosen[site.id] += 1;
    }
    // 160 expected, standard deviation 12.
    for (double count : chosen) EXPECT_NEAR(count, 0.1 * kRuns, 60);
}

TEST(Sample, batches_do_not_matter_and_seeds_do) {
    ThreadedTrace trace = random_trace(4, 20000, 3, 500, 10);
    EngineOptions options = options_for(StackModel::private_, 0.01);
    std::string whole = to_json(run("sample", trace, options));
    EXPECT_EQ(to_json(run("sample", trace, options, 7)), whole);
    options.seed = 2;
    EXPECT_NE(to_json(run("sample", trace, options)), whole);
}

TEST(Sample, target_error_sets_the_number_of_samples) {
    ThreadedTrace trace = random_trace(5, 60000, 2, 300, 10);
    EngineOptions options = options_for(StackModel::private_, 0.5);
    options.sample.target_error = 0.03;  // 1068 samples
    Profile profile = run("sample", trace, options);
    EXPECT_GE(profile.sampled->samples, 900);
    EXPECT_LE(profile.sampled->samples, 2 * 1068 + 1);
    for (const Bin& bin : profile.reuse.bins) EXPECT_LE(bin.error, 0.0325 * 60000);
    EXPECT_GT(accuracy(run("exact", trace, options).reuse, profile.reuse), 0.85);
    // A short stream is taken whole.
    ThreadedTrace little = random_trace(6, 500, 2, 50, 10);
    options.bins = Binning::exact();
    EXPECT_EQ(run("sample", little, options).reuse, run("naive", little, options).reuse);
}

TEST(Sample, old_samples_are_pruned_and_the_share_is_told) {
    ThreadedTrace trace;  // blocks touched once for ever, among a small loop
    for (std::uint32_t i = 0; i < 40000; ++i) {
        trace.blocks.push_back(i % 4 == 0 ? 1000 + i : i % 50);
        trace.sites.push_back(0), trace.threads.push_back(0), trace.flags.push_back(0);
    }
    EngineOptions options = options_for(StackModel::single, 0.05);
    EXPECT_EQ(run("sample", trace, options).sampled->pruned, 0);
    options.sample.prune_share = 0.99;
    Profile pruned = run("sample", trace, options);
    EXPECT_GT(pruned.sampled->pruned, 0.005);
    EXPECT_LE(pruned.sampled->pruned, 0.01);
    EXPECT_GT(accuracy(run("exact", trace, options).reuse, pruned.reuse), 0.9);
    options.sample.prune_after = 1'000'000;
    EXPECT_EQ(run("sample", trace, options).sampled->pruned, 0);
}

TEST(Sample, pruning_gives_up_no_more_than_the_deepest_share) {
    // Near reuses end first: a limit from those alone would give up every far one.
    ThreadedTrace trace;
    std::mt19937_64 random(7);
    for (std::uint32_t i = 0; i < 200000; ++i) {
        trace.blocks.push_back(i % 5 == 0 ? 100 + i / 5 % 4000 : random() % 20);
        trace.sites.push_back(0), trace.flags.push_back(0);
        trace.threads.push_back(static_cast<std::uint16_t>(i / 1000 % 2));
    }
    for (StackModel model : {StackModel::private_, StackModel::single}) {
        EngineOptions options = options_for(model, 0.05);
        options.sample.prune_share = 0.99;
        Profile sampled = run("sample", trace, options);
        EXPECT_LE(sampled.sampled->pruned, 0.01);
        EXPECT_GT(accuracy(run("exact", trace, options).reuse, sampled.reuse), 0.96);
    }
}

TEST(Sample, bad_rates_are_refused_and_nothing_chosen_is_said) {
    for (double rate : {0.0, -1.0, 1.5, std::nan("")})
        EXPECT_FALSE(make_engine("sample", options_for(StackModel::single, rate)));
    ThreadedTrace one = random_trace(1, 1, 1, 5, 0);
    Profile profile = run("sample", one, options_for(StackModel::single, 1e-9));
    EXPECT_EQ(profile.sampled->samples, 0);
    EXPECT_FALSE(profile.notes.empty());
}

}  // namespace
}  // namespace revisit
