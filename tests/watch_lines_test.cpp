// Which words of a line are watched, and what windows say about visits.
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "watch/samples/visits.h"
#include "watch/samples/word_choice.h"

namespace revisit::watch {
namespace {

TEST(WatchLines, words_of_a_block_are_those_that_an_access_covers) {
    EXPECT_EQ(words_of(1, 6, 64, 8), 1u);
    EXPECT_EQ(words_of(1, 6, 127, 1), 0x80u);
    EXPECT_EQ(words_of(1, 6, 68, 8), 3u);       // across two words
    EXPECT_EQ(words_of(1, 6, 120, 16), 0x80u);  // across two lines: what is in this one
    EXPECT_EQ(words_of(2, 6, 120, 16), 1u);
    EXPECT_EQ(words_of(1, 6, 0, 512), 0xffu);
    EXPECT_EQ(words_of(1, 6, 200, 8), 0u);
    EXPECT_EQ(words_of(9, 3, 72, 4), 1u);
    EXPECT_EQ(words_of(1, 7, 248, 8), 0x8000u);
}

// The naive count: instructions that touch a word.
std::uint64_t naive_touches(const AccessLog& log, std::uint64_t word) {
    std::uint64_t count = 0;
    bool counted = false;
    for (const LoggedAccess& one : log.accesses()) {
        if (one.begins) counted = false;
        bool touches = one.address < word + 8 && word < one.address + one.bytes;
        if (touches && !counted) count++;
        counted |= touches;
    }
    return count;
}

TEST(WatchLines, touches_to_step_over_are_counted_by_instruction) {
    Random random(7);
    for (int round = 0; round < 300; round++) {
        unsigned shift = 3 + random.below(5);
        AccessLog log;
        log.start();
        std::uint64_t last = 0;
        for (unsigned i = 0; i < 200; i++) {
            std::uint64_t address = 0x1000 + random.below(512);
            auto bytes = 1 + random.below(32);
            log.add(address, bytes, 0x400 + 4 * (i % 7), random.below(3) != 0);
            last = address;
        }
        WatchedWords words = choose_words(log, last, 0x400, shift, {}, {}, 4, ~0u, random);
        unsigned all = 1u << (shift - kWordShift);
        ASSERT_EQ(words.count, std::min(4u, all));
        std::set<std::uint64_t> different;
        for (unsigned i = 0; i < words.count; i++) {
            EXPECT_EQ(words.address[i] >> shift, last >> shift);
            EXPECT_EQ(words.touches[i], naive_touches(log, words.address[i]));
            EXPECT_TRUE(words.mask >> ((words.address[i] >> kWordShift) & (all - 1)) & 1);
            different.insert(words.address[i]);
        }
        EXPECT_EQ(different.size(), words.count);
    }
}

TEST(WatchLines, words_touched_too_often_before_the_use_are_left_out_where_others_are_left) {
    AccessLog log;
    log.start();
    for (int i = 0; i < 100; i++) log.add(0x1000, 8, 0x400, true);
    log.add(0x1008, 8, 0x404, true);
    Random random(1);
    for (int i = 0; i < 50; i++)
        EXPECT_EQ(choose_words(log, 0x1008, 0x404, 6, {}, {}, 4, 32, random).mask & 1, 0u);
    EXPECT_EQ(choose_words(log, 0x1008, 0x404, 4, {}, {}, 4, 32, random).mask, 3u);
}

TEST(WatchLines, words_by_which_a_site_comes_back_are_watched_and_others_now_and_then) {
    WordHabits habits;
    for (int i = 0; i < 40; i++) habits.learn(0x400, 2, 0b1111'0000u >> (i % 4), i % 4 >= 1 ? 3 : 4);
    AccessLog log;
    log.start();
    log.add(0x1010, 8, 0x400, true);
    Random random(3);
    std::map<unsigned, int> watched;
    for (int i = 0; i < 400; i++) {
        WatchedWords words = choose_words(log, 0x1010, 0x400, 6, habits, {}, 4, 32, random);
        EXPECT_EQ(words.use_word, 2u);
        for (unsigned w = 0; w < 8; w++) watched[w] += words.mask >> w & 1;
    }
    EXPECT_EQ(watched[3], 400);
    for (unsigned w = 0; w < 8; w++) EXPECT_GT(watched[w], 20) << w;
}

TEST(WatchLines, one_word_is_enough_where_every_visit_touches_all_words) {
    AccessLog log;
    log.start();
    for (std::uint64_t i = 0; i < 1024; i++) log.add(0x10000 + 8 * i, 8, 0x400, true);
    VisitStatistics visits;
    visits.add(log, 6);
    Random random(2);
    std::uint64_t use = 0x10000 + 8 * 800;
    EXPECT_EQ(choose_words(log, use, 0x400, 6, {}, visits, 4, 32, random).count, 1u);
    EXPECT_EQ(choose_words(log, use, 0x404, 6, {}, visits, 4, 32, random).count, 4u);  // not known
}

TEST(WatchLines, visits_have_the_words_that_a_window_sees_of_a_line) {
    AccessLog log;
    log.start();
    for (std::uint64_t i = 0; i < 1024; i++) log.add(0x10000 + 8 * i, 8, 0x400, true);  // a sweep
    VisitStatistics sweep;
    sweep.add(log, 6);
    EXPECT_EQ(sweep.all().size(), 1u);
    EXPECT_EQ(sweep.all().begin()->first, 0xffu);
    EXPECT_EQ(sweep.share_seen(0x400, 0x10), 1);

    Random random(5);
    log.start();
    for (int i = 0; i < 1024; i++) log.add(0x10000 + 8 * random.below(1u << 24), 8, 0x400, true);
    VisitStatistics gather;
    gather.add(log, 6);
    EXPECT_NEAR(gather.share_seen(0x400, 0x0f), 0.5, 0.06);
    EXPECT_NEAR(gather.share_seen(0x999, 0x0f), 0.5, 0.06);  // another site: as all of them
    EXPECT_EQ(VisitStatistics().share_seen(0x400, 1), 1);
}

TEST(WatchLines, sweeps_are_regular_and_gathers_are_not) {
    AccessLog log;
    Random random(5);
    VisitStatistics visits;
    log.start();
    for (std::uint64_t i = 0; i < 1024; i++) {
        log.add(0x10000 + 8 * i, 8, 0x400, true);
        log.add(0x900000 - 256 * i, 8, 0x404, true);  // backwards, by steps of four lines
        log.add(0x90000000 + 64 * random.below(1u << 24), 8, 0x408, true);
    }
    visits.add(log, 6);
    auto share = [&](std::uint64_t pc) {
        const SiteVisits& site = visits.sites().at(pc);
        return static_cast<double>(site.regular) / static_cast<double>(site.fresh);
    };
    EXPECT_EQ(visits.sites().at(0x400).fresh, 126u);
    EXPECT_EQ(share(0x400), 1);
    EXPECT_EQ(share(0x404), 1);
    EXPECT_LT(share(0x408), 0.01);
}

}  // namespace
}  // namespace revisit::watch
