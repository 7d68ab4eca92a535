// What is counted beside the main histogram: pages, line use, threads placed on cores, hierarchies.
// Each against a definition that is slow and plain.
#include "engines/beside.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <list>
#include <map>
#include <random>
#include <set>
#include <string>

#include "byte_trace.h"
#include "engines/hierarchy.h"
#include "engines/set_associative.h"
#include "models/hierarchy_model.h"
#include "models/tlbs.h"
#include "revisit/revisit.h"

namespace revisit {
namespace {

using testing::ByteTrace;

// Threads that walk and jump in memory of their own and in memory that all share.
ByteTrace random_trace(std::uint64_t seed, std::size_t count, unsigned threads, std::uint64_t bytes,
                       double written = 0.3) {
    std::mt19937_64 random(seed);
    auto chance = [&](double share) { return std::uniform_real_distribution<>(0, 1)(random) < share; };
    std::vector<std::uint64_t> at(threads);
    ByteTrace out;
    for (std::size_t i = 0; i < count; ++i) {
        const auto thread = static_cast<std::uint16_t>(random() % threads);
        const bool common = chance(0.05);
        at[thread] = chance(0.1) ? random() % bytes : (at[thread] + 8) % bytes;
        const std::uint64_t address =
            (common ? 0 : (thread + 1) * (bytes + 4096)) + (common ? random() % 4096 : at[thread]);
        const auto site = static_cast<std::uint32_t>(random() % 7);
        const auto size = static_cast<std::uint32_t>(1u << random() % 5);
        out.add(thread, chance(common ? 0.1 : written), address, size, site);
    }
    return out;
}

TEST(Granularities, equal_runs_of_their_own) {
    for (const char* method : {"exact", "olken"})
        for (const StackModel model : {StackModel::single, StackModel::private_}) {
            if (model == StackModel::private_ && std::string_view(method) == "olken") continue;
            const ByteTrace trace = random_trace(5, 20000, 3, 1 << 20);
            AnalyzeOptions options;
            options.method = method;
            options.engine.model = model;
            options.engine.sites = true;
            options.more_granularities = {4096, 48, 65536};
            const Profile together = analyze(trace.batch(), options).value();
            ASSERT_EQ(together.granularities.size(), 4u);
            for (const GranularityProfile& one : together.granularities) {
                AnalyzeOptions alone;
                alone.method = method;
                alone.engine.model = model;
                alone.engine.granularity = one.granularity;
                const Profile expected = analyze(trace.batch(), alone).value();
                EXPECT_EQ(one.reuse, expected.reuse) << method << " " << one.granularity;
                EXPECT_EQ(one.distinct, expected.distinct);
            }
            EXPECT_EQ(together.granularities[0].granularity, 64u);
            EXPECT_EQ(together.granularities[0].reuse, together.reuse);
        }
}

TEST(Granularities, pick_the_histogram_of_a_cache_with_such_lines) {
    Profile profile;
    profile.reuse = {0, 0, 0, 0, {{1000, 1001, 100, 0}}};
    profile.granularities = {{64, 1, profile.reuse}, {4096, 1, {0, 0, 0, 0, {{2, 3, 100, 0}}}}};
    EXPECT_EQ(predict_cache(profile, *CacheSpec::parse("32K:full:64")).hit_rate, 0);
    EXPECT_EQ(predict_cache(profile, *CacheSpec::parse("256K:full:4K")).hit_rate, 1);
}

// ---- accesses as they come ----

// In batches of different sizes, some of them empty.
Result<Profile> added_in_batches(const ByteTrace& trace, const AnalyzeOptions& options) {
    Result<Analysis> analysis = Analysis::begin(options);
    if (!analysis) return unexpected(analysis.error());
    const AccessBatch all = trace.batch();
    std::mt19937_64 random(8);
    for (std::size_t at = 0; at < all.count();) {
        const std::size_t count = std::min<std::size_t>(random() % 3000, all.count() - at);
        const Result<void> added =
            analysis->add({all.addresses.subspan(at, count), all.sites.subspan(at, count),
                           all.sizes.subspan(at, count), all.threads.subspan(at, count),
                           all.flags.subspan(at, count)});
        if (!added) return unexpected(added.error());
        at += count;
    }
    return analysis->finish();
}

TEST(Analysis, counts_in_batches_what_analyze_counts_at_once) {
    const ByteTrace trace = random_trace(12, 60000, 3, 1 << 18);
    for (const bool one_stack : {true, false})
        for (const unsigned threads : {1u, 4u})
            for (const bool streamed : {false, true})
                for (const bool pages : {false, true}) {
                    AnalyzeOptions options;
                    EngineOptions& engine = options.engine;
                    engine.model = one_stack ? StackModel::single : StackModel::private_;
                    engine.sites = true;
                    engine.pairs = one_stack;
                    engine.sharing = !one_stack;
                    engine.threads = threads;
                    engine.streamed = streamed;
                    if (pages) options.more_granularities = {4096};
                    if (one_stack && !pages) options.caches = {*CacheSpec::parse("4K:4:64")};
                    if (one_stack) options.line_use = *CacheSpec::parse("32K:8:64");
                    if (!one_stack) options.cores = {0, 1};
                    AnalyzeOptions at_once = options;
                    at_once.engine.streamed = false;
                    at_once.engine.threads = 1;
                    const Profile expected = analyze(trace.batch(), at_once).value();
                    EXPECT_EQ(to_json(added_in_batches(trace, options).value()), to_json(expected))
                        << (one_stack ? "one stack, " : "private stacks, ") << threads << " threads, "
                        << (streamed ? "streamed, " : "") << (pages ? "pages" : "");
                }
}

TEST(Analysis, simulates_caches_beside_the_engine) {
    const ByteTrace trace = random_trace(13, 60000, 1, 1 << 18);
    for (const unsigned threads : {1u, 4u}) {
        AnalyzeOptions options;
        options.engine.threads = threads;
        options.caches = {*CacheSpec::parse("4K:4:64"), *CacheSpec::parse("64K:8:64"),
                          *CacheSpec::parse("64K:8:128")};
        const Profile profile = analyze(trace.batch(), options).value();
        ASSERT_EQ(profile.caches.size(), 2u);  // one has other lines
        for (const SimulatedCache& cache : profile.caches) {
            auto alone = CacheSimulator::create(cache.spec).value();
            BlockCutter cutter(64);
            ASSERT_TRUE(cutter.cut(trace.batch(), [&](const BlockBatch& piece) -> Result<void> {
                alone.access(piece.blocks);
                return {};
            }));
            EXPECT_EQ(cache.accesses, static_cast<double>(alone.accesses())) << cache.spec.name;
            EXPECT_EQ(cache.misses, static_cast<double>(alone.misses())) << cache.spec.name;
            EXPECT_GT(cache.misses, 1000);
        }
    }
    AnalyzeOptions options;
    options.engine.model = StackModel::private_;
    options.caches = {*CacheSpec::parse("4K:4:64")};
    EXPECT_EQ(analyze(trace.batch(), options).error().code, ErrorCode::unsupported);
}

TEST(Analysis, takes_blocks_where_nothing_asks_for_more) {
    const std::vector<std::uint64_t> blocks = {1, 2, 1, 3, 2};
    for (const bool streamed : {false, true}) {
        AnalyzeOptions options;
        options.engine.streamed = streamed;
        Analysis analysis = Analysis::begin(options).value();
        ASSERT_TRUE(analysis.add_blocks({blocks, {}, {}, {}}));
        const Profile profile = analysis.finish().value();
        EXPECT_EQ(profile.distinct, 3);
        EXPECT_EQ(profile.reuse.total(), 5);
        EXPECT_FALSE(analysis.add_blocks({blocks, {}, {}, {}}));
        EXPECT_FALSE(analysis.finish());

        for (int asked = 0; asked < 3; ++asked) {
            AnalyzeOptions more = options;
            if (asked == 0) more.more_granularities = {4096};
            if (asked == 1) more.line_use = *CacheSpec::parse("4K:4:64");
            if (asked == 2) more.also = [](const AccessBatch&) -> Result<void> { return {}; };
            const auto added = Analysis::begin(more)->add_blocks({blocks, {}, {}, {}});
            ASSERT_FALSE(added) << asked;
            EXPECT_EQ(added.error().code, ErrorCode::unsupported);
        }
    }
}

// Every line in an LRU list per set, with the bytes that were touched and the site that fetched it.
std::map<std::uint32_t, LineUse> naive_line_use(const ByteTrace& trace, const CacheSpec& cache) {
    struct Line {
        std::uint64_t line;
        std::uint32_t site;
        std::set<std::uint64_t> bytes;
    };
    std::map<std::uint64_t, std::list<Line>> sets;
    std::map<std::uint32_t, LineUse> out;
    auto leave = [&](const Line& line) {
        LineUse& use = out[line.site];
        use.fetches += 1;
        use.bytes += static_cast<double>(line.bytes.size());
        for (std::uint64_t byte : line.bytes) use.parts |= std::uint64_t{1} << byte;
    };
    const std::uint64_t number = cache.blocks() / cache.associativity();
    for (std::size_t i = 0; i < trace.addresses.size(); ++i) {
        const std::uint64_t first = trace.addresses[i], last = first + trace.sizes[i] - 1;
        for (std::uint64_t line = first / 64; line <= last / 64; ++line) {
            std::list<Line>& set = sets[line % number];
            auto found = std::ranges::find(set, line, &Line::line);
            if (found == set.end()) {
                if (set.size() == cache.associativity()) {
                    leave(set.back());
                    set.pop_back();
                }
                set.push_front({line, trace.sites[i], {}});
            } else {
                set.splice(set.begin(), set, found);
            }
            for (std::uint64_t at = first; at <= last; ++at)
                if (at / 64 == line) set.front().bytes.insert(at % 64);
        }
    }
    for (const auto& [index, set] : sets)
        for (const Line& line : set) leave(line);
    return out;
}

TEST(LineUse, equals_the_bytes_of_every_line_counted_one_by_one) {
    // One thread for all of it, or one for line use alone.
    for (const auto& [text, threads] : {std::pair{"4K:4:64", 1u},
                                        {"64K:8:64", 4u},
                                        {"1K:1:64", 4u},
                                        {"3K:3:64", 1u},
                                        {"12K:12:64", 1u},
                                        {"8K:64:64", 1u},
                                        {"4K:4:64", 4u}}) {
        const ByteTrace trace = random_trace(9, 30000, 2, 1 << 17);
        AnalyzeOptions options;
        options.engine.sites = true;
        options.engine.threads = threads;
        options.line_use = *CacheSpec::parse(text);
        const Profile profile = analyze(trace.batch(), options).value();
        ASSERT_TRUE(profile.line_use);
        EXPECT_EQ(profile.line_use->cache, text);
        LineUse sum;
        const auto expected = naive_line_use(trace, *options.line_use);
        for (const Site& site : profile.sites) {
            const LineUse& use = expected.at(site.id);
            EXPECT_EQ(site.line_use.fetches, use.fetches) << text;
            EXPECT_EQ(site.line_use.bytes, use.bytes) << text;
            EXPECT_EQ(site.line_use.parts, use.parts) << text;
            sum.fetches += use.fetches;
            sum.bytes += use.bytes;
        }
        EXPECT_EQ(profile.line_use->use.fetches, sum.fetches);
        EXPECT_EQ(profile.line_use->use.bytes, sum.bytes);
    }
}

// Times that run out after so many uses are numbered anew, in the same order.
TEST(LineUse, goes_on_when_times_run_out) {
    const CacheSpec cache = *CacheSpec::parse("4K:4:64");
    std::mt19937_64 random(3);
    std::vector<std::uint64_t> lines(50000);
    std::vector<std::uint32_t> sites(lines.size());
    const std::vector<std::uint16_t> parts(lines.size(), 7 << 8);
    for (std::size_t i = 0; i < lines.size(); ++i) {
        lines[i] = random() % 40 * (random() % 40);
        sites[i] = static_cast<std::uint32_t>(random() % 3);
    }
    std::vector<Profile> profiles;
    for (const std::uint32_t last : {1u << 30, 7u, 100u, 4001u}) {
        LineUseParts use(cache, 1, last);
        LineDealer dealer({1, 16, true});
        DealtLines dealt;
        dealer.deal({lines, sites, {}, {}, parts}, dealt);
        use.add(0, dealt);
        Profile& profile = profiles.emplace_back();
        profile.sites.resize(3);
        for (std::uint32_t site = 0; site < 3; ++site) profile.sites[site].id = site;
        use.fill(profile);
    }
    EXPECT_GT(profiles[0].line_use->use.fetches, 1000);
    for (const Profile& profile : profiles)
        for (std::size_t site = 0; site < 3; ++site) {
            const LineUse &seen = profile.sites[site].line_use,
                          &expected = profiles[0].sites[site].line_use;
            EXPECT_EQ(seen.fetches, expected.fetches);
            EXPECT_EQ(seen.bytes, expected.bytes);
            EXPECT_EQ(seen.parts, expected.parts);
        }
}

TEST(LineUse, sweeps_are_regular_and_gathers_are_not) {
    ByteTrace trace;
    std::mt19937_64 random(11);
    const std::uint64_t bases[] = {0x10000000, 0x20000000, 0x30000000, 0x40000000};
    for (std::uint64_t i = 0; i < 5000; ++i) {
        const std::uint64_t at[] = {bases[0] + 8 * i, bases[1] + 96 * i, bases[2] - 4096 * i,
                                    bases[3] + 64 * (random() % (1 << 22))};
        for (std::uint32_t site = 0; site < 4; ++site) trace.add(0, false, at[site], 8, site);
    }
    AnalyzeOptions options;
    options.engine.sites = true;
    options.line_use = *CacheSpec::parse("32K:8:64");
    const Profile profile = analyze(trace.batch(), options).value();
    ASSERT_EQ(profile.sites.size(), 4u);
    for (const Site& site : profile.sites) {
        ASSERT_TRUE(site.regular);
        if (site.id == 3)
            EXPECT_LT(*site.regular, 0.01);
        else
            EXPECT_GT(*site.regular, 0.99) << site.id;
    }
}

TEST(LineUse, refuses_caches_that_are_too_large) {
    for (const char* text : {"1M:full:64", "64G:8:64"})
        EXPECT_FALSE(LineUseTally::create(*CacheSpec::parse(text))) << text;
}

TEST(LineUse, and_first_touches_survive_a_file_and_a_merge) {
    Profile profile;
    profile.line_use = LineUseTotals{"1M:8:64", 64, {10, 160, 0xff}};
    Site site;
    site.id = 3;
    site.module = "app";
    site.line_use = {10, 160, 0xff};
    profile.sites = {site};
    profile.contexts = {{}, {0, "app", 1, {"main", "a.c", 3}}};
    profile.touches = {{3, 1, 5, 2}};
    Profile read = profile_from_json(to_json(profile)).value();
    EXPECT_EQ(to_json(read), to_json(profile));
    ASSERT_TRUE(merge_profile(read, profile));
    EXPECT_EQ(read.sites[0].line_use.bytes, 320);
    EXPECT_EQ(read.line_use->use.fetches, 20);
    ASSERT_EQ(read.touches.size(), 1u);
    EXPECT_EQ(read.touches[0].cold, 10);
    profile.line_use->cache = "2M:8:64";  // bytes used in different caches have no sum
    ASSERT_TRUE(merge_profile(read, profile));
    EXPECT_FALSE(read.line_use);
    EXPECT_EQ(read.sites[0].line_use.fetches, 0);
    EXPECT_FALSE(profile_from_json(R"({"schema": "revisit/profile@1", "reuse": {"cold": 0,
        "invalidated": 0, "bins": []}, "touches": [{"site": 1, "context": 7, "cold": 1}]})"));
}

TEST(Placement, threads_of_a_core_share_its_stack) {
    const ByteTrace trace = random_trace(3, 20000, 4, 1 << 14);
    ByteTrace placed = trace;
    for (std::uint16_t& thread : placed.threads) thread %= 2;
    AnalyzeOptions options, by_hand;
    options.engine.model = by_hand.engine.model = StackModel::private_;
    options.engine.shared = by_hand.engine.shared = true;
    options.cores = {0, 1, 0, 1};
    EXPECT_EQ(to_json(analyze(trace.batch(), options).value()),
              to_json(analyze(placed.batch(), by_hand).value()));
}

TEST(Hierarchy, one_core_is_its_caches_one_after_another) {
    const ByteTrace trace = random_trace(4, 50000, 1, 1 << 18);
    std::vector<std::uint64_t> lines;
    for (std::uint64_t address : trace.addresses) lines.push_back(address / 64);
    auto hierarchy =
        HierarchySimulator::create(HierarchySimulator::parse("4K:4:64+64K:8:64").value()).value();
    hierarchy.access({lines, {}, {}, {}});
    auto first = CacheSimulator::create(*CacheSpec::parse("4K:4:64")).value();
    auto second = CacheSimulator::create(*CacheSpec::parse("64K:8:64")).value();
    for (std::uint64_t line : lines) {
        const std::uint64_t before = first.misses();
        first.access({&line, 1});
        if (first.misses() > before) second.access({&line, 1});
    }
    EXPECT_EQ(hierarchy.misses(0), first.misses());
    EXPECT_EQ(hierarchy.misses(1), second.misses());
}

TEST(Hierarchy, a_write_takes_the_line_from_other_cores_and_leaves_it_in_the_shared_cache) {
    auto levels = HierarchySimulator::parse("1K:2:64+4K:4:64+64K:8:64").value();
    auto hierarchy = HierarchySimulator::create(levels).value();
    const std::vector<std::uint64_t> lines = {7, 7, 7, 7};
    const std::vector<std::uint16_t> cores = {0, 1, 0, 0};
    const std::vector<std::uint8_t> flags = {0, kWrite, 0, 0};
    hierarchy.access({lines, {}, cores, flags});
    EXPECT_EQ(hierarchy.misses(0), 3u);  // first touch, another core, invalidated; then a hit
    EXPECT_EQ(hierarchy.misses(1), 3u);
    EXPECT_EQ(hierarchy.misses(2), 1u);
}

TEST(Hierarchy, is_predicted_within_two_points_from_one_profile) {
    for (const unsigned threads : {2u, 4u, 8u})
        for (const std::vector<std::uint16_t>& cores :
             {std::vector<std::uint16_t>{}, std::vector<std::uint16_t>{0, 1, 0, 1}}) {
            const ByteTrace trace = random_trace(threads, 400000, threads, 1 << 16);
            auto levels = HierarchySimulator::parse("4K:8:64+32K:8:64+256K:16:64").value();
            auto hierarchy = HierarchySimulator::create(levels).value();
            BlockCutter cutter(64);
            AnalyzeOptions options;
            options.engine.model = StackModel::private_;
            options.engine.shared = true;
            options.cores = cores;
            options.also = [&](const AccessBatch& batch) {
                return cutter.cut(batch, [&](const BlockBatch& piece) -> Result<void> {
                    hierarchy.access(piece);
                    return {};
                });
            };
            const Profile profile = analyze(trace.batch(), options).value();
            const std::vector<double> predicted = predict_hierarchy(profile, levels).value();
            for (std::size_t i = 0; i < levels.size(); ++i)
                EXPECT_NEAR(static_cast<double>(hierarchy.misses(i)) /
                                static_cast<double>(hierarchy.accesses()),
                            predicted[i], 0.02)
                    << threads << " threads, level " << i + 1;
            // By its name, the last one is what cores share in reports too.
            CacheSpec last = levels.back();
            last.name = "L3";
            std::vector<CacheSpec> named = levels;
            named.back() = last;
            EXPECT_DOUBLE_EQ(std::min(predict_level(profile, last, named).miss_rate, predicted[1]),
                             predicted[2]);
            // Not for nothing: levels differ, and threads take lines from each other.
            EXPECT_GT(predicted[0], predicted[2] + 0.02);
            EXPECT_GT(profile.reuse.invalidated, 1000);
        }
}

// What a hierarchy of these levels misses, simulated and predicted from the profile of the same pass.
struct Compared {
    std::vector<double> simulated, predicted;
};
Compared compare(const ByteTrace& trace, const char* text, bool asked) {
    auto levels = HierarchySimulator::parse(text).value();
    auto hierarchy = HierarchySimulator::create(levels).value();
    BlockCutter cutter(64);
    AnalyzeOptions options;
    options.engine.model = StackModel::private_;
    options.engine.shared = true;
    if (asked) options.engine.filters.assign(levels.begin(), levels.end() - 1);
    options.also = [&](const AccessBatch& batch) {
        return cutter.cut(batch, [&](const BlockBatch& piece) -> Result<void> {
            hierarchy.access(piece);
            return {};
        });
    };
    // What is written to a file predicts the same.
    const Profile profile = profile_from_json(to_json(analyze(trace.batch(), options).value())).value();
    Compared out{{}, predict_hierarchy(profile, levels).value()};
    for (std::size_t i = 0; i < levels.size(); ++i)
        out.simulated.push_back(static_cast<double>(hierarchy.misses(i)) /
                                static_cast<double>(hierarchy.accesses()));
    return out;
}

// Threads with the same or different numbers of lines of their own, some of them common to all.
ByteTrace footprint_trace(std::mt19937_64& random, const std::string& kind, unsigned threads,
                          std::uint64_t lines, bool equal, double common, double written) {
    ByteTrace out;
    std::vector<std::uint64_t> at(threads);
    auto real = [&] { return std::uniform_real_distribution<>(0, 1)(random); };
    for (std::size_t i = 0, thread = 0; i < 150000; ++i) {
        if (random() % 4 == 0) thread = random() % threads;
        const std::uint64_t mine = std::max<std::uint64_t>(16, equal ? lines : lines >> thread % 5);
        std::uint64_t line = random() % mine;
        if (kind == "skewed")
            line = static_cast<std::uint64_t>(std::exp(real() * std::log(static_cast<double>(mine))));
        if (kind == "scan") line = at[thread]++ / 4 % mine;
        if (kind == "stream" && random() % 3 == 0) line = (1u << 24) + at[thread]++ / 8;
        const std::uint64_t base = real() < common ? 0 : (thread + 1) * 0x40000000;
        out.add(static_cast<std::uint16_t>(thread), real() < written, base + 64 * line, 4, 0);
    }
    return out;
}

TEST(Hierarchy, is_predicted_where_the_shared_cache_is_as_large_as_the_private_ones) {
    std::mt19937_64 random(22);
    double most = 0;
    for (const char* kind : {"uniform", "skewed", "scan", "stream"})
        for (const unsigned threads : {2u, 4u, 16u})
            for (const bool equal : {true, false}) {
                const std::uint64_t lines = std::uint64_t{512} << random() % 3;
                const ByteTrace trace =
                    footprint_trace(random, kind, threads, lines, equal, 0.25 * (random() % 3),
                                    0.1 * static_cast<double>(random() % 3));
                // From half to twice the private caches together.
                const std::string text = std::string("4K:8:64+32K:8:64+") +
                                         std::to_string((16u << random() % 3) * threads) + "K:16:64";
                const Compared found = compare(trace, text.c_str(), true);
                for (std::size_t i = 0; i < found.simulated.size(); ++i)
                    EXPECT_NEAR(found.simulated[i], found.predicted[i], 0.02)
                        << kind << ", " << threads << " threads, " << lines << " lines, " << text
                        << ", level " << i + 1;
                most = std::max(most, found.simulated[2]);
            }
    EXPECT_GT(most, 0.3);  // not for nothing
}

// Sizes that nobody asked for: a quarter of the sets of a 256 KiB cache.
TEST(Hierarchy, of_a_common_size_is_predicted_without_being_asked_for) {
    std::mt19937_64 random(23);
    for (const char* kind : {"uniform", "skewed", "scan"}) {
        const ByteTrace trace = footprint_trace(random, kind, 4, 8192, false, 0.25, 0.05);
        const Compared found = compare(trace, "256K:8:64+1M:16:64", false);
        for (std::size_t i = 0; i < found.simulated.size(); ++i)
            EXPECT_NEAR(found.simulated[i], found.predicted[i], 0.02) << kind << ", level " << i + 1;
    }
}

TEST(Hierarchy, of_two_runs_is_merged_and_broken_files_are_refused) {
    std::mt19937_64 random(24);
    AnalyzeOptions options;
    options.engine.model = StackModel::private_;
    options.engine.shared = true;
    const Profile one =
        analyze(footprint_trace(random, "uniform", 2, 4096, true, 0.5, 0.1).batch(), options).value();
    ASSERT_FALSE(one.filters.empty());
    Profile twice = one;
    ASSERT_TRUE(merge_profile(twice, one));
    ASSERT_EQ(twice.filters.size(), one.filters.size());
    EXPECT_EQ(twice.filters[0].own.counts[3], 2 * one.filters[0].own.counts[3]);
    EXPECT_EQ(twice.filters[0].shared[1].counts.back(), 2 * one.filters[0].shared[1].counts.back());
    Profile other = one;
    other.filters.erase(other.filters.begin());
    ASSERT_TRUE(merge_profile(twice, other));
    EXPECT_EQ(twice.filters.size(), other.filters.size());
    for (const char* filter :
         {R"({"sets": 0, "ways": 1, "depths": [1, 2]})", R"({"sets": 2, "ways": 2, "depths": [1, 2]})",
          R"({"sets": 2, "ways": 1, "depths": [1, 2], "shared": [{"sets": 2}]})"})
        EXPECT_FALSE(profile_from_json(
            std::string(R"({"schema": "revisit/profile@1", "reuse": {"cold": 0, "invalidated": 0,
                "bins": []}, "filters": [)") +
            filter + "]}"))
            << filter;
}

TEST(Hierarchy, says_what_it_cannot_simulate) {
    EXPECT_FALSE(HierarchySimulator::parse("32K:8:64+"));
    for (const char* text : {"32K:8:64", "32K:8:64+1M:8:128", "32K:8:64+1M:full:64"})
        EXPECT_FALSE(HierarchySimulator::create(HierarchySimulator::parse(text).value())) << text;
    EXPECT_FALSE(predict_hierarchy(Profile{}, {}));
}

// As processors answer: Zen 2 (AMD's manual and its own dump) and Ice Lake.
TEST(Tlbs, are_read_from_cpuid) {
    auto amd = [](std::uint32_t leaf, std::uint32_t) -> CpuidWords {
        switch (leaf) {
            case 0:
                return {0x10, 0x68747541, 0x444d4163, 0x69746e65};
            case 0x80000000u:
                return {0x80000020u, 0, 0, 0};
            case 0x80000005u:
                return {0xff40ff40u, 0xff40ff40u, 0, 0};
            case 0x80000006u:
                return {0x48006400u, 0x68006400u, 0, 0};
            default:
                return {};
        }
    };
    const std::vector<CacheSpec> zen = tlbs_of(amd);
    ASSERT_EQ(zen.size(), 4u);
    EXPECT_EQ(zen[0].blocks(), 64u);
    EXPECT_EQ(zen[0].ways, 0u);
    EXPECT_EQ(zen[1].blocks(), 2048u);
    EXPECT_EQ(zen[1].ways, 8u);
    EXPECT_EQ(zen[1].line, 4096u);
    EXPECT_EQ(zen[3].line, std::uint64_t{2} << 20);
    EXPECT_EQ(zen[3].ways, 4u);

    auto intel = [](std::uint32_t leaf, std::uint32_t sub) -> CpuidWords {
        if (leaf == 0) return {0x1b, 0x756e6547, 0x6c65746e, 0x49656e69};
        if (leaf != 0x18) return {};
        switch (sub) {
            case 0:
                return {4, 0, 0, 0};
            case 1:
                return {0, 0x00040001, 16, 0x00004021};  // 64 entries for 4 KiB, data
            case 2:
                return {0, 0x00080003, 16, 0x00004022};  // instructions
            case 3:
                return {0, 0x00080007, 128, 0x00004043};  // 1024 entries, unified
            case 4:
                return {0, 0x00200002, 1, 0x00004121};  // 32 entries for 2 MiB, fully associative
            default:
                return {};
        }
    };
    const std::vector<CacheSpec> lake = tlbs_of(intel);
    ASSERT_EQ(lake.size(), 4u);
    EXPECT_EQ(lake[0].blocks(), 64u);
    EXPECT_EQ(lake[0].ways, 4u);
    EXPECT_EQ(lake[1].blocks(), 1024u);
    EXPECT_EQ(lake[2].line, std::uint64_t{2} << 20);
    EXPECT_TRUE(tlbs_of([](std::uint32_t, std::uint32_t) { return CpuidWords{}; }).empty());
}

}  // namespace
}  // namespace revisit
