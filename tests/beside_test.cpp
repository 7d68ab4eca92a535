// What is counted beside the main histogram: pages, line use, threads placed on cores, hierarchies.
// Each against a definition that is slow and plain.
#include "engines/beside.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <list>
#include <map>
#include <random>
#include <set>

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
    for (const char* text : {"4K:4:64", "64K:8:64", "1K:1:64", "3K:3:64"}) {
        const ByteTrace trace = random_trace(9, 30000, 2, 1 << 17);
        AnalyzeOptions options;
        options.engine.sites = true;
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
            EXPECT_DOUBLE_EQ(std::min(predict_cache(profile, last).miss_rate, predicted[1]),
                             predicted[2]);
            // Not for nothing: levels differ, and threads take lines from each other.
            EXPECT_GT(predicted[0], predicted[2] + 0.02);
            EXPECT_GT(profile.reuse.invalidated, 1000);
        }
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
