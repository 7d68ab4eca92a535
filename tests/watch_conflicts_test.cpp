// Invalidations out of pairs of look-aheads, against the definition played through one access at a
// time, and the bytes of lines that windows see.
#include <gtest/gtest.h>

#include <bit>
#include <map>
#include <optional>
#include <random>
#include <set>

#include "watch/outside/places.h"
#include "watch/samples/conflicts.h"
#include "watch/samples/window_line_use.h"

namespace revisit::watch {
namespace {

constexpr unsigned kLine = 6;

AccessLog random_log(std::uint64_t seed, std::size_t count, std::uint64_t lines) {
    std::mt19937_64 random(seed);
    AccessLog log;
    for (std::size_t i = 0; i < count; i++)
        log.add(64 * (random() % lines) + 8 * (random() % 8), 8, 0x400 + 4 * (random() % 5), true,
                random() % 3 == 0);
    return log;
}

// A private copy of each line: the other's write takes it, the next own access misses.
std::vector<std::pair<std::size_t, std::size_t>> played(const AccessLog& victim,
                                                        const AccessLog& other) {
    std::vector<std::pair<std::size_t, std::size_t>> found;      // writer, victim
    std::map<std::uint64_t, std::optional<std::size_t>> copies;  // held; or who took it
    const std::size_t length = std::min(victim.accesses().size(), other.accesses().size());
    for (std::size_t i = 0; i < length; i++) {
        const std::uint64_t mine = victim.accesses()[i].address >> kLine;
        if (auto copy = copies.find(mine); copy != copies.end() && copy->second)
            found.emplace_back(*copy->second, i);
        copies[mine] = std::nullopt;
        const LoggedAccess& their = other.accesses()[i];
        if (auto copy = copies.find(their.address >> kLine);
            their.writes && copy != copies.end() && !copy->second)
            copy->second = i;
    }
    // Lines that one of them does not touch in its first quarter, or in its last, do not count.
    auto throughout = [&](const AccessLog& log, std::uint64_t line, bool writes) {
        bool early = false, late = false;
        for (std::size_t i = 0; i < length; i++) {
            const LoggedAccess& access = log.accesses()[i];
            if (access.address >> kLine != line || (writes && !access.writes)) continue;
            early |= 4 * i < length;
            late |= 4 * (length - 1 - i) < length;
        }
        return early && late;
    };
    std::erase_if(found, [&](const auto& one) {
        const std::uint64_t line = victim.accesses()[one.second].address >> kLine;
        return !throughout(victim, line, false) || !throughout(other, line, true);
    });
    return found;
}

TEST(Conflicts, are_those_of_the_definition) {
    for (std::uint64_t seed = 1; seed <= 40; seed++) {
        const std::uint64_t lines = seed % 4 == 0 ? 200 : 1 + seed % 7;
        const AccessLog victim = random_log(seed, 300 + seed, lines),
                        other = random_log(seed + 1000, 300, lines);
        const auto expected = played(victim, other);
        const auto found = conflicts_in(victim, other, kLine, 1);
        ASSERT_EQ(found.size(), expected.size()) << seed;
        for (std::size_t i = 0; i < found.size(); i++) {
            EXPECT_EQ(std::pair(found[i].writer, found[i].victim), expected[i]);
            const LoggedAccess &written = other.accesses()[found[i].writer],
                               &used = victim.accesses()[found[i].victim];
            EXPECT_EQ((found[i].written & found[i].used) == 0, written.address != used.address);
            EXPECT_DOUBLE_EQ(found[i].weight, 1);
        }
    }
}

// A producer and a consumer whose windows were taken at different moments: where they meet is chance.
TEST(Conflicts, of_lines_that_both_pass_by_do_not_count) {
    AccessLog victim, other;
    for (std::uint64_t i = 0; i < 1000; i++) {
        victim.add(0x10000 + 8 * i, 8, 0x400, true, false);
        other.add(0x10008 + 8 * i, 8, 0x500, true, true);
    }
    EXPECT_TRUE(conflicts_in(victim, other, kLine, 1).empty());
}

TEST(Conflicts, of_several_others_add_up_but_never_beyond_all_reuses) {
    AccessLog victim, other;
    for (int i = 0; i < 100; i++) {
        victim.add(0x1000, 8, 0x400, true, true);
        other.add(i % 10 == 0 ? 0x1008 : 0x2000, 8, 0x500, true, true);
    }
    double one = 0, nine = 0, many = 0;
    for (const Conflict& conflict : conflicts_in(victim, other, kLine, 1)) one += conflict.weight;
    for (const Conflict& conflict : conflicts_in(victim, other, kLine, 9)) nine += conflict.weight;
    for (const Conflict& conflict : conflicts_in(victim, other, kLine, 1e6)) many += conflict.weight;
    EXPECT_NEAR(one, 10, 1);
    EXPECT_GT(nine, 5 * one);
    EXPECT_NEAR(many, 99, 1e-6);
}

TEST(Conflicts, are_scaled_to_the_run_with_an_error_that_covers_the_truth) {
    // A tenth of a thread's accesses is invalidated in half of its windows: 5 % of all.
    int covered = 0;
    constexpr int kRuns = 200;
    for (int run = 0; run < kRuns; run++) {
        std::mt19937_64 random(static_cast<std::uint64_t>(run) + 7);
        ConflictTally tally;
        for (int pair = 0; pair < 100; pair++) {
            tally.begin_pair(1000);
            ConflictTally::Entry entry;
            entry.line = 64;
            entry.writer.label = 1, entry.victim.label = 2;
            entry.is_false = true;
            if (random() % 2 == 0) tally.add(entry, 100);
            tally.end_pair();
        }
        Profile profile;
        profile.accesses = 1e6;
        profile.granularity = 64;
        tally.fill(profile);
        ASSERT_EQ(profile.sharing.size(), 1u);
        EXPECT_EQ(profile.sharing[0].line, 4096u);
        EXPECT_NEAR(profile.sharing_totals->error, profile.sharing[0].error, 1e-6);
        covered += std::abs(profile.sharing[0].count - 50000) <= profile.sharing[0].error;
    }
    EXPECT_GT(covered, kRuns * 88 / 100);
}

TEST(Conflicts, of_a_thread_that_does_not_run_are_none_and_count_as_accesses) {
    ConflictTally tally;
    tally.begin_pair(1000);
    tally.end_pair();
    Profile profile;
    profile.accesses = 1e6;
    tally.fill(profile);
    EXPECT_TRUE(profile.sharing.empty());
    EXPECT_EQ(profile.sharing_totals->invalidated, 0);
}

TEST(WindowLineUse, counts_bytes_for_the_site_that_touched_the_line_first) {
    WindowLineUse use;
    for (int window = 0; window < 10; window++) {
        AccessLog log;
        for (std::uint64_t i = 0; i < 100; i++) {  // two fields of 64-byte structs
            log.add(0x10000 + 64 * i + 16, 8, 0x400, true);
            log.add(0x10000 + 64 * i + 40, 4, 0x404, true);
        }
        use.add(log, kLine);
    }
    ASSERT_TRUE(use.sites().contains(0x400));
    EXPECT_FALSE(use.sites().contains(0x404));
    const WindowLineUse::Sums& sums = use.sites().at(0x400);
    EXPECT_DOUBLE_EQ(sums.used(), 12);
    EXPECT_NEAR(sums.error(), 0, 1e-9);
    EXPECT_EQ(sums.lines, 500);  // of the first halves
    EXPECT_EQ(sums.parts, 0xf0000ff0000u);
    EXPECT_EQ(std::popcount(sums.parts), 12);
}

// Numbers of places and stacks are small, and so are their differences.
TEST(Places, have_a_label_for_every_instruction_and_stack) {
    outside::Places places;
    std::set<std::uint32_t> labels;
    for (std::uint32_t place = 0; place < 64; place++)
        for (std::uint32_t stack = 0; stack < 64; stack++)
            labels.insert(places.label(place, stack, {}));
    EXPECT_EQ(labels.size(), 64u * 64);
}

}  // namespace
}  // namespace revisit::watch
