#include <cmath>

#include "models/hit_table.h"
#include "report/diff.h"
#include "revisit/revisit.h"

namespace revisit {
namespace {

FigureChange share(double old_value, double new_value, double error = 0) {
    return {{Unit::share, old_value, error}, {Unit::share, new_value, error}};
}

FigureChange count(double old_value, double new_value, double error = 0) {
    return {{Unit::count, old_value, error}, {Unit::count, new_value, error}};
}

Verdict verdict(const char* text, const FigureChange& figures) {
    auto condition = parse_condition(text);
    EXPECT_TRUE(condition) << text;
    auto judged = judge(condition->any[0][0], figures);
    EXPECT_TRUE(judged) << text;
    return judged.value_or(Verdict::no);
}

TEST(Gate, signed_percent_is_points_on_a_rate_and_relative_on_a_count) {
    EXPECT_EQ(verdict("x > +2%", share(0.03, 0.051)), Verdict::holds);
    EXPECT_EQ(verdict("x > +2%", share(0.03, 0.049)), Verdict::no);
    EXPECT_EQ(verdict("x > +2% of old", share(0.03, 0.031)), Verdict::holds);
    EXPECT_EQ(verdict("x > +2%", count(1000, 1021)), Verdict::holds);
    EXPECT_EQ(verdict("x > +2%", count(1000, 1019)), Verdict::no);
    EXPECT_EQ(verdict("x < -1%", share(0.9, 0.88)), Verdict::holds);
    EXPECT_EQ(verdict("x < -1%", share(0.9, 0.895)), Verdict::no);
    EXPECT_EQ(verdict("x > +10", count(1000, 1011)), Verdict::holds);
}

TEST(Gate, unsigned_bounds_look_at_the_new_value_alone) {
    EXPECT_EQ(verdict("x > 5%", share(0.9, 0.051)), Verdict::holds);
    EXPECT_EQ(verdict("x<=0.05", share(0.9, 0.05)), Verdict::holds);
    EXPECT_EQ(verdict("x > 1K", count(0, 1001)), Verdict::holds);
    EXPECT_EQ(verdict("x > 1K", {{}, {Unit::bytes, 1001, 0}}), Verdict::no);
    EXPECT_EQ(verdict("x != 3", count(3, 3)), Verdict::no);
}

TEST(Gate, holds_only_beyond_the_error) {
    EXPECT_EQ(verdict("x > 5%", share(0, 0.06, 0.02)), Verdict::within_noise);
    EXPECT_EQ(verdict("x > 5%", share(0, 0.08, 0.02)), Verdict::holds);
    EXPECT_EQ(verdict("x > 5%", share(0, 0.02, 0.02)), Verdict::no);
    // Both sides' errors count for a change: hypot(0.02, 0.02) > 0.028.
    EXPECT_EQ(verdict("x > +2%", share(0.01, 0.058, 0.02)), Verdict::within_noise);
    EXPECT_EQ(verdict("x > +2%", share(0.01, 0.059, 0.02)), Verdict::holds);
}

TEST(Gate, and_binds_tighter_than_or) {
    auto condition = parse_condition("a > 1 and b < 2 or c == 3").value();
    ASSERT_EQ(condition.any.size(), 2u);
    EXPECT_EQ(condition.any[0].size(), 2u);
    EXPECT_EQ(condition.any[1][0].metric, "c");
}

TEST(Gate, bad_conditions_are_refused) {
    for (const char* bad : {"", "S", "S <", "S < x", "S < 1 and", "S < 1 S", "S < +", "S < 1%%",
                            "S < 1% of old", "S < +1% of new", "< 3", "S ~ 3", "S < inf", "S < nan"})
        EXPECT_FALSE(parse_condition(bad)) << bad;
}

TEST(Metrics, caches_by_name_place_and_spec) {
    std::vector<CacheSpec> named = {CacheSpec::parse("L1d=32K:8:64").value(),
                                    CacheSpec::parse("L3=8M:16:64").value()};
    EXPECT_EQ(cache_named("l1", named)->bytes, 32768u);
    EXPECT_EQ(cache_named("L3", named)->bytes, 8388608u);
    EXPECT_EQ(cache_named("llc", named)->bytes, 8388608u);
    EXPECT_FALSE(cache_named("l2", named));
    EXPECT_EQ(cache_named("64K:2:32", named)->line, 32u);
    std::vector<CacheSpec> plain = {CacheSpec::parse("1K:2:64").value(),
                                    CacheSpec::parse("2K:2:64").value()};
    EXPECT_EQ(cache_named("l2", plain)->bytes, 2048u);
    EXPECT_FALSE(cache_named("l3", plain));
    EXPECT_FALSE(cache_named("llc", {}));
}

TEST(Metrics, several_runs_are_as_sure_as_they_agree) {
    Figure same = mean_of({{Unit::count, 10, 3}, {Unit::count, 10, 4}});
    EXPECT_DOUBLE_EQ(same.value, 10);
    EXPECT_DOUBLE_EQ(same.error, 2.5);
    Figure apart = mean_of({{Unit::count, 10, 0}, {Unit::count, 14, 0}, {Unit::count, 12, 0}});
    EXPECT_DOUBLE_EQ(apart.value, 12);
    EXPECT_NEAR(apart.error, 4.303 * 2 / std::sqrt(3.0), 1e-12);
}

TEST(HitTable, agrees_with_the_prediction) {
    Profile profile;
    profile.reuse = {
        10, 5, 0, 0, {{0, 1, 30, 0}, {4, 8, 40, 0}, {100, 228, 20, 0}, {4096, 8192, 9, 0}}};
    for (const char* spec : {"8K:2:64", "4K:full:64", "512K:16:64"}) {
        HitTable table(CacheSpec::parse(spec).value());
        double total = profile.reuse.total();
        for (int again = 0; again < 2; ++again)
            EXPECT_NEAR(table.misses(profile.reuse) / total,
                        predict_cache(profile, table.cache()).miss_rate, 1e-15);
    }
}

TEST(Diff, a_profile_against_itself_has_not_changed) {
    Profile profile;
    profile.accesses = 100;
    profile.reuse = {10, 0, 0, 0, {{0, 1, 60, 0}, {64, 128, 30, 0}}};
    DiffOptions options;
    options.caches = {CacheSpec::parse("4K:4:64").value()};
    options.fail_if = {parse_condition("S < 1 or llc.miss_rate != +0").value()};
    auto diff = compare({profile}, {profile}, options).value();
    EXPECT_EQ(diff.accuracy.value, 1);
    EXPECT_TRUE(diff.bins.empty());
    EXPECT_FALSE(diff.failed());
}

}  // namespace
}  // namespace revisit
