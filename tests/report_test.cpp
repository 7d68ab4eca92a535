#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "models/hit_table.h"
#include "report/advice.h"
#include "report/diff.h"
#include "report/exports.h"
#include "report/findings.h"
#include "report/page.h"
#include "report/paths.h"
#include "report/processes.h"
#include "report/terminal.h"
#include "report/words.h"
#include "revisit/revisit.h"
#include "revisit/units.h"

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

TEST(Diff, coarse_bins_see_reuses_beyond_4_KiB_apart) {
    Profile before, after;
    before.granularity = after.granularity = 64;
    before.reuse = {10, 0, 0, 0, {{0, 1, 60, 0}, {32, 64, 30, 0}, {64, 128, 10, 0}}};
    after.reuse = {0, 0, 0, 0, {{0, 1, 20, 0}, {32, 64, 70, 0}, {128, 256, 10, 0}}};
    DiffOptions options;
    options.coarse = true;
    auto diff = compare({before}, {after}, options).value();
    EXPECT_NEAR(diff.accuracy.value, 0.9, 1e-12);
    EXPECT_NEAR(diff.smoothed_accuracy.value, 0.95, 1e-12);
}

Profile called_profile() {
    Profile profile;
    profile.reuse = {12, 0, 0, 0, {{0, 1, 100, 0}, {4096, 8192, 50, 0}}};
    profile.sites = {
        {7,
         "app",
         16,
         {"leaf", "a.c", 3},
         {{"outer", "a.c", 9}},
         {"outer", "a.c", 8},
         "",
         150,
         0,
         {10, 0, 0, 0, {{0, 1, 100, 0}, {4096, 8192, 40, 0}}}},
        {9, "app", 32, {"main", "a.c", 20}, {}, {}, "", 12, 0, {2, 0, 0, 0, {{4096, 8192, 10, 0}}}}};
    profile.contexts = {{}, {0, "app", 4, {"main", "a.c", 21}}};
    profile.pairs = {{7, 7, 1, 1, 140, {0, 0, 0, 0, {{0, 1, 100, 0}, {4096, 8192, 40, 0}}}}};
    return profile;
}

TEST(Export, stacks_add_up_to_the_sites) {
    Profile profile = called_profile();
    auto samples = stack_samples(profile, {CacheSpec::parse("4K:full:64").value()});
    double accesses = 0, cold = 0, misses = 0;
    for (const StackSample& sample : samples) {
        accesses += sample.accesses;
        cold += sample.cold;
        misses += sample.misses[0];
    }
    EXPECT_DOUBLE_EQ(accesses, 162);
    EXPECT_DOUBLE_EQ(cold, 12);
    EXPECT_DOUBLE_EQ(misses, 62);
}

// A protobuf message taken apart: field → contents in order; numbers come as their digits.
std::vector<std::pair<unsigned, std::string>> fields_of(std::string_view bytes) {
    std::vector<std::pair<unsigned, std::string>> out;
    std::size_t at = 0;
    auto varint = [&] {
        std::uint64_t value = 0;
        for (int shift = 0; at < bytes.size(); shift += 7) {
            auto byte = static_cast<unsigned char>(bytes[at++]);
            value |= std::uint64_t{byte & 0x7fu} << shift;
            if (byte < 0x80) break;
        }
        return value;
    };
    while (at < bytes.size()) {
        std::uint64_t key = varint(), value = varint();
        if ((key & 7) == 2) {
            out.emplace_back(key >> 3, bytes.substr(at, value));
            at += value;
        } else {
            out.emplace_back(key >> 3, std::to_string(value));
        }
    }
    EXPECT_EQ(at, bytes.size());
    return out;
}

TEST(Export, pprof_is_a_profile_message_with_all_its_tables) {
    auto text = export_pprof(called_profile(), {{CacheSpec::parse("L2=4K:full:64").value()}, ""});
    ASSERT_TRUE(text);
    std::map<unsigned, std::vector<std::string>> by_field;
    for (auto& [field, content] : fields_of(*text)) by_field[field].push_back(content);
    EXPECT_EQ(by_field[1].size(), 3u);  // value types
    EXPECT_EQ(by_field[2].size(), 3u);  // samples: the pair, and the rest of both sites
    EXPECT_EQ(by_field[3].size(), 1u);  // one module
    EXPECT_EQ(by_field[4].size(), 3u);  // two sites and a call
    EXPECT_EQ(by_field[5].size(), 3u);  // leaf, outer, main
    ASSERT_FALSE(by_field[6].empty());
    EXPECT_EQ(by_field[6][0], "");  // the first string is empty
    const auto& strings = by_field[6];
    EXPECT_NE(std::find(strings.begin(), strings.end(), "L2_misses"), strings.end());
    EXPECT_EQ(strings.at(std::stoul(by_field[14].at(0))), "L2_misses");
    // Location 1 is the first site: its own line, then the function it was inlined into.
    auto location = fields_of(by_field[4][0]);
    EXPECT_EQ(std::count_if(location.begin(), location.end(), [](auto& f) { return f.first == 4; }), 2);
}

TEST(Export, names_cannot_break_out_of_their_line) {
    Profile profile = called_profile();
    profile.sites[0].frame.function = "a;b\nfn=evil\n1 2 3";
    profile.contexts[1].frame.function = "x\ny";
    ExportOptions options{{CacheSpec::parse("L2=4K:full:64").value()}, "accesses"};
    std::string folded = export_folded(profile, options).value();
    EXPECT_EQ(std::count(folded.begin(), folded.end(), '\n'), 3);
    EXPECT_EQ(export_callgrind(profile, options)->find("\nfn=evil"), std::string::npos);
}

TEST(Page, what_does_not_fit_is_summed) {
    if (page_template().empty()) GTEST_SKIP() << "this build has no page (node was missing)";
    Profile profile = called_profile();
    for (std::uint32_t i = 100; i < 2000; ++i) {
        profile.sites.push_back(profile.sites[0]);
        profile.sites.back().id = i;
        profile.sites.back().reuse = {0, 0, 0, 0, {{0, 1, 3, 0}}};
    }
    PageOptions options;
    options.caches = {CacheSpec::parse("4K:full:64").value()};
    options.most_bytes = 20000;
    std::string page = html_page({{profile, "p"}}, options).value();
    EXPECT_LT(page.size(), page_template().size() + 30000);
    EXPECT_NE(page.find("\"restSites\":["), std::string::npos);
    // The sites that miss are in, whatever was left out.
    EXPECT_NE(page.find("[7,"), std::string::npos);
    EXPECT_NE(page.find("[9,"), std::string::npos);
}

TEST(Page, has_the_similarity_that_diff_prints) {
    if (page_template().empty()) GTEST_SKIP() << "this build has no page (node was missing)";
    const Profile before = called_profile();
    Profile after = called_profile();
    after.reuse.cold += 1000;
    const std::string page = html_page({{before, "a"}, {after, "b"}}, {}).value();
    const double s = compare({before}, {after}, {}).value().accuracy.value;
    EXPECT_LT(s, 1);
    EXPECT_NE(page.find(fmt::format("\"similarity\":{:.9g}", s)), std::string::npos) << s;
}

// Contexts as unwinders give them: each is a call, and the function it enters shows in the next.
Profile calling_profile() {
    Profile profile;
    profile.contexts = {{},
                        {0, "/lib/libc.so.6", 1, {"__libc_start_call_main", "", 0}},
                        {1, "app", 2, {"main", "a.c", 30}},
                        {1, "app", 3, {"main", "a.c", 34}},
                        {3, "/lib/libc.so.6", 4, {"qsort", "", 0}}};
    Site fill, sum, copy;
    fill.id = 1, fill.module = "app", fill.frame = {"fill", "a.c", 12};
    sum.id = 2, sum.module = "app", sum.frame = {"sum", "a.c", 20};
    copy.id = 3, copy.module = "/lib/libc.so.6", copy.frame.function = "__memcpy_generic";
    profile.sites = {fill, sum, copy};
    return profile;
}

TEST(Advice, names_the_pair_its_data_and_where_the_paths_meet) {
    Profile profile;
    profile.granularity = 64;
    profile.contexts = {{},
                        {0, "app", 1, {"main", "a.c", 30}},
                        {1, "app", 2, {"fill", "a.c", 12}},
                        {1, "app", 3, {"sum", "a.c", 20}}};
    Site fill, sum;
    fill.id = 1, fill.frame = {"fill", "a.c", 12};
    sum.id = 2, sum.frame = {"sum", "a.c", 20}, sum.data = "heap main (a.c:28)";
    profile.sites = {fill, sum};
    auto at = [](std::uint64_t blocks, double count) {
        return Histogram{0, 0, 0, 0, {{blocks, blocks + 1, count, 0}}};
    };
    // Two thirds of the reuses hit; what is told is the distance of those that do not.
    Histogram distances = at(1, 2000);
    distances.merge(at(65536, 1000));
    profile.pairs = {
        {1, 2, 2, 3, 3000, distances}, {2, 2, 3, 3, 4, at(65536, 4)}, {2, 9, 0, 77, 5, at(65536, 5)}};
    profile.reuse = distances;
    profile.reuse.merge(at(65536, 9));
    std::vector<Advice> advice = advise(profile, *CacheSpec::parse("64K:8:64"), 5);
    ASSERT_EQ(advice.size(), 1u);  // the others explain less than a hundredth
    EXPECT_EQ(advice[0].rule, "reorder");
    EXPECT_NEAR(advice[0].share, 1000.0 / 1009, 1e-9);
    EXPECT_NEAR(advice[0].gain, 1000, 1e-9);
    EXPECT_EQ(advice[0].what,
              "a.c:20 sum reuses heap main (a.c:28), last used by a.c:12 fill, after eviction: 4 MiB "
              "later, 64 times the cache");
    EXPECT_EQ(advice[0].where, "the two meet in main (a.c:30)");
    EXPECT_NE(advice[0].help.at(0).find("tile by tile"), std::string::npos);
    EXPECT_EQ(gain_text(advice[0], profile, *CacheSpec::parse("64K:8:64")),
              "at best 99 % fewer misses: 33.53 % → 0.30 % of accesses");
    profile.pairs[0].use = 2;
    EXPECT_EQ(advise(profile, *CacheSpec::parse("64K:8:64"), 5).at(0).rule, "tile");
    profile.sites[1].reuse = at(65536, 1000);  // all it accesses misses: no spatial locality
    EXPECT_EQ(advise(profile, *CacheSpec::parse("64K:8:64"), 5).at(0).rule, "interchange");
}

TEST(Advice, is_for_the_caller_of_a_copy_and_never_for_the_c_library) {
    Profile profile = calling_profile();
    profile.reuse = {0, 0, 0, 0, {{65536, 65537, 1000, 0}}};
    profile.pairs = {{3, 3, 3, 3, 1000, profile.reuse}};
    Advice advice = advise(profile, *CacheSpec::parse("64K:8:64"), 5).at(0);
    EXPECT_TRUE(advice.what.starts_with("a.c:34 main (in __memcpy_generic) reuses its data"))
        << advice.what;
    EXPECT_EQ(advice.where, "in main");
}

TEST(Advice, ignores_what_rests_on_too_few_samples_and_says_when_there_is_nothing_to_gain) {
    Profile profile = calling_profile();
    profile.reuse = {0, 0, 0, 0, {{65536, 65537, 1000, 0}}};
    profile.pairs = {{1, 2, 2, 3, 1000, profile.reuse}};
    const CacheSpec cache = *CacheSpec::parse("64K:8:64");
    EXPECT_EQ(advise(profile, cache, 5).at(0).rule, "reorder");
    profile.sampled = Sampling{100, 10, 0};  // 10 samples
    EXPECT_EQ(advise(profile, cache, 5).at(0).rule, "nothing");
    profile.sampled.reset();
    profile.reuse = {0, 0, 0, 0, {{0, 1, 1000000, 0}, {65536, 65537, 1000, 0}}};
    EXPECT_EQ(advise(profile, cache, 5).at(0).what,
              "nothing to gain here: 64K:8:64 serves all but 0.10 % of accesses");
}

TEST(Findings, lead_with_the_number_of_samples_when_they_are_few) {
    Profile profile = calling_profile();
    profile.reuse = {0, 0, 0, 0, {{65536, 65537, 1000, 0}}};
    profile.sampled = Sampling{20, 50, 0};
    Findings findings = findings_of(profile, {*CacheSpec::parse("L2=64K:8:64")});
    EXPECT_TRUE(findings.lead.starts_with("50 samples: too few")) << findings.lead;
    EXPECT_EQ(findings.lead.find('%'), std::string::npos);
    profile.sampled->samples = 5000;
    EXPECT_TRUE(findings_of(profile, {*CacheSpec::parse("L2=64K:8:64")}).lead.starts_with("100.00 %"));
}

TEST(Findings, have_the_error_of_an_estimated_number_of_accesses) {
    Profile profile = calling_profile();
    profile.accesses = 1000, profile.distinct = 10;
    profile.reuse = {0, 0, 0, 0, {{65536, 65537, 1000, 0}}};
    profile.sampled = Sampling{20, 5000, 0, 600};
    const Findings findings = findings_of(profile, {});
    EXPECT_NE(terminal_report(profile, {}, {}).find("\n1 K accesses ± 60 % to 10 blocks"),
              std::string::npos);
    EXPECT_NE(findings_json(findings, profile).find("\"accesses_error\": 600"), std::string::npos);
    if (!page_template().empty())
        EXPECT_NE(html_page({{profile, "p"}}, {}).value().find("\"accessesError\":\"\\u00b1 60 %\""),
                  std::string::npos);
    profile.sampled->accesses_error = 0;  // counted
    EXPECT_NE(terminal_report(profile, {}, {}).find("\n1 K accesses to 10 blocks"), std::string::npos);
}

TEST(TerminalReport, a_command_of_thousands_of_arguments_is_cut_between_characters) {
    Profile profile;
    profile.command.assign(3000, "\u00e4");
    const std::string text = terminal_report(profile, {}, {});
    const std::string line = text.substr(0, text.find('\n'));
    EXPECT_LT(line.size(), 1010u);
    EXPECT_TRUE(line.ends_with(" \u00e4 …") || line.ends_with("\u00e4  …")) << line;
}

TEST(Findings, have_the_range_of_the_memory_touched_where_it_is_estimated) {
    Profile profile = calling_profile();
    profile.accesses = 1000, profile.distinct = 1024, profile.granularity = 64;
    profile.reuse = {0, 0, 0, 0, {{65536, 65537, 1000, 0}}};
    profile.sampled = Sampling{20, 5000, 0, 0, 256, 1280};
    EXPECT_NE(terminal_report(profile, {}, {})
                  .find(" to 1.02 K blocks of 64 B (64 KiB, between 16 KiB and 80 KiB)"),
              std::string::npos)
        << terminal_report(profile, {}, {});
    const Profile read = profile_from_json(to_json(profile)).value();
    EXPECT_EQ(read.sampled->distinct_low, 256);
    EXPECT_EQ(read.sampled->distinct_high, 1280);
    if (!page_template().empty())
        EXPECT_NE(html_page({{profile, "p"}}, {}).value().find("between 16 KiB and 80 KiB"),
                  std::string::npos);
    EXPECT_EQ(figure_of(profile, "distinct", {})->error, 768);
    // One that was counted has no range, and its number goes into both ends of the sum.
    Profile counted = profile;
    counted.sampled->distinct_low = counted.sampled->distinct_high = 0;
    EXPECT_EQ(terminal_report(counted, {}, {}).find("KiB, between"), std::string::npos);
    ProfileMerger merger(profile);
    ASSERT_TRUE(merger.add(counted));
    const Profile both = merger.take();
    EXPECT_EQ(both.distinct, 2048);
    EXPECT_EQ(both.sampled->distinct_low, 256 + 1024);
    EXPECT_EQ(both.sampled->distinct_high, 1280 + 1024);
}

TEST(Findings, rank_sites_by_misses_and_time_where_time_was_sampled) {
    Profile profile = calling_profile();
    const CacheSpec cache = *CacheSpec::parse("L2=64K:8:64");
    profile.sites[0].reuse = {0, 0, 0, 0, {{65536, 65537, 500, 0}}};
    profile.sites[1].reuse = {0, 0, 0, 0, {{65536, 65537, 400, 0}}};
    profile.reuse = {0, 0, 0, 0, {{65536, 65537, 900, 0}}};
    EXPECT_EQ(findings_of(profile, {cache}).sites.at(0).site->id, 1u);
    profile.sites[0].time_share = 0.01;
    profile.sites[1].time_share = 0.8;
    EXPECT_EQ(findings_of(profile, {cache}).sites.at(0).site->id, 2u);
}

TEST(Findings, have_no_rates_of_caches_with_other_lines) {
    Profile profile = calling_profile();
    profile.granularity = 8;
    profile.reuse = {0, 0, 0, 0, {{65536, 65537, 1000, 0}}};
    profile.sites[0].reuse = profile.reuse;
    std::vector<CacheSpec> caches = {*CacheSpec::parse("L1=32K:8:64"),
                                     *CacheSpec::parse("L2=64K:8:64")};
    Findings findings = findings_of(profile, caches);
    EXPECT_TRUE(findings.levels.empty());
    EXPECT_NE(findings.left_out.find("--granularity 64"), std::string::npos);
    ASSERT_EQ(findings.sites.size(), 1u);  // ranked all the same, by distance
    EXPECT_EQ(findings.focus->blocks(), 8192u);
    std::string text = terminal_report(profile, caches, {});
    EXPECT_EQ(text.find("64 B lines"), std::string::npos);
}

TEST(Paths, of_a_pair_meet_in_the_function_that_makes_both_calls) {
    Profile profile = calling_profile();
    auto meet = [&](std::uint32_t use, std::uint32_t use_context, std::uint32_t reuse,
                    std::uint32_t reuse_context) {
        Pair pair{use, reuse, use_context, reuse_context, 1, {}};
        SiteIndex sites(profile);
        auto at = meeting_of(profile, pair, sites.find(use), sites.find(reuse)).at;
        return at ? frame_place(*at) : "nowhere";
    };
    EXPECT_EQ(meet(1, 2, 2, 3), "main (a.c:34)");
    EXPECT_EQ(meet(2, 3, 2, 3), "sum (a.c:20)");
    EXPECT_EQ(meet(1, 2, 1, 3), "main (a.c:34)");
    EXPECT_EQ(meet(3, 4, 3, 4), "main (a.c:34)");  // in the C library: its caller
    EXPECT_EQ(meet(1, 0, 2, 0), "nowhere");
    EXPECT_EQ(meet(1, 1, 2, 1), "nowhere");   // the C library is not the user's to change
    EXPECT_EQ(meet(1, 77, 9, 2), "nowhere");  // numbers out of a damaged file
    // Both calls inlined: the body they share is deeper than the function it lies in.
    profile.sites[0].inlined = {{"work", "a.c", 50}, {"main", "a.c", 34}};
    profile.sites[1].inlined = {{"work", "a.c", 53}, {"main", "a.c", 34}};
    EXPECT_EQ(meet(1, 1, 2, 1), "work (a.c:53)");
}

TEST(Paths, own_place_of_a_copy_is_its_caller) {
    Profile profile = calling_profile();
    EXPECT_EQ(frame_place(own_place(profile, profile.sites[2], 3)), "main (a.c:34)");
    EXPECT_EQ(frame_place(own_place(profile, profile.sites[2], 0)), "__memcpy_generic");
    EXPECT_EQ(frame_place(own_place(profile, profile.sites[0], 3)), "fill (a.c:12)");
    profile.sites[0].frame = {"std::vector<int>::operator[]", "/usr/include/c++/12/bits/stl_vector.h",
                              9};
    profile.sites[0].inlined = {{"fill", "a.c", 13}};
    EXPECT_EQ(frame_place(own_place(profile, profile.sites[0], 3)), "fill (a.c:13)");
}

TEST(Words, figures_have_no_more_digits_than_their_error_allows) {
    EXPECT_EQ(percent_with_error(0.7421, 0.032), "74 % ± 3 %");
    EXPECT_EQ(percent_with_error(0.7421, 0.0032), "74.2 % ± 0.3 %");
    EXPECT_EQ(percent_with_error(0.7421, 0.00032), "74.21 % ± 0.03 %");
    EXPECT_EQ(percent_with_error(0.7421, 1e-7), "74.21 % ± 0.01 %");
    EXPECT_EQ(percent_with_error(0.7421, 0.32), "74 % ± 32 %");
    EXPECT_EQ(percent_with_error(0.7421, 0), "74.21 %");
    EXPECT_EQ(percent_with_error(0.001, 0.05), "0 % ± 5 %");
}

TEST(Words, figures_have_no_minus_zero_and_counts_no_fractions) {
    EXPECT_EQ(percent(-1e-9), "0.00 %");
    EXPECT_EQ(percent(1e-9), "<0.01 %");
    EXPECT_EQ(percent(-0.25), "-25.00 %");
    EXPECT_EQ(format_count(2.6), "3");
    EXPECT_EQ(format_count(0.2), "<1");
    EXPECT_EQ(format_count(-0.2), "0");
    EXPECT_EQ(format_count(1234), "1.23 K");
    EXPECT_EQ(format_count(999499), "999 K");
    EXPECT_EQ(format_count(999999), "1 M");
    EXPECT_EQ(format_bytes(1023), "1023 B");
    EXPECT_EQ(format_bytes(1024.0 * 1024 * 1024 - 1), "1 GiB");
}

TEST(Processes, of_one_run_are_listed_with_what_each_did) {
    Profile profile;
    profile.command = {"xz", "-9", "big"};
    profile.reuse.bins = {{3, 4, 1000}};
    profile.accesses = 1000;
    profile.processes = {{10, {"sh", "-c", "nice xz -9 big"}, 0, 0, 0.001, 9},
                         {11, {"nice", "xz", "-9", "big"}, 0, 0, 0, 10},
                         {11, {"/bin/sh", "-c", "nice xz -9 big"}, 0, 0, 0, 10},
                         {11, {"xz", "-9", "big"}, 1000, 7, 2.5, 10},
                         {12, {"true"}, 0, 0, 0.25, 10},
                         {13, {"true"}, 0, 0, 0.25, 10}};
    std::vector<ProcessRow> rows = process_tree(profile, 10);
    ASSERT_EQ(rows.size(), 3u);
    EXPECT_EQ(rows[0].name, "sh -c nice xz -9 big");
    EXPECT_EQ(rows[1].name, "nice → xz -9 big");
    EXPECT_EQ(rows[0].depth, 0u);
    EXPECT_EQ(rows[1].depth, 1u);
    EXPECT_EQ(process_text(rows[1]), "1 K accesses, 7 samples, 2.5 s of CPU time");
    EXPECT_EQ(rows[2].name, "true");
    EXPECT_EQ(rows[2].processes, 2u);
    EXPECT_EQ(rows[2].seconds, 0.5);
    rows = process_tree(profile, 2);
    ASSERT_EQ(rows.size(), 2u);
    EXPECT_EQ(rows[1].name, "others");
    EXPECT_EQ(rows[1].processes, 3u);
    EXPECT_EQ(rows[1].accesses, 1000);
    EXPECT_NE(terminal_report(profile, {}, {})
                  .find("    true (2 processes): 0 accesses, 0.5 s of CPU time\n"),
              std::string::npos);
    // Numbers that name each other, as no run has them.
    profile.processes = {{1, {"a"}, 1, 0, 0, 2}, {2, {"b"}, 2, 0, 0, 1}, {3, {"c"}, 3, 0, 0, 3}};
    rows = process_tree(profile, 10);
    ASSERT_EQ(rows.size(), 3u);
    EXPECT_EQ(rows[1].depth, 1u);
    EXPECT_EQ(rows[2].depth, 0u);
    profile.processes.resize(1);
    EXPECT_TRUE(process_tree(profile, 10).empty());
}

}  // namespace
}  // namespace revisit
