// The exact engine against the naive one, and against olken where traces are too long for a list.
#include <gtest/gtest.h>

#include <random>

#include "engines/exact.h"
#include "random_traces.h"
#include "revisit/revisit.h"

namespace revisit {
namespace {

using Blocks = std::vector<std::uint64_t>;

EngineOptions exact_bins() {
    EngineOptions options;
    options.bins = Binning::exact();
    options.granularity = 1;
    return options;
}

// The window as small as can be: renumbered all the time.
ExactTuning tight() {
    ExactTuning tuning;
    tuning.least_lines = 2;
    tuning.roomy_positions = 0;
    return tuning;
}

Profile finished(Engine& engine) {
    auto profile = engine.finish();
    EXPECT_TRUE(profile);
    Profile out = profile.value_or(Profile{});
    out.method = "same";
    return out;
}

Profile with_engine(std::string_view method, const BlockBatch& batch, const EngineOptions& options) {
    auto engine = make_engine(method, options).value();
    EXPECT_TRUE(engine->add(batch));
    return finished(*engine);
}

Profile with_exact(const BlockBatch& batch, const EngineOptions& options,
                   const ExactTuning& tuning = {}) {
    ExactEngine engine(options, tuning);
    EXPECT_TRUE(engine.add(batch));
    return finished(engine);
}

BlockBatch only(const Blocks& blocks) {
    return {blocks, {}, {}, {}};
}

Blocks scrambled(Blocks blocks) {
    for (auto& block : blocks) {
        block = (block ^ block >> 31) * 0xff51afd7ed558ccdu;
        block ^= block >> 33;
    }
    return blocks;
}

template <class Next>
Blocks make_blocks(std::size_t count, Next next) {
    Blocks blocks(count);
    for (std::size_t i = 0; i < count; i++) blocks[i] = next(i);
    return blocks;
}

TEST(ExactEngine, agrees_with_naive_on_small_traces_in_every_form) {
    EngineOptions options = exact_bins();
    options.time = true;
    for (std::uint64_t seed = 1; seed <= 3; seed++)
        for (const auto& trace : testing::small_traces(seed)) {
            const Profile naive = with_engine("naive", only(trace.blocks), options);
            for (auto form : {LastAccessForm::automatic, LastAccessForm::pages, LastAccessForm::hash}) {
                ExactTuning tuning = tight();
                tuning.form = form;
                const Profile exact = with_exact(only(trace.blocks), options, tuning);
                EXPECT_EQ(exact.reuse, naive.reuse) << trace.name;
                EXPECT_EQ(exact.time, naive.time) << trace.name;
                EXPECT_EQ(exact.distinct, naive.distinct) << trace.name;
                EXPECT_EQ(exact.accesses, naive.accesses) << trace.name;
            }
        }
}

TEST(ExactEngine, rdx_example_a_b_c_b_a) {
    EngineOptions options = exact_bins();
    options.time = true;
    const Profile profile = with_exact(only({'a', 'b', 'c', 'b', 'a'}), options);
    EXPECT_EQ(profile.reuse, (Histogram{3, 0, 0, 0, {{1, 2, 1, 0}, {2, 3, 1, 0}}}));
    EXPECT_EQ(*profile.time, (Histogram{3, 0, 0, 0, {{2, 3, 1, 0}, {4, 5, 1, 0}}}));
}

TEST(ExactEngine, every_number_of_levels_counts_the_same) {
    std::mt19937_64 random(3);
    // More blocks than the 7168 recent positions, so that the sums are used; near and far reuses mixed.
    const Blocks blocks = make_blocks(150'000, [&](std::size_t i) -> std::uint64_t {
        switch (random() % 4) {
            case 0:
                return random() % 20'000;
            case 1:
                return i % 3'000;
            case 2:
                return i % 15'000;
            default:
                return random() % 50;
        }
    });
    const EngineOptions options = exact_bins();
    const Profile olken = with_engine("olken", only(blocks), options);
    for (unsigned levels = 2; levels <= 5; levels++) {
        ExactTuning tuning = tight();
        tuning.least_levels = levels;
        EXPECT_EQ(with_exact(only(blocks), options, tuning).reuse, olken.reuse) << levels;
    }
}

TEST(ExactEngine, cyclic_scans_around_every_boundary) {
    const EngineOptions options = exact_bins();
    for (std::size_t period :
         {447, 448, 449, 511, 512, 513, 1023, 1024, 1025, 7167, 7168, 7169, 8191, 8192})
        for (bool wide : {false, true}) {
            const Blocks blocks =
                make_blocks(period * 3 + 17, [&](std::size_t i) { return i % period; });
            const Profile exact = with_exact(only(blocks), options, wide ? ExactTuning{} : tight());
            const double reuses = static_cast<double>(blocks.size() - period);
            ASSERT_EQ(exact.reuse.bins.size(), 1u) << period;
            EXPECT_EQ(exact.reuse.bins[0], (Bin{period - 1, period, reuses, 0})) << period;
            EXPECT_EQ(exact.reuse.cold, static_cast<double>(period));
        }
}

TEST(ExactEngine, windows_of_every_size_are_renumbered_alike) {
    std::mt19937_64 random(8);
    const Blocks blocks =
        make_blocks(60'000, [&](std::size_t) { return random() % (1 + random() % 6'000); });
    const EngineOptions options = exact_bins();
    const Profile olken = with_engine("olken", only(blocks), options);
    for (std::uint64_t lines : {2, 3, 15, 16, 17, 18, 33, 64, 129, 1000}) {
        ExactTuning tuning = tight();
        tuning.least_lines = lines;
        ExactEngine engine(options, tuning);
        ASSERT_TRUE(engine.add(only(blocks)));
        EXPECT_EQ(finished(engine).reuse, olken.reuse) << lines;
        EXPECT_EQ(engine.renumberings() > 0, lines * TimeBitmap::kPositionsPerLine < 60'000) << lines;
    }
}

TEST(ExactEngine, it_does_not_matter_how_the_trace_is_cut) {
    std::mt19937_64 random(4);
    Blocks blocks =
        make_blocks(30'000, [&](std::size_t i) { return i % 7 == 0 ? random() % 3'000 : i / 5 % 700; });
    std::vector<std::uint32_t> sites(blocks.size());
    std::vector<std::uint8_t> flags(blocks.size());
    for (std::size_t i = 0; i < blocks.size(); i++) sites[i] = random() % 5, flags[i] = random() % 2;
    for (bool attributed : {false, true}) {
        EngineOptions options = exact_bins();
        options.time = options.sites = options.pairs = attributed;
        const std::string whole = to_json(with_exact({blocks, sites, {}, flags}, options));
        for (std::size_t most : {1, 2, 63, 64, 65, 200, 5000}) {
            ExactEngine engine(options, tight());
            for (std::size_t at = 0; at < blocks.size();) {
                const std::size_t count = std::min(blocks.size() - at, 1 + random() % most);
                const std::span all(blocks);
                ASSERT_TRUE(engine.add({all.subspan(at, count),
                                        std::span(sites).subspan(at, count),
                                        {},
                                        std::span(flags).subspan(at, count)}));
                at += count;
            }
            EXPECT_EQ(to_json(finished(engine)), whole) << most;
        }
    }
}

TEST(ExactEngine, immediate_repeats_count_as_distance_0) {
    std::mt19937_64 random(5);
    // Long stretches of repeats beside stretches without: both verdicts, and the seams between them.
    Blocks blocks;
    while (blocks.size() < 40'000) {
        const std::uint64_t block = random() % 100;
        blocks.insert(blocks.end(), blocks.size() % 9000 < 5000 ? 1 + random() % 6 : 1, block);
    }
    EngineOptions options = exact_bins();
    options.time = true;
    const Profile naive = with_engine("naive", only(blocks), options);
    for (std::size_t cut : {blocks.size(), std::size_t{1000}, std::size_t{4096}, std::size_t{77}}) {
        ExactEngine engine(options);
        for (std::size_t at = 0; at < blocks.size(); at += cut)
            ASSERT_TRUE(engine.add(
                {std::span(blocks).subspan(at, std::min(cut, blocks.size() - at)), {}, {}, {}}));
        const Profile exact = finished(engine);
        EXPECT_EQ(exact.reuse, naive.reuse) << cut;
        EXPECT_EQ(exact.time, naive.time) << cut;
    }
}

// The pair of a repeat is that of the access before it, and the block's next use follows the last one.
TEST(ExactEngine, immediate_repeats_keep_their_sites_and_pairs) {
    std::mt19937_64 random(15);
    Blocks blocks;
    while (blocks.size() < 20'000) {
        const std::uint64_t block = random() % 300;
        blocks.insert(blocks.end(), blocks.size() % 9000 < 5000 ? 1 + random() % 6 : 1, block);
    }
    std::vector<std::uint32_t> sites(blocks.size());
    std::vector<std::uint8_t> flags(blocks.size());
    for (std::size_t i = 0; i < blocks.size(); i++) {
        sites[i] = random() % 7;
        flags[i] = random() % 2;
    }
    for (const char* bins : {"log2:8", "log2", "exact"})
        for (int wanted : {1, 2, 3, 7}) {
            EngineOptions options;
            options.bins = Binning::parse(bins).value();
            options.sites = (wanted & 1) != 0;
            options.pairs = (wanted & 2) != 0;
            options.time = (wanted & 4) != 0;
            const std::span<const std::uint32_t> all_sites(sites);
            const std::span<const std::uint8_t> all_flags(flags);
            for (bool with_columns : {true, false}) {
                const BlockBatch whole =
                    with_columns ? BlockBatch{blocks, all_sites, {}, all_flags} : only(blocks);
                const std::string naive = to_json(with_engine("naive", whole, options));
                for (std::size_t cut : {blocks.size(), std::size_t{4096}, std::size_t{777}}) {
                    ExactEngine engine(options, tight());
                    for (std::size_t at = 0; at < blocks.size(); at += cut)
                        ASSERT_TRUE(engine.add(whole.part(at, std::min(cut, blocks.size() - at))));
                    EXPECT_EQ(to_json(finished(engine)), naive) << bins << " " << wanted << " " << cut;
                }
            }
        }
}

TEST(ExactEngine, both_ends_of_64_bits_are_blocks_like_others) {
    std::mt19937_64 random(6);
    const Blocks blocks = make_blocks(20'000, [&](std::size_t) {
        const std::uint64_t low = random() % 1500;
        return random() % 2 == 0 ? low : ~low;
    });
    const EngineOptions options = exact_bins();
    const Profile olken = with_engine("olken", only(blocks), options);
    for (auto form : {LastAccessForm::automatic, LastAccessForm::pages, LastAccessForm::hash}) {
        ExactTuning tuning = tight();
        tuning.form = form;
        EXPECT_EQ(with_exact(only(blocks), options, tuning).reuse, olken.reuse);
    }
}

// One block a page makes pages useless: the table has to notice and move, in the middle of the trace.
TEST(ExactEngine, sparse_ids_move_to_the_hash_and_dense_ones_stay) {
    std::mt19937_64 random(7);
    const Blocks dense = make_blocks(40'000, [&](std::size_t) { return random() % 9'000; });
    Blocks sparse = dense;
    for (auto& block : sparse) block *= 4096;
    Blocks both = dense;
    both.insert(both.end(), sparse.begin(), sparse.end());
    both.insert(both.end(), dense.begin(), dense.end());
    EngineOptions options = exact_bins();
    options.time = true;
    for (const auto& [blocks, hash] :
         {std::pair{dense, false}, {sparse, true}, {scrambled(dense), true}, {both, true}}) {
        ExactEngine engine(options);
        ASSERT_TRUE(engine.add(only(blocks)));
        const Profile exact = finished(engine);
        const Profile olken = with_engine("olken", only(blocks), options);
        EXPECT_EQ(engine.uses_hash(), hash);
        EXPECT_EQ(exact.reuse, olken.reuse);
        EXPECT_EQ(exact.time, olken.time);
    }
}

TEST(ExactEngine, the_hash_grows_without_losing_or_doubling_blocks) {
    // Enough blocks for the table to leave doubling and grow by parts, in whole huge pages: an eighth
    // of four of them once rounded to none, and the table never grew again.
    constexpr std::size_t kBlocks = 2'000'000;
    const Blocks ids = scrambled(make_blocks(kBlocks, [](std::size_t i) { return i; }));
    Blocks blocks = ids;
    blocks.insert(blocks.end(), ids.begin(), ids.end());
    ExactTuning tuning;
    tuning.form = LastAccessForm::hash;
    const Profile exact = with_exact(only(blocks), exact_bins(), tuning);
    ASSERT_EQ(exact.reuse.bins.size(), 1u);
    EXPECT_EQ(exact.reuse.bins[0], (Bin{kBlocks - 1, kBlocks, kBlocks, 0}));
}

TEST(ExactEngine, sites_and_pairs_agree_with_naive) {
    std::mt19937_64 random(9);
    Blocks blocks(8'000);
    std::vector<std::uint32_t> sites(blocks.size());
    std::vector<std::uint8_t> flags(blocks.size());
    for (std::size_t i = 0; i < blocks.size(); i++) {
        blocks[i] = random() % 900;
        sites[i] = random() % 3 == 0 ? 0xffffffffu - random() % 3 : random() % 9;
        flags[i] = random() % 2;
    }
    for (bool with_columns : {true, false})
        for (const char* bins : {"log2", "exact", "log2:3", "linear:10"}) {
            EngineOptions options = exact_bins();
            options.bins = Binning::parse(bins).value();
            options.sites = options.pairs = options.time = true;
            const BlockBatch batch = with_columns ? BlockBatch{blocks, sites, {}, flags} : only(blocks);
            const std::string expected = to_json(with_engine("naive", batch, options));
            EXPECT_EQ(to_json(with_exact(batch, options, tight())), expected);
            options.threads = 2;  // attribution on a thread of its own
            EXPECT_EQ(to_json(with_exact(batch, options, tight())), expected);
        }
}

TEST(ExactEngine, a_surplus_of_pairs_is_counted_and_said) {
    EngineOptions options = exact_bins();
    options.pairs = true;
    SiteAttribution attribution(options, FrequentLimits{2, 2, 16});
    const Blocks blocks(6, 1);
    const std::vector<std::uint32_t> sites = {1, 2, 3, 4, 5, 2};
    const std::vector<std::uint32_t> distances = {SiteAttribution::kCold, 0, 0, 0, 0, 0};
    const std::vector<std::uint32_t> use_sites = {0, 1, 2, 3, 4, 5};
    attribution.add({blocks, sites, {}, {}}, distances, use_sites);
    Profile profile;
    attribution.fill(profile);
    EXPECT_EQ(profile.pairs.size(), 2u);
    ASSERT_EQ(profile.notes.size(), 1u);
    EXPECT_NE(profile.notes[0].find("3 reuses"), std::string::npos);
}

TEST(ExactEngine, every_binning_agrees_with_olken) {
    std::mt19937_64 random(10);
    const Blocks blocks =
        make_blocks(50'000, [&](std::size_t) { return random() % (1 + random() % 9'000); });
    for (const char* bins : {"log2", "log2:2", "log2:3", "log2:64", "log2:1000", "log2:1024",
                             "log2:4096", "linear:1", "linear:7", "linear:4096", "exact"}) {
        EngineOptions options;
        options.bins = Binning::parse(bins).value();
        options.time = true;
        const Profile olken = with_engine("olken", only(blocks), options);
        const Profile exact = with_exact(only(blocks), options);
        EXPECT_EQ(exact.reuse, olken.reuse) << bins;
        EXPECT_EQ(exact.time, olken.time) << bins;
    }
}

TEST(ExactEngine, more_blocks_than_the_limit_is_an_error) {
    ExactTuning tuning = tight();
    tuning.most_blocks = 1000;
    ExactEngine engine(exact_bins(), tuning);
    const auto added = engine.add(only(make_blocks(5000, [](std::size_t i) { return i; })));
    ASSERT_FALSE(added);
    EXPECT_NE(added.error().message.find("1000 blocks"), std::string::npos);
}

TEST(TimeDistances, times_past_the_narrow_ones_go_on_in_wide_ones) {
    std::mt19937_64 random(11);
    const Blocks blocks = make_blocks(20'000, [&](std::size_t) { return random() % 3'000 * 5000; });
    EngineOptions options = exact_bins();
    options.time = true;
    const Profile naive = with_engine("olken", only(blocks), options);
    for (auto form : {LastAccessForm::automatic, LastAccessForm::pages, LastAccessForm::hash})
        for (std::uint64_t narrow : {0, 1, 64, 10'001, 20'000}) {
            TimeDistances times(options.bins, narrow, form);
            for (std::size_t at = 0; at < blocks.size(); at += 1000)
                times.add(std::span(blocks).subspan(at, 1000));
            EXPECT_EQ(times.histogram(), *naive.time) << narrow;
            EXPECT_EQ(static_cast<double>(times.distinct()), naive.distinct);
        }
}

TEST(Simd, compare_is_the_scalar_one) {
    std::mt19937_64 random(12);
    for (int round = 0; round < 1000; round++) {
        const std::uint32_t mask = random() % 2 == 0 ? 0xffffffffu : 0xffu;
        std::uint32_t values[64];
        for (auto& value : values) value = static_cast<std::uint32_t>(random()) & mask;
        std::uint32_t low = static_cast<std::uint32_t>(random()) & mask, high = values[random() % 64];
        if (random() % 8 == 0) high = 0xffffffffu;
        const simd::Comparison got = simd::compare(values, low, high);
        const simd::Comparison want = simd::compare_scalar(values, low, high);
        EXPECT_EQ(got.zero, want.zero);
        EXPECT_EQ(got.below_low, want.below_low);
        EXPECT_EQ(got.below_high, want.below_high);
    }
}

}  // namespace
}  // namespace revisit
