#include "report/low_locality.h"

#include <gtest/gtest.h>

namespace revisit {
namespace {

// A site with so many misses: far reuses, cold ones and taken ones, among as many hits.
Site site(std::uint32_t id, double far, double cold = 0, double taken = 0) {
    Site out;
    out.id = id;
    out.reuse.cold = cold;
    out.reuse.invalidated = taken;
    out.reuse.bins = {{0, 1, 1000, 0}, {4096, 8192, far, 0}};
    out.accesses = out.reuse.total();
    return out;
}

Profile profile_of(std::vector<Site> sites) {
    Profile out;
    for (const Site& one : sites) out.reuse.merge(one.reuse);
    out.accesses = out.reuse.total();
    out.sites = std::move(sites);
    return out;
}

LowLocalityOptions small_cache() {
    LowLocalityOptions options;
    options.cache = CacheSpec::parse("64K:full:64").value();  // 1024 blocks
    return options;
}

TEST(LowLocality, few_sites_cover_most_misses) {
    Profile profile = profile_of({site(1, 10), site(2, 500), site(3, 90), site(4, 400)});
    LowLocality found = low_locality(profile, small_cache()).value();
    EXPECT_DOUBLE_EQ(found.misses, 1000);
    EXPECT_EQ(found.ranking[0].site->id, 2u);
    std::vector<std::size_t> counts;
    for (const MissSelection& selection : found.selections) counts.push_back(selection.sites);
    EXPECT_EQ(counts, (std::vector<std::size_t>{2, 2, 2, 3}));
    EXPECT_DOUBLE_EQ(found.selections[0].covered, 0.9);
}

TEST(LowLocality, kinds_of_misses_are_told_apart) {
    Profile profile = profile_of({site(1, 5, 20, 3)});
    SiteMisses with_cold = low_locality(profile, small_cache()).value().ranking[0];
    EXPECT_DOUBLE_EQ(with_cold.capacity, 5);
    EXPECT_DOUBLE_EQ(with_cold.cold, 20);
    EXPECT_DOUBLE_EQ(with_cold.coherence, 3);
    EXPECT_DOUBLE_EQ(with_cold.misses, 28);
    LowLocalityOptions options = small_cache();
    options.cold_counts = false;
    EXPECT_DOUBLE_EQ(low_locality(profile, options).value().ranking[0].misses, 8);
}

TEST(LowLocality, with_no_cache_a_tenth_of_the_reuses_miss) {
    Profile profile;
    profile.reuse.bins = {{0, 1, 600, 0}, {10, 11, 300, 0}, {100, 101, 100, 0}};
    CacheSpec cache = cache_for_miss_share(profile, 0.1);
    EXPECT_EQ(cache.blocks(), 11u);
    EXPECT_DOUBLE_EQ(predict_cache(profile, cache).miss_rate, 0.1);
    EXPECT_FALSE(low_locality(profile, {}));  // no sites
}

TEST(WeightMatch, scores_the_choice_and_not_the_names) {
    Profile truth = profile_of({site(1, 100), site(2, 99), site(3, 98), site(4, 3)});
    LowLocalityOptions options = small_cache();
    options.coverages = {0.66};  // the best two, 199
    auto match = [&](std::vector<Site> sites) {
        return weight_match(truth, profile_of(std::move(sites)), options).value()[0];
    };
    EXPECT_EQ(match({site(1, 9), site(2, 8), site(3, 7)}).sites, 2u);
    EXPECT_DOUBLE_EQ(match({site(1, 9), site(2, 8), site(3, 7)}).match, 1);
    EXPECT_DOUBLE_EQ(match({site(1, 1), site(2, 8), site(3, 9)}).match, 197.0 / 199);
    EXPECT_DOUBLE_EQ(match({site(4, 9), site(2, 8), site(3, 7)}).match, 102.0 / 199);
    // A choice of fewer sites, or of strangers, weighs what it weighs.
    EXPECT_DOUBLE_EQ(match({site(1, 9), site(7, 5)}).match, 100.0 / 199);
    EXPECT_DOUBLE_EQ(match({site(1, 0), site(2, 0)}).match, 0);
}

TEST(WeightMatch, places_are_known_by_their_source_line) {
    auto at = [](std::uint32_t id, std::uint32_t line, double far) {
        Site out = site(id, far);
        out.frame = {"work", "work.c", line};
        return out;
    };
    // The other recording gave out its numbers in another order, and saw line 20 as two instructions.
    Profile truth = profile_of({at(1, 10, 100), at(2, 20, 90), at(3, 30, 5)});
    Profile other = profile_of({at(3, 10, 10), at(1, 20, 5), at(7, 20, 6), at(2, 30, 7)});
    LowLocalityOptions options = small_cache();
    options.coverages = {0.75, 0.95};
    const auto matches = weight_match(truth, other, options).value();
    for (const WeightMatch& match : matches) {
        EXPECT_EQ(match.sites, 2u);
        EXPECT_DOUBLE_EQ(match.match, 1);
    }
}

}  // namespace
}  // namespace revisit
