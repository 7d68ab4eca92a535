// The library's edge, as programs that build on it use it: results, checks of what is handed in, the C
// functions.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmath>
#include <cstring>
#include <random>
#include <thread>

#include "formats/format.h"
#include "report/diff.h"
#include "revisit.h"
#include "revisit/revisit.h"

namespace revisit {
namespace {

// An array that ends where memory ends: reading beyond it is a fault, with or without a sanitizer.
template <class T>
class AtTheEdge {
 public:
    explicit AtTheEdge(std::size_t count) : count_(count) {
        const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
        bytes_ = (count * sizeof(T) + page - 1) / page * page + page;
        memory_ = static_cast<char*>(
            mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
        mprotect(memory_ + bytes_ - page, page, PROT_NONE);
        begin_ = reinterpret_cast<T*>(memory_ + bytes_ - page) - count;
    }
    ~AtTheEdge() { munmap(memory_, bytes_); }
    AtTheEdge(const AtTheEdge&) = delete;
    operator std::span<const T>() const { return {begin_, count_}; }

 private:
    std::size_t count_, bytes_;
    char* memory_;
    T* begin_;
};

constexpr std::size_t kMany = 100000, kFew = 10;

struct ShortColumns {
    AtTheEdge<std::uint64_t> blocks{kMany};
    AtTheEdge<std::uint32_t> numbers{kFew};
    AtTheEdge<std::uint16_t> threads{kFew};
    AtTheEdge<std::uint8_t> flags{kFew};

    std::vector<AccessBatch> accesses() const {
        return {{blocks, numbers, {}, {}, {}},
                {blocks, {}, numbers, {}, {}},
                {blocks, {}, {}, threads, {}},
                {blocks, {}, {}, {}, flags}};
    }
    std::vector<BlockBatch> pieces() const {
        return {{blocks, numbers, {}, {}, {}},
                {blocks, {}, threads, {}, {}},
                {blocks, {}, {}, flags, {}},
                {blocks, {}, {}, {}, threads}};
    }
};

std::vector<EngineOptions> several_options() {
    std::vector<EngineOptions> all(4);
    all[1].sites = all[1].pairs = true;
    all[2].model = StackModel::private_;
    all[2].sharing = true;
    all[3].threads = 4;
    return all;
}

TEST(Library, engines_refuse_columns_that_are_too_short) {
    const ShortColumns given;
    for (const EngineEntry& entry : engines())
        for (const EngineOptions& options : several_options())
            for (const BlockBatch& batch : given.pieces()) {
                auto engine = make_engine(entry.name, options);
                if (!engine) continue;
                auto added = (*engine)->add(batch);
                ASSERT_FALSE(added) << entry.name;
                EXPECT_TRUE(added.error().message.ends_with("as accesses (100000) or none, found 10"))
                    << added.error().message;
            }
}

TEST(Library, sources_cutters_and_writers_refuse_columns_that_are_too_short) {
    const ShortColumns given;
    const std::string folder = ::testing::TempDir();
    for (const AccessBatch& batch : given.accesses()) {
        for (const EngineOptions& options : several_options())
            EXPECT_FALSE(analyze(batch, AnalyzeOptions{"exact", options, {}, {}}));
        EXPECT_FALSE(BlockCutter(64).cut(batch, [](const BlockBatch&) -> Result<void> { return {}; }));
        EXPECT_FALSE(BlockCutter(1).cut(batch, [](const BlockBatch&) -> Result<void> { return {}; }));
        for (const FormatEntry& entry : formats())
            if (entry.create != nullptr)
                EXPECT_FALSE(create_trace(folder + "/short", entry.name).value()->write(batch))
                    << entry.name;
    }
}

// A source of somebody else's that hands out less than it promised.
class ShortRanges : public TraceReader, public AccessRanges {
 public:
    Result<AccessBatch> next() override { return AccessBatch{}; }
    const AccessRanges* ranges() const override { return this; }
    std::uint64_t count() const override { return kMany; }
    Result<AccessBatch> read(std::uint64_t, std::size_t, AccessColumns&) const override {
        return AccessBatch{few_, {}, {}, {}, {}};
    }

 private:
    AtTheEdge<std::uint64_t> few_{kFew};
};

TEST(Library, sources_that_hand_out_less_than_they_said_are_refused) {
    ShortRanges source;
    for (unsigned threads : {1u, 4u}) {
        AnalyzeOptions options;
        options.engine.threads = threads;
        auto profile = analyze(source, options);
        if (profile) EXPECT_LT(profile->accesses, kMany);
    }
}

TEST(Library, engines_are_finished_once) {
    auto engine = make_engine("exact", {}).value();
    ASSERT_TRUE(engine->finish());
    EXPECT_FALSE(engine->finish());
    EXPECT_FALSE(engine->add({}));
    EXPECT_EQ(make_engine("no such", {}).error().code, ErrorCode::unknown_method);
    EngineOptions nothing;
    nothing.granularity = 0;
    EXPECT_FALSE(make_engine("exact", nothing));
    EXPECT_FALSE(make_engine("exact", EngineOptions{.bins = Binning::linear(0)}));
}

TEST(Library, a_cutter_and_an_engine_count_what_analyze_counts) {
    std::mt19937_64 random(3);
    AccessColumns all;
    all.has.sizes = true;
    for (std::size_t i = 0; i < 50000; ++i)
        all.push({random() % 300000, 0, static_cast<std::uint32_t>(random() % 200), 0, 0});
    auto engine = make_engine("exact", {}).value();
    BlockCutter cutter(64);
    const AccessBatch whole = all.batch();
    for (std::size_t at = 0; at < whole.count(); at += 999) {
        const std::size_t count = std::min<std::size_t>(999, whole.count() - at);
        const AccessBatch part{
            whole.addresses.subspan(at, count), {}, whole.sizes.subspan(at, count), {}, {}};
        ASSERT_TRUE(cutter.cut(part, [&](const BlockBatch& blocks) { return engine->add(blocks); }));
    }
    EXPECT_EQ(engine->finish()->reuse, analyze(whole)->reuse);
}

TEST(Library, results_hold_a_value_or_an_error) {
    Result<std::unique_ptr<int>> good = std::make_unique<int>(7);
    ASSERT_TRUE(good);
    EXPECT_EQ(**good, 7);
    Result<std::shared_ptr<int>> converted = std::move(good);
    EXPECT_EQ(**converted, 7);
    Result<int> bad = fail("no");
    EXPECT_FALSE(bad.has_value());
    EXPECT_EQ(bad.value_or(3), 3);
    EXPECT_THROW(bad.value(), std::logic_error);
    bad = 5;
    EXPECT_EQ(*bad, 5);
    Result<void> nothing;
    EXPECT_TRUE(nothing);
    nothing = fail("why");
    EXPECT_EQ(nothing.error().message, "why");
    Result<bool> truth = false;
    EXPECT_TRUE(truth.has_value());
    Result<std::string> standard = std::unexpected(Error{{}, {}, "as in C++23"});
    EXPECT_EQ(standard.error().message, "as in C++23");
}

TEST(Library, versions_agree) {
    const std::string composed = std::to_string(REVISIT_VERSION_MAJOR) + "." +
                                 std::to_string(REVISIT_VERSION_MINOR) + "." +
                                 std::to_string(REVISIT_VERSION_PATCH);
    EXPECT_EQ(composed, REVISIT_VERSION_STRING);
    EXPECT_EQ(revisit_version(), static_cast<std::uint32_t>(REVISIT_VERSION_NUMBER));
    EXPECT_EQ(revisit_version_string(), composed);
}

TEST(Library, analyses_of_different_threads_do_not_meet) {
    std::vector<std::uint64_t> addresses(20000);
    for (std::size_t i = 0; i < addresses.size(); ++i) addresses[i] = i * 37 % 5000 * 64;
    const Histogram expected = analyze(addresses)->reuse;
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i)
        threads.emplace_back([&] { EXPECT_EQ(analyze(addresses)->reuse, expected); });
    for (std::thread& thread : threads) thread.join();
}

// ---- C ----

std::vector<std::uint64_t> walk() {
    std::vector<std::uint64_t> addresses(100000);
    for (std::size_t i = 0; i < addresses.size(); ++i) addresses[i] = i % 5000 * 64;
    return addresses;
}

TEST(LibraryC, batches_give_what_analyze_gives) {
    const auto addresses = walk();
    revisit_options* options = revisit_options_new();
    ASSERT_EQ(revisit_options_set(options, "bins", "log2"), REVISIT_OK);
    ASSERT_EQ(revisit_options_set(options, "time", "yes"), REVISIT_OK);
    revisit_analysis* analysis = nullptr;
    ASSERT_EQ(revisit_analysis_new(options, &analysis), REVISIT_OK);
    for (std::size_t at = 0; at < addresses.size(); at += 1000)
        ASSERT_EQ(revisit_analysis_add_addresses(analysis, addresses.data() + at, 1000), REVISIT_OK);
    revisit_profile* profile = nullptr;
    ASSERT_EQ(revisit_analysis_finish(analysis, &profile), REVISIT_OK);
    EXPECT_EQ(revisit_analysis_finish(analysis, &profile), REVISIT_INVALID_INPUT);

    EngineOptions same;
    same.bins = Binning::log2();
    same.time = true;
    const Profile expected = analyze(addresses, "exact", same).value();
    EXPECT_EQ(revisit_profile_accesses(profile), 100000);
    EXPECT_EQ(revisit_profile_distinct(profile), 5000);
    EXPECT_EQ(revisit_profile_granularity(profile), 64u);
    EXPECT_STREQ(revisit_profile_method(profile), "exact");
    for (auto [kind, histogram] :
         {std::pair(REVISIT_REUSE, expected.reuse), {REVISIT_TIME, *expected.time}}) {
        const revisit_histogram* found = revisit_profile_histogram(profile, kind);
        ASSERT_NE(found, nullptr);
        EXPECT_EQ(revisit_histogram_cold(found), histogram.cold);
        EXPECT_EQ(revisit_histogram_percentile(found, 0.5), histogram.percentile(0.5));
        EXPECT_TRUE(std::isnan(revisit_histogram_percentile(found, 1.5)));
        ASSERT_EQ(revisit_histogram_bins(found, nullptr, 0), histogram.bins.size());
        std::vector<revisit_bin> bins(histogram.bins.size());
        revisit_histogram_bins(found, bins.data(), bins.size());
        for (std::size_t i = 0; i < bins.size(); ++i) {
            EXPECT_EQ(bins[i].low, histogram.bins[i].low);
            EXPECT_EQ(bins[i].high, histogram.bins[i].high);
            EXPECT_EQ(bins[i].count, histogram.bins[i].count);
        }
    }
    EXPECT_EQ(revisit_profile_histogram(profile, REVISIT_SHARED), nullptr);
    const auto curve = miss_ratio_curve(expected.reuse);
    std::vector<revisit_point> points(curve.size() + 5);
    ASSERT_EQ(revisit_profile_curve(profile, points.data(), points.size()), curve.size());
    EXPECT_EQ(points[curve.size() - 1].miss_rate, curve.back().miss_rate);
    double hits = 0, error = 1;
    ASSERT_EQ(revisit_profile_hit_rate(profile, "1M:16:64", &hits, &error), REVISIT_OK);
    EXPECT_EQ(hits, predict_cache(expected, CacheSpec::parse("1M:16:64").value()).hit_rate);
    EXPECT_EQ(error, 0);

    char* text = nullptr;
    ASSERT_EQ(revisit_profile_to_json(profile, &text), REVISIT_OK);
    EXPECT_EQ(text, to_json(expected));
    revisit_profile* again = nullptr;
    ASSERT_EQ(revisit_profile_from_json(text, std::strlen(text), &again), REVISIT_OK);
    ASSERT_EQ(revisit_profile_merge(again, profile), REVISIT_OK);
    ASSERT_EQ(revisit_profile_merge(again, again), REVISIT_OK);
    EXPECT_EQ(revisit_profile_accesses(again), 400000);
    revisit_text_free(text);
    revisit_profile_free(again);
    revisit_profile_free(profile);
    revisit_analysis_free(analysis);
    revisit_options_free(options);
}

TEST(LibraryC, sites_and_writes_come_through) {
    const std::uint64_t addresses[] = {0, 64, 0, 64};
    const std::uint32_t sites[] = {1, 2, 1, 2};
    const std::uint8_t flags[] = {0, 1, 0, 1};
    revisit_options* options = revisit_options_new();
    revisit_options_set(options, "sites", "yes");
    revisit_analysis* analysis = nullptr;
    ASSERT_EQ(revisit_analysis_new(options, &analysis), REVISIT_OK);
    const revisit_batch batch{4, addresses, sites, nullptr, nullptr, flags};
    ASSERT_EQ(revisit_analysis_add(analysis, &batch), REVISIT_OK);
    revisit_profile* profile = nullptr;
    ASSERT_EQ(revisit_analysis_finish(analysis, &profile), REVISIT_OK);
    revisit_site found[4];
    ASSERT_EQ(revisit_profile_sites(profile, found, 4), 2u);
    EXPECT_EQ(found[0].id + found[1].id, 3u);
    EXPECT_EQ(found[0].accesses, 2);
    EXPECT_EQ(found[0].writes + found[1].writes, 2);
    EXPECT_EQ(revisit_histogram_cold(found[0].reuse), 1);
    revisit_profile_free(profile);
    revisit_analysis_free(analysis);
    revisit_options_free(options);
}

TEST(LibraryC, mistakes_have_a_code_and_a_sentence) {
    revisit_options* options = revisit_options_new();
    EXPECT_EQ(revisit_options_set(options, "method", "guess"), REVISIT_UNKNOWN_METHOD);
    EXPECT_STREQ(revisit_error_message(), "option method: there is no method \"guess\"");
    EXPECT_EQ(revisit_options_set(options, "colour", "red"), REVISIT_INVALID_INPUT);
    EXPECT_EQ(revisit_options_set(options, "granularity", "0"), REVISIT_INVALID_INPUT);
    EXPECT_EQ(revisit_options_set(options, "threads", "1e9"), REVISIT_INVALID_INPUT);
    EXPECT_EQ(revisit_options_set(nullptr, "bins", "log2"), REVISIT_INVALID_INPUT);
    EXPECT_EQ(revisit_options_set(options, "bins", nullptr), REVISIT_INVALID_INPUT);
    revisit_analysis* analysis = nullptr;
    EXPECT_EQ(revisit_analysis_new(options, nullptr), REVISIT_INVALID_INPUT);
    revisit_options* sampled = revisit_options_new();
    ASSERT_EQ(revisit_options_set(sampled, "rate", "0.5"), REVISIT_OK);
    EXPECT_EQ(revisit_analysis_new(sampled, &analysis), REVISIT_INVALID_INPUT);
    EXPECT_STREQ(revisit_error_message(),
                 "option rate: belongs to the methods sample and shards; exact does not use it");
    ASSERT_EQ(revisit_options_set(sampled, "method", "sample"), REVISIT_OK);
    ASSERT_EQ(revisit_analysis_new(sampled, &analysis), REVISIT_OK);
    revisit_analysis_free(analysis);
    revisit_options_free(sampled);
    ASSERT_EQ(revisit_options_set(options, "model", "private"), REVISIT_OK);
    ASSERT_EQ(revisit_analysis_new(options, &analysis), REVISIT_OK);
    const std::uint64_t addresses[] = {0, 64};
    EXPECT_EQ(revisit_analysis_add_addresses(analysis, addresses, 2), REVISIT_INVALID_INPUT);
    EXPECT_STREQ(revisit_error_message(),
                 "expected threads, which the private model needs, found a null pointer");
    EXPECT_EQ(revisit_analysis_add_addresses(analysis, nullptr, 2), REVISIT_INVALID_INPUT);
    EXPECT_EQ(revisit_analysis_add_addresses(analysis, nullptr, 0), REVISIT_OK);
    revisit_analysis_free(analysis);
    revisit_profile* profile = nullptr;
    EXPECT_EQ(revisit_analyze_file("/no/such", nullptr, nullptr, &profile), REVISIT_IO);
    EXPECT_EQ(revisit_profile_from_json("{", 1, &profile), REVISIT_INVALID_INPUT);
    EXPECT_EQ(profile, nullptr);
    EXPECT_EQ(revisit_profile_sites(nullptr, nullptr, 0), 0u);
    revisit_profile_free(nullptr);
    revisit_analysis_free(nullptr);
    revisit_options_free(options);
}

// ---- merges of runs ----

Profile run_of(std::mt19937_64& random, double share) {
    std::vector<std::uint64_t> addresses;
    std::normal_distribution<double> noise(share, 0.02);
    const double near = noise(random);
    for (int i = 0; i < 4000; ++i)
        addresses.push_back(static_cast<double>(random() % 1000) < 1000 * near
                                ? random() % 100 * 64
                                : random() % 100000 * 64);
    return analyze(addresses).value();
}

Profile merged_runs(std::uint64_t seed, double share, int runs) {
    std::mt19937_64 random(seed);
    ProfileMerger merger(run_of(random, share), true);
    for (int i = 1; i < runs; ++i) EXPECT_TRUE(merger.add(run_of(random, share)));
    return merger.take();
}

TEST(MergedRuns, keep_groups_whose_sum_is_the_whole) {
    const Profile merged = merged_runs(1, 0.7, 100);
    ASSERT_EQ(merged.runs.size(), kRunGroups);
    Histogram sum;
    double runs = 0;
    for (const RunGroup& group : merged.runs) {
        sum.merge(group.reuse);
        runs += group.runs;
        EXPECT_NEAR(group.runs, 100.0 / kRunGroups, 1);
    }
    EXPECT_EQ(runs, 100);
    EXPECT_EQ(sum, merged.reuse);
    EXPECT_EQ(to_json(profile_from_json(to_json(merged)).value()), to_json(merged));
}

// Two merges of one release differ by noise, and the gate knows; another release differs by more.
TEST(MergedRuns, diff_tells_noise_from_a_change) {
    DiffOptions options;
    options.caches = {CacheSpec::parse("16K:full:64").value()};
    options.fail_if = {parse_condition("l1.hit_rate < -1%").value()};
    int false_alarms = 0;
    for (std::uint64_t seed = 10; seed < 30; seed += 2) {
        auto same = compare({merged_runs(seed, 0.7, 48)}, {merged_runs(seed + 1, 0.7, 48)}, options);
        ASSERT_TRUE(same) << same.error().sentence();
        EXPECT_GT(same->hit_rates[0].old_value.error, 0);
        EXPECT_EQ(same->old_runs, 48u);
        false_alarms += same->failed();
    }
    EXPECT_LE(false_alarms, 1);
    auto other = compare({merged_runs(5, 0.7, 48)}, {merged_runs(6, 0.6, 48)}, options);
    ASSERT_TRUE(other);
    EXPECT_TRUE(other->failed());
}

}  // namespace
}  // namespace revisit
