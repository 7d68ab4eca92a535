// Who takes which line from whom, held against a simulator that keeps every copy of every line with the
// write that took it.
#include "report/sharing.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>
#include <tuple>

#include "byte_trace.h"
#include "core/frequent.h"
#include "revisit/blocks.h"
#include "revisit/revisit.h"

namespace revisit {
namespace {

using testing::ByteTrace;

// line, writer's site and thread, victim's site and thread, false sharing → count and bytes of both.
using Key = std::tuple<std::uint64_t, std::uint32_t, std::uint32_t, std::uint32_t, std::uint32_t, bool>;
struct Sum {
    double count = 0;
    std::set<unsigned> written, missed;
    bool operator==(const Sum&) const = default;
};
using Records = std::map<Key, Sum>;

// The definition: every thread holds copies of lines; a write removes the copies of all other threads
// and leaves its name with them.
Records simulate(const ByteTrace& trace) {
    struct Taker {
        std::uint32_t site, thread;
        std::set<unsigned> bytes;
    };
    std::map<std::uint16_t, std::set<std::uint64_t>> held;
    std::map<std::pair<std::uint16_t, std::uint64_t>, Taker> lost;
    Records out;
    for (std::size_t i = 0; i < trace.addresses.size(); ++i) {
        const std::uint64_t first = trace.addresses[i], last = first + std::max(1u, trace.sizes[i]) - 1;
        for (std::uint64_t line = first / 64; line <= last / 64; ++line) {
            std::set<unsigned> bytes;
            for (std::uint64_t at = first; at <= last; ++at)
                if (at / 64 == line) bytes.insert(static_cast<unsigned>(at % 64));
            const std::uint16_t me = trace.threads[i];
            if (auto taken = lost.find({me, line}); taken != lost.end()) {
                bool common = false;
                for (unsigned byte : bytes) common |= taken->second.bytes.contains(byte);
                Sum& sum = out[{line * 64, taken->second.site, taken->second.thread, trace.sites[i], me,
                                !common}];
                sum.count++;
                sum.written.insert(taken->second.bytes.begin(), taken->second.bytes.end());
                sum.missed.insert(bytes.begin(), bytes.end());
                lost.erase(taken);
            }
            held[me].insert(line);
            if (trace.flags[i] != kWrite) continue;
            for (auto& [other, lines] : held)
                if (other != me && lines.erase(line) != 0)
                    lost[{other, line}] = {trace.sites[i], me, bytes};
        }
    }
    return out;
}

Records records_of(const Profile& profile) {
    Records out;
    auto bytes = [](std::uint64_t mask) {
        std::set<unsigned> set;
        for (unsigned i = 0; i < 64; ++i)
            if ((mask >> i & 1) != 0) set.insert(i);
        return set;
    };
    for (const Sharing& one : profile.sharing)
        out[{one.line, one.writer.site, one.writer.thread, one.victim.site, one.victim.thread,
             one.false_sharing}] = {one.count, bytes(one.writer.bytes), bytes(one.victim.bytes)};
    return out;
}

Profile analyzed(const ByteTrace& trace, std::string_view method = "exact", bool sites = true) {
    EngineOptions options;
    options.model = StackModel::private_;
    options.sharing = true;
    options.sites = sites;
    options.sample.rate = 1;
    options.sample.prune_share = 1;
    auto engine = make_engine(method, options).value();
    BlockCutter cutter(options.granularity);
    cutter.keep_parts();
    EXPECT_TRUE(cutter.cut(trace.batch(), [&](const BlockBatch& piece) { return engine->add(piece); }));
    return engine->finish().value();
}

ByteTrace random_trace(std::uint64_t seed, unsigned threads, unsigned lines, unsigned sites) {
    std::mt19937_64 random(seed);
    ByteTrace trace;
    const std::uint32_t sizes[] = {0, 1, 2, 4, 8, 16, 64, 100};
    for (int i = 0; i < 2000; ++i)  // fewer records than the list keeps
        trace.add(static_cast<std::uint16_t>(random() % threads), random() % 3 == 0,
                  0x10000 + random() % (lines * 64), sizes[random() % std::size(sizes)],
                  static_cast<std::uint32_t>(random() % sites));
    return trace;
}

TEST(Sharing, names_the_write_and_the_access_that_missed) {
    ByteTrace trace;
    trace.add(1, false, 0x1008, 8, 10);
    trace.add(0, true, 0x1000, 8, 20);
    trace.add(2, true, 0x1010, 4, 30);  // takes the line from thread 0, which had taken it from 1
    trace.add(1, false, 0x1008, 8, 11);
    trace.add(0, true, 0x1010, 2, 21);
    Profile profile = analyzed(trace);
    ASSERT_EQ(profile.sharing.size(), 2u);
    Records expected;
    expected[{0x1000, 20, 0, 11, 1, true}] = {
        1, {0, 1, 2, 3, 4, 5, 6, 7}, {8, 9, 10, 11, 12, 13, 14, 15}};
    expected[{0x1000, 30, 2, 21, 0, false}] = {1, {16, 17, 18, 19}, {16, 17}};
    EXPECT_EQ(records_of(profile), expected);
    EXPECT_EQ(profile.sharing_totals->invalidated, 2);
    EXPECT_EQ(profile.sharing_totals->false_sharing, 1);
    EXPECT_EQ(profile.sharing_totals->unlisted, 0);
}

TEST(Sharing, agrees_with_the_simulator_on_random_traces) {
    for (unsigned threads : {2u, 3u, 8u, 17u, 64u})
        for (std::uint64_t seed = 1; seed <= 6; ++seed) {
            const ByteTrace trace = random_trace(seed, threads, seed % 2 != 0 ? 3 : 40, 5);
            const Records expected = simulate(trace);
            for (bool sites : {false, true}) {
                const Profile profile = analyzed(trace, "exact", sites);
                EXPECT_EQ(records_of(profile), expected) << threads << " threads, seed " << seed;
                EXPECT_EQ(profile.sharing_totals->invalidated, profile.reuse.invalidated);
            }
            // With every access chosen, the samples are all there is.
            EXPECT_EQ(records_of(analyzed(trace, "sample")), expected)
                << threads << " threads, seed " << seed;
        }
}

TEST(Sharing, survives_json_and_a_merge_adds_up) {
    const Profile profile = analyzed(random_trace(3, 4, 2, 3));
    ASSERT_FALSE(profile.sharing.empty());
    Profile again = profile_from_json(to_json(profile)).value();
    EXPECT_EQ(records_of(again), records_of(profile));
    EXPECT_EQ(to_json(again), to_json(profile));
    const std::size_t count = profile.sharing.size();
    ASSERT_TRUE(merge_profile(again, profile));
    EXPECT_EQ(again.sharing.size(), 2 * count);  // threads of another run are other threads
    EXPECT_EQ(again.sharing_totals->invalidated, 2 * profile.sharing_totals->invalidated);
}

TEST(Sharing, lines_add_up_and_show_who_touches_which_byte) {
    ByteTrace trace;
    for (int i = 0; i < 100; ++i)
        for (std::uint16_t thread = 0; thread < 2; ++thread)
            trace.add(thread, true, 0x1000 + 8u * thread, 8, 7);
    const Profile profile = analyzed(trace);
    const std::vector<SharedLine> lines = shared_lines(profile);
    ASSERT_EQ(lines.size(), 1u);
    EXPECT_EQ(lines[0].invalidated, profile.reuse.invalidated);
    EXPECT_EQ(lines[0].false_sharing, profile.reuse.invalidated);
    ASSERT_EQ(lines[0].bytes.size(), 2u);
    EXPECT_EQ(lines[0].bytes[0].end, 8u);
    EXPECT_EQ(lines[0].bytes[0].writers, std::vector<std::uint32_t>{0});
    EXPECT_EQ(lines[0].bytes[1].writers, std::vector<std::uint32_t>{1});
    EXPECT_TRUE(is_worth_mending(lines[0], profile));
    EXPECT_NE(shared_line_table(profile, 5).value().find("bytes  8–15"), std::string::npos);
}

// The page had thresholds of its own, which knew nothing of the error of sampled counts.
TEST(Sharing, the_verdict_on_a_line_is_about_what_its_error_leaves) {
    Profile profile;
    profile.accesses = 1e6;
    SharedLine line;
    line.invalidated = 1000;
    line.false_sharing = 900;
    EXPECT_TRUE(sharing_verdict(line, profile).is_gain);
    EXPECT_NE(sharing_verdict(line, profile).text.find("to 64 B"), std::string::npos);
    line.error = 750;
    EXPECT_FALSE(sharing_verdict(line, profile).is_gain);
    EXPECT_NE(sharing_verdict(line, profile).text.find("too rarely"), std::string::npos);
    line.error = 0;
    line.false_sharing = 400;
    EXPECT_FALSE(sharing_verdict(line, profile).is_gain);
    EXPECT_NE(sharing_verdict(line, profile).text.find("accumulate privately"), std::string::npos);
}

// Pairs of the same source lines were listed alike, whoever had called.
TEST(Sharing, the_table_names_callers_where_nothing_else_differs) {
    Profile profile;
    profile.accesses = 100;
    profile.sharing_totals = SharingTotals{};
    profile.sharing_totals->invalidated = 60;
    profile.contexts.resize(3);
    profile.contexts[1].frame.function = "by_rail";
    profile.contexts[2].frame.function = "by_road";
    for (const std::uint32_t context : {1u, 2u, 0u}) {
        Sharing one;
        one.line = 4096;
        one.count = 20;
        one.writer.context = context;
        one.writer.thread = context == 0 ? 3 : 1;
        one.writer.frame.function = one.victim.frame.function = "add";
        one.victim.thread = 2;
        profile.sharing.push_back(one);
    }
    const std::string table = shared_line_table(profile, 5).value();
    for (const char* one :
         {"thread 1 add (from by_rail) →", "thread 1 add (from by_road) →", "thread 3 add →"})
        EXPECT_NE(table.find(one), std::string::npos) << table;
}

TEST(Sharing, the_list_is_bounded_and_the_totals_are_not) {
    ByteTrace trace;
    for (int round = 0; round < 2; ++round)
        for (std::uint64_t line = 0; line < 50'000; ++line)
            for (std::uint16_t thread = 0; thread < 2; ++thread)
                trace.add(thread, true, line * 64, 8, thread);
    const Profile profile = analyzed(trace);
    EXPECT_EQ(profile.sharing_totals->invalidated, profile.reuse.invalidated);
    double listed = 0;
    for (const Sharing& one : profile.sharing) listed += one.count;
    EXPECT_LE(profile.sharing.size(), 4096u);
    EXPECT_EQ(listed + profile.sharing_totals->unlisted, profile.sharing_totals->invalidated);
}

TEST(FrequentKeys, admits_what_is_frequent_however_late_and_little_else) {
    FrequentKeys keys({100, 10'000, 10});
    std::set<std::uint64_t> admitted;
    std::mt19937_64 random(1);
    std::uint64_t time = 0;
    for (; time < 1'000'000; ++time) {
        // From the middle on, key 5 is 1 % of all.
        const std::uint64_t key = time > 500'000 && time % 100 == 0 ? 5 : 1000 + random() % 10'000'000;
        if (!admitted.contains(key) && keys.admit(key, 1, time)) admitted.insert(key);
    }
    EXPECT_TRUE(admitted.contains(5));
    EXPECT_GE(admitted.size(), 100u);
    EXPECT_LE(admitted.size(), 2'000u);
}

}  // namespace
}  // namespace revisit
