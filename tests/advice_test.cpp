// Rules of advice that do not come from a pair. Each test has the profile that calls for the rule and a
// neighbour that must not.
#include "report/advice.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "report/findings.h"
#include "report/pages.h"
#include "revisit/revisit.h"

namespace revisit {
namespace {

Histogram at(std::uint64_t blocks, double count) {
    return {0, 0, 0, 0, {{blocks, blocks + 1, count, 0}}};
}

const CacheSpec kCache = *CacheSpec::parse("64K:8:64");

Profile profile_of_sites() {
    Profile profile;
    Site walk;
    walk.id = 1, walk.module = "app", walk.frame = {"walk", "a.c", 7}, walk.data = "heap main (a.c:3)";
    walk.accesses = 10000;
    walk.reuse = at(0, 9000);
    walk.reuse.merge(at(65536, 1000));
    profile.sites = {walk};
    profile.reuse = walk.reuse;
    profile.accesses = profile.reuse.total();
    return profile;
}

const Advice* find(const std::vector<Advice>& list, std::string_view rule) {
    auto found = std::ranges::find(list, rule, &Advice::rule);
    return found == list.end() ? nullptr : &*found;
}

TEST(AdviceRules, pad_what_threads_share_falsely_even_where_little_else_misses) {
    Profile profile;
    profile.reuse = at(0, 100000);
    profile.reuse.invalidated = 400;
    profile.accesses = 100400;
    Sharing one;
    one.line = 0x1000;
    one.count = 400;
    one.false_sharing = true;
    one.writer.site = 1, one.writer.thread = 1, one.writer.bytes = 0xff;
    one.writer.object = "global counters (app)", one.writer.frame = {"work", "a.c", 9};
    one.victim = one.writer;
    one.victim.site = 2, one.victim.thread = 2, one.victim.bytes = 0xff00, one.victim.offset = 8;
    profile.sharing = {one};
    profile.sharing_totals = SharingTotals{400, 400, 0};
    std::vector<Advice> advice = advise(profile, kCache, 5);
    ASSERT_EQ(advice.size(), 1u);
    EXPECT_EQ(advice[0].rule, "pad");
    EXPECT_EQ(advice[0].gain, 400);
    EXPECT_EQ(
        advice[0].what,
        "give global counters (app) + 0 a cache line of its own, apart from global counters (app) "
        "+ 8: work (a.c:9) writes it and invalidates the line of work (a.c:9)");
    profile.sharing[0].count = 10;  // below what is worth mending
    EXPECT_EQ(advise(profile, kCache, 5).at(0).rule, "nothing");
}

TEST(AdviceRules, split_fields_that_leave_most_of_each_line_unused) {
    Profile profile = profile_of_sites();
    profile.line_use = LineUseTotals{"64K:8:64", 64, {1000, 16000, 0xff0000ff}};
    profile.sites[0].line_use = {1000, 16000, 0xff0000ff};
    const std::vector<Advice> advice = advise(profile, kCache, 5);
    const Advice* split = find(advice, "split");
    ASSERT_TRUE(split);
    EXPECT_EQ(split->what,
              "a.c:7 walk uses 16 of 64 bytes of each line it fetches from heap main (a.c:3), always "
              "bytes 0–7, 24–31");
    EXPECT_NEAR(split->gain, 750, 1);
    profile.sites[0].line_use = {1000, 16000, ~std::uint64_t{0}};  // other bytes of other lines
    EXPECT_FALSE(find(advise(profile, kCache, 5), "split"));
    EXPECT_TRUE(find(advise(profile, kCache, 5), "pack"));
    profile.sites[0].line_use = {1000, 60000, ~std::uint64_t{0}};
    EXPECT_FALSE(find(advise(profile, kCache, 5), "pack"));
}

// Lookups in a table: neither order of the loops brings them together, nor are there two to be fused.
TEST(AdviceRules, what_is_looked_up_at_random_is_partitioned) {
    Profile profile = profile_of_sites();
    profile.reuse = profile.sites[0].reuse = at(1 << 20, 1000);
    profile.pairs = {{profile.sites[0].id, profile.sites[0].id, 0, 0, 1000, at(1 << 20, 1000)}};
    profile.sites[0].regular = 0.9;
    EXPECT_FALSE(find(advise(profile, kCache, 5), "partition"));
    profile.sites[0].regular = 0.02;
    const std::vector<Advice> advice = advise(profile, kCache, 5);
    const Advice* partition = find(advice, "partition");
    ASSERT_TRUE(partition);
    EXPECT_NEAR(partition->gain, 1000, 1);
    EXPECT_FALSE(find(advice, "interchange"));
    EXPECT_FALSE(find(advice, "tile"));
}

// Elements of a whole line each: every access misses, and the walk is along memory all the same.
TEST(AdviceRules, loops_that_use_up_their_lines_are_not_interchanged) {
    Profile profile = profile_of_sites();
    profile.reuse = profile.sites[0].reuse = at(1 << 20, 1000);
    profile.pairs = {{profile.sites[0].id, profile.sites[0].id, 0, 0, 1000, at(1 << 20, 1000)}};
    EXPECT_TRUE(find(advise(profile, kCache, 5), "interchange"));
    profile.line_use = LineUseTotals{"64K:8:64", 64, {1000, 64000, ~std::uint64_t{0}}};
    profile.sites[0].line_use = {1000, 64000, ~std::uint64_t{0}};
    EXPECT_FALSE(find(advise(profile, kCache, 5), "interchange"));
    EXPECT_TRUE(find(advise(profile, kCache, 5), "tile"));
}

TEST(AdviceRules, huge_pages_by_what_they_would_do) {
    Profile profile = profile_of_sites();
    const std::uint64_t huge = std::uint64_t{2} << 20;
    Histogram small = at(0, 9000);
    small.merge(at(100000, 1000));
    profile.granularities = {{64, 1, profile.reuse}, {4096, 100000, small}, {huge, 200, at(0, 10000)}};
    const std::vector<CacheSpec> caches = {kCache, *CacheSpec::parse("6M:12:4K"),
                                           *CacheSpec::parse("3G:12:2M")};
    const std::vector<Advice> advice = advise(profile, kCache, 9, caches);
    const Advice* pages = find(advice, "huge pages");
    ASSERT_TRUE(pages);
    EXPECT_EQ(gain_text(*pages, profile, kCache),
              "TLB misses 10.00 % → 0.00 % of accesses with 2 MiB pages");
    const PageFindings found = page_findings(profile, caches);
    EXPECT_EQ(found.huge_pages,
              "Huge pages: 10.00 % of accesses miss the TLB of 1536 entries with 4 KiB pages (100 K "
              "touched), 0.00 % one of 1536 entries with 2 MiB pages (200 touched).");
    EXPECT_FALSE(found.typical);
    profile.granularities[2].reuse = small;  // no better
    EXPECT_FALSE(find(advise(profile, kCache, 9, caches), "huge pages"));
}

TEST(AdviceRules, prefetch_only_what_has_no_stride) {
    Profile profile = profile_of_sites();
    EXPECT_FALSE(find(advise(profile, kCache, 9), "prefetch"));  // not known
    profile.sites[0].regular = 0.1;
    profile.sites[0].time_share = 0.5;
    profile.processes = {{1, {"app"}, 10000, 0, 0.0002}};
    const std::vector<Advice> advice = advise(profile, kCache, 9);
    const Advice* prefetch = find(advice, "prefetch");
    ASSERT_TRUE(prefetch);
    // 0.5 × 0.2 ms over 10 000 accesses are 10 ns each: 100 ns are 10 iterations.
    EXPECT_NE(prefetch->help.at(0).find("10 iterations ahead"), std::string::npos) << prefetch->help[0];
    profile.sites[0].regular = 0.9;
    EXPECT_FALSE(find(advise(profile, kCache, 9), "prefetch"));
}

TEST(AdviceRules, smaller_types_where_half_the_size_would_fit) {
    Profile profile = profile_of_sites();
    Object object;
    object.kind = "heap", object.name = "main (a.c:3)";
    object.reuse = at(1300, 1000);
    profile.objects = {object};
    profile.sites[0].reuse = at(0, 9000);
    profile.sites[0].reuse.merge(object.reuse);
    profile.reuse = profile.sites[0].reuse;
    const CacheSpec full = *CacheSpec::parse("64K:full:64");
    const std::vector<Advice> advice = advise(profile, full, 9);
    const Advice* smaller = find(advice, "smaller types");
    ASSERT_TRUE(smaller);
    EXPECT_EQ(smaller->what, "heap main (a.c:3) would fit at half the size");
    EXPECT_EQ(smaller->where, "most misses at a.c:7 walk");
    EXPECT_NEAR(smaller->gain, 1000, 1e-9);
    profile.objects[0].reuse = at(65536, 1000);
    EXPECT_FALSE(find(advise(profile, full, 9), "smaller types"));
}

TEST(AdviceRules, rank_by_misses_times_the_time_spent_there) {
    Profile profile = profile_of_sites();
    Site other = profile.sites[0];
    other.id = 2, other.frame = {"rest", "a.c", 20};
    profile.sites.push_back(other);
    profile.pairs = {{1, 1, 0, 0, 1000, at(65536, 1000)}, {2, 2, 0, 0, 900, at(65536, 900)}};
    profile.reuse = at(0, 18000);
    profile.reuse.merge(at(65536, 1900));
    EXPECT_EQ(advise(profile, kCache, 9).at(0).reuse, 1u);
    profile.sites[0].time_share = 0.1;
    profile.sites[1].time_share = 0.9;
    EXPECT_EQ(advise(profile, kCache, 9).at(0).reuse, 2u);
}

TEST(AdviceRules, first_touches_belong_to_the_caller_of_the_library) {
    Profile profile;
    profile.contexts = {{}, {0, "app", 1, {"main", "a.c", 12}}};
    Site clear;
    clear.id = 1, clear.module = "/lib/libc.so.6", clear.frame.function = "memset";
    clear.reuse.cold = 1000;
    profile.sites = {clear};
    profile.touches = {{1, 1, 1000, 0}};
    profile.reuse = at(0, 9000);
    profile.reuse.cold = 1000;
    const std::vector<Advice> advice = advise(profile, kCache, 9);
    const Advice* touch = find(advice, "touch less");
    ASSERT_TRUE(touch);
    EXPECT_EQ(touch->where, "most at a.c:12 main");
}

}  // namespace
}  // namespace revisit
