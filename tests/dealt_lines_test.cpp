// What caches count from dealt lines, with repeats dropped and on several threads, against what they
// count from all of them; and the arrays that come and go with windows.
#include "engines/dealt_lines.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <map>
#include <random>

#include "engines/block_workers.h"
#include "engines/cache_bank.h"
#include "engines/growing_array.h"
#include "engines/line_use.h"
#include "engines/sharing.h"

namespace revisit {
namespace {

// Lines with their sites and parts: walks with strides, a gather, and some that stay where they are.
struct Walks {
    std::vector<std::uint64_t> lines;
    std::vector<std::uint32_t> sites;
    std::vector<std::uint16_t> parts;

    explicit Walks(std::uint64_t seed, std::size_t count = 60000) {
        std::mt19937_64 random(seed);
        std::uint64_t at[6] = {};
        while (lines.size() < count) {
            const auto site = static_cast<std::uint32_t>(random() % 6);
            at[site] = site == 0   ? random() % 5000
                       : site == 1 ? at[site] + random() % 2
                                   : at[site] + (random() % 4 == 0 ? site : 0);
            for (std::uint64_t repeats = random() % 3 + 1; repeats-- != 0;) {
                const auto first = static_cast<unsigned>(random() % 64);
                lines.push_back(site * 10000 + at[site] % 8000);
                sites.push_back(site == 5 ? 3000000000u : 7 * site);
                parts.push_back(static_cast<std::uint16_t>(first | std::min(63u, first + 7) << 8));
            }
        }
    }
    BlockBatch batch() const { return {lines, sites, {}, {}, parts}; }
};

Profile with_sites() {
    Profile profile;
    for (const std::uint32_t id : {0u, 7u, 14u, 21u, 28u, 3000000000u}) {
        Site site;
        site.id = id;
        profile.sites.push_back(site);
    }
    return profile;
}

// Every access on its own, and strides as they are defined.
Profile one_by_one(const Walks& walks, const CacheSpec& spec) {
    struct Line {
        std::uint64_t line, bytes;
        std::uint32_t site;
    };
    std::map<std::uint64_t, std::vector<Line>> sets;  // the last one used first
    std::map<std::uint32_t, std::vector<std::uint64_t>> fetched;
    std::map<std::uint32_t, LineUse> uses;
    auto leave = [&](const Line& line) {
        LineUse& use = uses[line.site];
        use.fetches++;
        use.bytes += std::popcount(line.bytes);
        use.parts |= line.bytes;
    };
    for (std::size_t i = 0; i < walks.lines.size(); ++i) {
        std::vector<Line>& set = sets[walks.lines[i] % (spec.blocks() / spec.associativity())];
        const auto found = std::ranges::find(set, walks.lines[i], &Line::line);
        Line line{walks.lines[i], 0, walks.sites[i]};
        if (found != set.end()) {
            line = *found;
            set.erase(found);
        } else {
            fetched[line.site].push_back(line.line);
            if (set.size() == spec.associativity()) {
                leave(set.back());
                set.pop_back();
            }
        }
        line.bytes |= part_mask(walks.parts[i]);
        set.insert(set.begin(), line);
    }
    for (const auto& [index, set] : sets) std::ranges::for_each(set, leave);
    Profile profile = with_sites();
    for (Site& site : profile.sites) {
        site.line_use = uses[site.id];
        const std::vector<std::uint64_t>& lines = fetched[site.id];
        double regular = 0;
        // The step before the first fetch is taken from line 0.
        auto step = [&](std::size_t i) { return lines[i] - (i == 0 ? 0 : lines[i - 1]); };
        for (std::size_t i = 2; i < lines.size(); ++i)
            regular += step(i) == step(i - 1) || step(i) == step(i - 2);
        if (lines.size() > 2) site.regular = regular / static_cast<double>(lines.size() - 2);
    }
    return profile;
}

// In batches that differ in length, on a thread per part; what a batch held is gone when it was added.
Profile dealt(const Walks& walks, const std::vector<CacheSpec>& caches, const CacheSpec& line_use,
              unsigned threads) {
    CacheParts parts(caches, 64, threads, line_use);
    LineUseParts use(line_use, static_cast<unsigned>(parts.count()));
    std::vector<BlockWorkers::Work> workers;
    for (std::size_t part = 0; part < parts.count(); ++part)
        workers.emplace_back([&, part](const BlockRoom& room) -> Result<void> {
            parts.access(part, room.lines);
            use.add(part, room.lines);
            return {};
        });
    BlockWorkers all(std::move(workers), true, {.lines = parts.plan()});
    Walks some(0, 0);
    for (std::size_t at = 0, many = 1; at < walks.lines.size(); at += many, many = many * 5 % 3001) {
        const BlockBatch batch =
            walks.batch().part(at, std::min<std::size_t>(many, walks.lines.size() - at));
        some.lines.assign(batch.blocks.begin(), batch.blocks.end());
        some.sites.assign(batch.sites.begin(), batch.sites.end());
        some.parts.assign(batch.parts.begin(), batch.parts.end());
        EXPECT_TRUE(all.add(some.batch()));
    }
    EXPECT_TRUE(all.finish());
    Profile profile = with_sites();
    parts.fill(profile);
    use.fill(profile);
    return profile;
}

TEST(DealtLines, line_use_in_parts_is_that_of_every_access) {
    for (const char* text : {"4K:4:64", "64K:8:64", "1K:1:64", "3K:3:64", "4K:full:64", "24K:12:64"})
        for (const unsigned threads : {1u, 4u, 8u}) {
            const Walks walks(threads + 1);
            const CacheSpec spec = CacheSpec::parse(text).value();
            const Profile expected = one_by_one(walks, spec);
            const Profile found = dealt(walks, {}, spec, threads);
            double fetches = 0;
            for (std::size_t i = 0; i < expected.sites.size(); ++i) {
                const Site &one = expected.sites[i], &other = found.sites[i];
                EXPECT_EQ(one.line_use.fetches, other.line_use.fetches) << text << " " << one.id;
                EXPECT_EQ(one.line_use.bytes, other.line_use.bytes) << text;
                EXPECT_EQ(one.line_use.parts, other.line_use.parts) << text;
                EXPECT_EQ(one.regular, other.regular) << text << " " << one.id;
                fetches += one.line_use.fetches;
            }
            EXPECT_EQ(found.line_use->use.fetches, fetches);
        }
}

TEST(DealtLines, caches_miss_as_with_every_access) {
    std::vector<CacheSpec> caches;
    for (const char* text : {"32K:8:64", "1M:16:64", "12K:6:64"})
        caches.push_back(CacheSpec::parse(text).value());
    for (const unsigned threads : {1u, 4u, 8u}) {
        const Walks walks(threads + 20);
        CacheBank whole(caches, 64);
        whole.access(walks.lines, walks.sites);
        const Profile found = dealt(walks, caches, caches[0], threads);
        const std::vector<SimulatedCache> expected = whole.results();
        ASSERT_EQ(found.caches.size(), expected.size());
        for (std::size_t i = 0; i < expected.size(); ++i) {
            EXPECT_EQ(found.caches[i].accesses, expected[i].accesses);
            EXPECT_EQ(found.caches[i].misses, expected[i].misses);
            EXPECT_EQ(found.caches[i].crowded, expected[i].crowded);
        }
        for (const Site& site : found.sites) EXPECT_EQ(site.simulated, whole.misses_of(site.id));
    }
}

TEST(DealtLines, only_what_is_used_twice_in_a_row_within_a_set_is_dropped) {
    LineDealer dealer({2, 2, true});
    DealtLines out;
    const std::vector<std::uint64_t> lines = {4, 4, 5, 4, 7, 5, 0};
    const std::vector<std::uint16_t> parts = {0, 1 | 1 << 8, 5 | 5 << 8, 2 | 2 << 8, 0, 0, 0};
    for (int again = 0; again < 2; ++again) {  // the batch before is forgotten
        dealer.deal({lines, {}, {}, {}, parts}, out);
        EXPECT_EQ(out.kept(), 5u);
        const DealtLines::Part even = out.part(0), odd = out.part(1);
        EXPECT_TRUE(std::ranges::equal(even.lines, std::vector<std::uint64_t>{2, 0}));
        EXPECT_TRUE(std::ranges::equal(odd.lines, std::vector<std::uint64_t>{2, 3, 2}));
        EXPECT_TRUE(std::ranges::equal(odd.at, std::vector<std::uint32_t>{2, 4, 5}));
        EXPECT_EQ(even.bytes[0], 0b111u);
    }
    dealer.deal({}, out);
    EXPECT_EQ(out.kept(), 0u);
    EXPECT_TRUE(out.part(1).lines.empty());
}

// Arrays that were written to come back as zeros, in whatever steps they grow.
TEST(GrowingArray, is_zero_also_where_another_one_was_before) {
    std::mt19937_64 random(3);
    for (int round = 0; round < 200; ++round) {
        std::vector<GrowingArray<std::uint64_t>> arrays;
        for (int i = 0; i < 5; ++i) {
            auto& array = arrays.emplace_back(random() % 2 == 0 ? GrowingBytes::kHugePage
                                                                : 8 * GrowingBytes::kHugePage);
            for (std::size_t size = 1, from = 0; size < 60000; size = size * (2 + random() % 9)) {
                array.require(size);
                const std::size_t seen = std::min<std::size_t>(size, from + 3000);
                for (std::size_t at = from; at < seen; ++at) ASSERT_EQ(array[at], 0u);
                for (std::size_t at = from; at < size; at += 1 + random() % 700) {
                    ASSERT_EQ(array[at], 0u) << at;
                    array[at] = ~std::uint64_t{0};
                }
                from = size;
            }
            array.stop_growing();
        }
        if (round == 100) GrowingBytes::drop_spares();
    }
}

}  // namespace
}  // namespace revisit
