// The caches simulated beside an engine, against the simulator of one cache and against distances.
#include "engines/cache_bank.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <random>

#include "engines/block_workers.h"
#include "engines/set_associative.h"
#include "report/advice.h"
#include "report/findings.h"
#include "report/set_conflicts.h"
#include "report/terminal.h"
#include "revisit/cache.h"

namespace revisit {
namespace {

std::vector<CacheSpec> specs(std::initializer_list<const char*> texts) {
    std::vector<CacheSpec> out;
    for (const char* text : texts) out.push_back(CacheSpec::parse(text).value());
    return out;
}

using Lines = std::vector<std::uint64_t>;

std::vector<Lines> traces() {
    std::mt19937_64 random(5);
    std::vector<Lines> out(4);
    for (int i = 0; i < 200000; ++i) {
        out[0].push_back(random() % 3000);                            // at random
        out[1].push_back(static_cast<std::uint64_t>(i) * 64 % 8192);  // one set of a small cache
        out[2].push_back(random() % 4 == 0 ? random() % 50000 : i / 8 % 400);  // a stream and strays
        out[3].push_back(~std::uint64_t{0} / 64 - random() % 700);  // the last lines there are
    }
    return out;
}

// An engine's profile with these caches, each part of which has a thread where there are several.
Profile profile_of(const Lines& lines, std::span<const std::uint32_t> sites,
                   const std::vector<CacheSpec>& caches, unsigned threads = 1) {
    auto engine = make_engine("exact", {.sites = !sites.empty()}).value();
    CacheParts parts(caches, 64, threads);
    std::vector<BlockWorkers::Work> workers;
    workers.emplace_back([&](const BlockBatch& batch) { return engine->add(batch); });
    for (std::size_t part = 0; part < parts.count(); ++part)
        workers.emplace_back([&parts, part](const BlockRoom& room) -> Result<void> {
            parts.access(part, room.lines);
            return {};
        });
    BlockWorkers all(std::move(workers), threads > 1, {.lines = parts.plan()});
    for (std::size_t at = 0; at < lines.size(); at += 777) {
        const auto many = std::min<std::size_t>(777, lines.size() - at);
        EXPECT_TRUE(all.add({std::span(lines).subspan(at, many),
                             sites.empty() ? sites : sites.subspan(at, many),
                             {},
                             {}}));
    }
    EXPECT_TRUE(all.finish());
    Profile profile = engine->finish().value();
    parts.fill(profile);
    return profile;
}

TEST(CacheBank, counts_as_one_simulator_per_cache_does) {
    // Sets that divide each other, sets that do not, few ways and many, given in any order.
    const auto caches =
        specs({"1M:16:64", "32K:8:64", "48K:12:64", "96K:6:64", "4K:1:64", "33K:11:64"});
    for (const Lines& lines : traces()) {
        CacheBank bank(caches, 64);
        for (std::size_t at = 0; at < lines.size(); at += 777)
            bank.access(std::span(lines).subspan(at, std::min<std::size_t>(777, lines.size() - at)));
        const auto results = bank.results();
        ASSERT_EQ(results.size(), caches.size());
        for (const SimulatedCache& result : results) {
            auto one = CacheSimulator::create(result.spec).value();
            one.access(lines);
            EXPECT_EQ(result.misses, static_cast<double>(one.misses())) << result.spec.name;
            EXPECT_EQ(result.accesses, static_cast<double>(lines.size()));
        }
    }
}

CacheSpec sets_of_ways(std::uint64_t sets, std::uint64_t ways) {
    return {sets * ways * 64, ways, 64, ""};
}

// Stretches at random, by strides, and round and round in a few lines; over the last lines there are,
// too.
Lines mixed(std::mt19937_64& random, std::size_t count, bool near_end = false) {
    Lines out;
    while (out.size() < count) {
        const std::uint64_t range = std::uint64_t{1} << random() % 16, start = random() % (2 * range);
        const std::uint64_t stride =
            random() % 2 == 0 ? std::uint64_t{1} << random() % 12 : random() % 200;
        const std::uint64_t round = 1 + random() % 100,
                            base = near_end && random() % 4 == 0 ? ~std::uint64_t{0} / 64 : 0;
        const auto kind = random() % 4;
        for (std::uint64_t i = 0, length = random() % 1500; i < length; ++i) {
            const std::uint64_t line = kind == 0   ? start + random() % range
                                       : kind == 1 ? start + i % round * stride
                                       : kind == 2 ? start + i / 4
                                                   : (i % 2 == 0 ? start : start + i % round * stride);
            out.push_back(base == 0 ? line : base - line);
        }
    }
    return out;
}

void expect_as_simulators(const std::vector<CacheSpec>& caches, const Lines& lines, std::size_t piece) {
    CacheBank bank(caches, 64);
    std::vector<std::uint32_t> sites(lines.size());
    for (std::size_t i = 0; i < sites.size(); ++i) sites[i] = static_cast<std::uint32_t>(i % 2);
    for (std::size_t at = 0; at < lines.size(); at += piece) {
        const auto many = std::min(piece, lines.size() - at);
        bank.access(std::span(lines).subspan(at, many), std::span(sites).subspan(at, many));
    }
    const auto results = bank.results();
    const auto even = bank.misses_of(0);
    ASSERT_EQ(results.size(), caches.size());
    for (std::size_t i = 0; i < results.size(); ++i) {
        auto one = CacheSimulator::create(results[i].spec).value();
        std::uint64_t before = 0, misses_of_even = 0;
        for (std::size_t at = 0; at < lines.size(); ++at, before = one.misses()) {
            one.access(std::span(lines).subspan(at, 1));
            if (sites[at] == 0) misses_of_even += one.misses() - before;
        }
        ASSERT_EQ(results[i].misses, static_cast<double>(one.misses()))
            << results[i].spec.sets() << " sets, " << results[i].spec.ways << " ways of "
            << caches.size() << " caches";
        ASSERT_EQ(even[i], static_cast<double>(misses_of_even));
    }
}

TEST(CacheBank, counts_as_simulators_do_in_caches_of_any_geometry) {
    std::mt19937_64 random(11);
    for (int round = 0; round < 150; ++round) {
        std::vector<CacheSpec> caches;
        const std::size_t count = 1 + random() % 4;
        std::uint64_t sets = 2 + random() % 70;
        for (std::size_t i = 0; i < count; ++i) {
            caches.push_back(sets_of_ways(sets, 1 + random() % (random() % 2 == 0 ? 64 : 16)));
            // Divided by the last ones, or by nothing.
            sets = random() % 4 == 0 ? 2 + random() % 3000 : sets * (1 + random() % 8);
        }
        std::ranges::shuffle(caches, random);
        expect_as_simulators(caches, mixed(random, 8000, round % 4 == 0), 1 + random() % 9000);
    }
    // More lines than hints can name, and no divisor to make them fewer.
    expect_as_simulators({sets_of_ways(5001, 3), sets_of_ways(15003, 7)}, mixed(random, 50000), 4096);
}

TEST(CacheBank, counts_with_every_associativity) {
    std::mt19937_64 random(13);
    for (std::uint64_t ways = 1; ways <= 64; ++ways) {
        const Lines lines = mixed(random, 6000);
        expect_as_simulators({sets_of_ways(8, ways)}, lines, 1000);
        expect_as_simulators({sets_of_ways(8, 1 + ways / 2), sets_of_ways(8, ways),
                              sets_of_ways(56, 65 - ways), sets_of_ways(64, 5)},
                             lines, 5000);
    }
}

// A level whose tags have 32 bits gets lines that need more, in the middle of a run.
TEST(CacheBank, counts_lines_far_apart) {
    std::mt19937_64 random(17);
    const auto caches = specs({"4K:4:64", "64K:16:64", "96K:12:64"});
    Lines lines = mixed(random, 20000);
    for (std::size_t i = lines.size() / 2; i < lines.size(); ++i)
        if (i % 3 == 0) lines[i] = lines[i] % (std::uint64_t{1} << 50) + (random() % 4 << 40);
    expect_as_simulators(caches, lines, 700);
}

TEST(CacheBank, recent_lines_keep_their_order_when_times_run_out) {
    std::mt19937_64 random(19);
    for (std::size_t ways : {1, 5, 16, 40}) {
        const Lines lines = mixed(random, 30000);
        // The last time is 2^31 - 1.
        RecentLines recent(16, ways, 0x7fffffffu - RecentLines::kMostAtOnce - 9000);
        auto one = CacheSimulator::create(sets_of_ways(16, ways)).value();
        one.access(lines);
        MissedLines missed;
        std::uint64_t misses = 0;
        for (std::size_t at = 0; at < lines.size(); at += 500) {
            recent.access(std::span(lines).subspan(at, std::min<std::size_t>(500, lines.size() - at)),
                          missed);
            misses += missed.size();
        }
        EXPECT_EQ(misses, one.misses()) << ways;
    }
}

TEST(CacheBank, comparisons_of_bytes_and_numbers_are_those_of_plain_code) {
    std::mt19937_64 random(23);
    for (int round = 0; round < 1000; ++round) {
        std::uint8_t bytes[16];
        std::uint32_t numbers[8];
        for (auto& one : bytes) one = static_cast<std::uint8_t>(random() % 3 * 127);
        for (auto& one : numbers) one = static_cast<std::uint32_t>(random() % 3 * 0x7fffffffu);
        EXPECT_EQ(simd::equal_bits(bytes, bytes[3]), simd::equal_bits_scalar(bytes, bytes[3]));
        EXPECT_EQ(simd::equal_bits(numbers, numbers[3]), simd::equal_bits_scalar(numbers, numbers[3]));
    }
}

// Four threads or eight, each for its share of the sets; sets that cannot be divided so are not.
TEST(CacheBank, parts_count_as_the_whole_does) {
    for (const auto& caches :
         {specs({"1M:16:64", "32K:8:64", "48K:12:64"}), specs({"96K:6:64", "4K:1:64", "1K:4:64"}),
          specs({"32K:8:64", "33K:11:64"})})
        for (const Lines& lines : traces()) {
            std::vector<std::uint32_t> sites(lines.size());
            for (std::size_t i = 0; i < sites.size(); ++i)
                sites[i] = 1 + static_cast<std::uint32_t>(i % 3);
            std::vector<Profile> profiles;
            for (unsigned threads : {1u, 4u, 8u})
                profiles.push_back(profile_of(lines, sites, caches, threads));
            for (const Profile& profile : profiles) {
                ASSERT_EQ(profiles[0].caches.size(), profile.caches.size());
                for (std::size_t i = 0; i < profile.caches.size(); ++i) {
                    const SimulatedCache &one = profiles[0].caches[i], &other = profile.caches[i];
                    EXPECT_EQ(one.misses, other.misses) << one.spec.name;
                    EXPECT_EQ(one.accesses, other.accesses);
                    EXPECT_EQ(one.crowded, other.crowded) << one.spec.name;
                }
                ASSERT_EQ(profiles[0].sites.size(), profile.sites.size());
                for (std::size_t i = 0; i < profile.sites.size(); ++i)
                    EXPECT_EQ(profiles[0].sites[i].simulated, profile.sites[i].simulated);
            }
        }
}

TEST(CacheBank, misses_of_sites_add_up_to_those_of_the_caches) {
    const auto caches = specs({"32K:8:64", "1M:16:64", "33K:11:64"});
    std::mt19937_64 random(7);
    for (const Lines& lines : traces()) {
        std::vector<std::uint32_t> sites(lines.size());
        std::map<std::uint32_t, double> naive;
        auto one = CacheSimulator::create(caches[0]).value();
        std::uint64_t before = 0;
        for (std::size_t i = 0; i < lines.size(); ++i) {
            sites[i] = static_cast<std::uint32_t>(random() % 5 * 1000);
            one.access(std::span(lines).subspan(i, 1));
            naive[sites[i]] += static_cast<double>(one.misses() - before);
            before = one.misses();
        }
        CacheBank bank(caches, 64);
        bank.access(lines, sites);
        std::vector<double> sums(caches.size());
        for (const auto& [site, misses] : naive) {
            const std::vector<double> of_site = bank.misses_of(site);
            EXPECT_EQ(of_site[0], misses);
            for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += of_site[i];
        }
        const auto results = bank.results();
        for (std::size_t i = 0; i < sums.size(); ++i) EXPECT_EQ(sums[i], results[i].misses);
        EXPECT_EQ(bank.misses_of(77), std::vector<double>(3));
    }
}

TEST(CacheBank, names_crowded_sets_and_their_data) {
    const auto caches = specs({"L1=32K:8:64"});
    Lines lines;
    std::vector<std::uint32_t> sites;
    for (int round = 0; round < 50; ++round)
        for (std::uint64_t i = 0; i < 64; ++i) {  // 32 lines in each of two sets; a few lines elsewhere
            lines.push_back(i % 2 + i / 2 * 64);
            lines.push_back(10 + i % 8);
            sites.insert(sites.end(), {1, 2});
        }
    Profile profile = profile_of(lines, sites, caches);
    for (const Site& site : profile.sites)
        profile.objects.push_back({site.id == 1 ? "heap" : "global",
                                   site.id == 1 ? "rows" : "few",
                                   0,
                                   0,
                                   site.accesses,
                                   site.reuse,
                                   {},
                                   site.simulated});
    const CachePrediction rates = predict_cache(profile, caches[0]);
    const std::string text = conflicts_text(profile, rates);
    EXPECT_EQ(text,
              "more conflicts than in random sets: >99 % of the misses are in sets 0–1 of 64, most by "
              "heap rows");
    const Profile read = profile_from_json(to_json(profile)).value();
    EXPECT_EQ(conflicts_text(read, rates), text);
    EXPECT_EQ(advise(read, caches[0], 3).at(0).rule, "pad rows");
    const Findings findings = findings_of(read, caches);
    EXPECT_EQ(findings.sites.at(0).misses, profile.sites[0].simulated.at(0));
    EXPECT_TRUE(findings.sites.at(0).reason.contains("of its misses are conflicts"))
        << findings.sites.at(0).reason;
    Profile sum = profile;
    ASSERT_TRUE(merge_profile(sum, profile));
    EXPECT_EQ(sum.objects.at(0).simulated.at(0), 2 * profile.objects.at(0).simulated.at(0));
    EXPECT_TRUE(sum.caches.at(0).crowded.empty());
    Profile even = profile;
    even.caches[0].misses = predict_by_model(profile, caches[0]).miss_rate * profile.accesses;
    EXPECT_EQ(conflicts_text(even, predict_cache(even, caches[0])), "");
}

TEST(CacheBank, sets_that_samples_saw_have_an_error_and_another_name) {
    const auto caches = specs({"L1=32K:8:64"});
    Lines lines;
    for (std::uint64_t i = 0; i < 3200; ++i) lines.push_back(i % 32 * 64);
    Profile profile = profile_of(lines, {}, caches);
    EXPECT_TRUE(cache_table({predict_cache(profile, caches[0])}, profile).contains("   simulated, "));
    profile.sampled = Sampling{8, 400};
    profile.caches[0].error = 0.04 * profile.accesses;
    const Profile read = profile_from_json(to_json(profile)).value();
    const CachePrediction rates = predict_cache(read, caches[0]);
    EXPECT_NEAR(rates.error, 0.04, 1e-9);
    const std::string table = cache_table({rates}, read);
    EXPECT_TRUE(table.contains("± 4 %   sets sampled, ")) << table;
    Profile sum = read;
    ASSERT_TRUE(merge_profile(sum, read));
    EXPECT_NEAR(predict_cache(sum, caches[0]).error, 0.04 / std::sqrt(2), 1e-9);
}

TEST(CacheBank, leaves_out_what_it_cannot_simulate_or_need_not) {
    EXPECT_TRUE(CacheBank(specs({"32K:8:128", "32K:full:64", "64K:128:64"}), 64).empty());
    EXPECT_FALSE(CacheBank(specs({"32K:8:128"}), 128).empty());
}

TEST(CacheBank, its_count_is_what_a_profile_answers_with) {
    const auto caches = specs({"L1=32K:8:64"});
    Lines lines;
    for (int round = 0; round < 50; ++round)
        for (std::uint64_t i = 0; i < 32; ++i) lines.push_back(i * 64);  // 32 lines, all in one set
    Profile profile = profile_of(lines, {}, caches);
    EXPECT_EQ(predict_cache(profile, caches[0]).miss_rate, 1.0);
    EXPECT_TRUE(predict_cache(profile, caches[0]).simulated);
    EXPECT_LT(predict_by_model(profile, caches[0]).miss_rate, 0.1);
    EXPECT_FALSE(predict_cache(profile, specs({"64K:8:64"})[0]).simulated);

    Profile read = profile_from_json(to_json(profile)).value();
    ASSERT_EQ(read.caches.size(), 1u);
    EXPECT_EQ(read.caches[0].misses, 1600);
    EXPECT_EQ(read.caches[0].spec.name, "L1");
    ASSERT_TRUE(merge_profile(read, profile));
    EXPECT_EQ(read.caches[0].misses, 3200);
    Profile without = profile;
    without.caches.clear();
    ASSERT_TRUE(merge_profile(read, without));
    EXPECT_TRUE(read.caches.empty());
}

}  // namespace
}  // namespace revisit
