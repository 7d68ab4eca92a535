// The parallel count against the definition, on every boundary of chunk, tile and digit.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "engines/partition_count.h"
#include "engines/partition_engine.h"
#include "engines/partition_plan.h"
#include "engines/reuse_runs.h"
#include "random_traces.h"
#include "revisit/revisit.h"

namespace revisit {
namespace {

std::string counted(Engine& engine, const testing::NamedTrace& trace,
                    const std::vector<std::uint32_t>& sites) {
    std::size_t half = trace.blocks.size() / 2;
    std::span<const std::uint64_t> blocks = trace.blocks;
    std::span<const std::uint32_t> ids = sites;
    EXPECT_TRUE(engine.add({blocks.first(half), ids.first(half), {}, {}}));
    EXPECT_TRUE(engine.add({blocks.subspan(half), ids.subspan(half), {}, {}}));
    Profile profile = engine.finish().value();
    profile.method = "any";
    return to_json(profile);
}

TEST(PartitionPlan, passes_cover_the_bits_above_the_tile) {
    for (unsigned tail : {1u, 4u, 13u})
        for (unsigned widest : {1u, 3u, 4u, 8u})
            for (std::uint64_t count :
                 {0ull, 1ull, 2ull, 31ull, 8192ull, 8193ull, 1ull << 29, (1ull << 31) - 1}) {
                PartitionPlan plan = plan_partition(count, tail, widest);
                unsigned top = 0;
                while ((1ull << top) < count) ++top;
                for (unsigned i = 0; i < plan.count; ++i) {
                    EXPECT_EQ(plan.passes[i].shift + plan.passes[i].bits, top);
                    EXPECT_LE(plan.passes[i].bits, widest);
                    top = plan.passes[i].shift;
                }
                EXPECT_LE(top, tail);
            }
}

TEST(ReuseRuns, agree_with_reuses_one_by_one) {
    std::mt19937_64 random(4);
    for (std::size_t count = 0; count < 60; ++count) {
        std::vector<ReuseRun> runs;
        std::uint32_t key = 0;
        for (std::size_t i = 0; i < count; ++i) {
            const auto length = static_cast<std::uint32_t>(1 + random() % 5);
            runs.push_back({key, length, static_cast<std::uint32_t>(5000 + random() % 9)});
            key += length;
        }
        if (count % 7 != 0) std::shuffle(runs.begin(), runs.end(), random);
        Reuses reuses;
        for (const ReuseRun& run : runs)
            for (std::uint32_t i = 0; i < run.length; ++i) {
                reuses.key.push_back(run.key + i);
                reuses.span.push_back(run.span);
            }
        const auto expected = distances_by_key(reuses, 1);
        count_run_distances(runs);
        for (const ReuseRun& run : runs)
            for (std::uint32_t i = 0; i < run.length; ++i)
                EXPECT_EQ(run.span, expected[run.key + i]) << count << " runs";
    }
}

TEST(PartitionCount, larger_ones_to_the_left_are_subtracted) {
    std::mt19937_64 random(3);
    for (std::size_t count = 0; count < 70; ++count) {
        Reuses reuses;
        for (std::uint32_t i = 0; i < count; ++i) reuses.key.push_back(i);
        std::shuffle(reuses.key.begin(), reuses.key.end(), random);
        reuses.span.assign(count, 1000);
        std::vector<std::uint32_t> expected(count);
        for (std::size_t i = 0; i < count; ++i)
            expected[reuses.key[i]] =
                1000 - static_cast<std::uint32_t>(std::count_if(
                           reuses.key.begin(), reuses.key.begin() + static_cast<std::ptrdiff_t>(i),
                           [&](std::uint32_t key) { return key > reuses.key[i]; }));
        for (unsigned tail = 0; tail <= 5; ++tail)
            for (unsigned widest : {1u, 2u, 3u, 4u})
                EXPECT_EQ(distances_by_key(reuses, 2, {tail, widest}), expected)
                    << count << " " << tail;
    }
}

TEST(PartitionEngine, agrees_with_naive_at_every_chunk_tile_and_digit_width) {
    std::mt19937_64 random(4);
    for (const auto& trace : testing::small_traces(11)) {
        std::vector<std::uint32_t> sites(trace.blocks.size());
        for (auto& site : sites) site = random() % 5;
        EngineOptions options;
        options.bins = Binning::exact();
        options.time = options.sites = options.pairs = true;
        const std::string expected = counted(*make_engine("naive", options).value(), trace, sites);
        for (std::size_t chunk : {1, 63, 64, 65, 700, 100000})
            for (PartitionShape shape :
                 {PartitionShape{2, 1}, PartitionShape{4, 3}, PartitionShape{7, 4}}) {
                if (chunk == 1 && shape.tail != 4) continue;
                options.threads = chunk == 700 ? 3 : 1;
                EXPECT_EQ(counted(*make_partition_in_chunks(options, chunk, shape), trace, sites),
                          expected)
                    << trace.name << " in chunks of " << chunk << ", tiles of 2^" << shape.tail;
            }
    }
}

TEST(PartitionEngine, lengths_around_a_tile) {
    std::mt19937_64 random(5);
    for (std::size_t count : {15, 16, 17, 31, 32, 33, 255, 256, 257, 511, 512, 513}) {
        testing::NamedTrace trace{std::to_string(count), std::vector<std::uint64_t>(count)};
        for (auto& block : trace.blocks) block = random() % (count / 4);
        std::vector<std::uint32_t> sites(count);
        EngineOptions options;
        options.bins = Binning::exact();
        EXPECT_EQ(counted(*make_partition_in_chunks(options, 1000, {4, 2}), trace, sites),
                  counted(*make_engine("naive", options).value(), trace, sites))
            << count;
    }
}

}  // namespace
}  // namespace revisit
