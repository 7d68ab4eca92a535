// The order in which threads' records are analyzed.
#include "record/interleave.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <string>
#include <vector>

namespace revisit::record {
namespace {

// A block of one access; its address tells which it is.
void put_access(std::vector<std::uint64_t>& words, std::uint64_t address) {
    words.push_back(REVISIT_BLOCK(1, 1));
    words.push_back(address);
}
void put_sync(std::vector<std::uint64_t>& words, std::uint64_t kind, std::uint64_t lock) {
    words.push_back(REVISIT_RECORD(REVISIT_SYNC, kind));
    words.push_back(lock);
}

// What came out: "0:1 1:7" is address 1 of thread 0, then 7 of thread 1.
class Collected {
 public:
    Interleaver::Feed feed() {
        return [this](const SlotView& piece) -> Result<void> {
            for (std::size_t at = 0; at < piece.words.size(); at++) {
                if (!(piece.words[at] & REVISIT_BLOCK_BIT)) {
                    at++;  // all other records here have one more word
                    continue;
                }
                text += (text.empty() ? "" : " ") + std::to_string(piece.thread) + ":" +
                        std::to_string(piece.words[++at]);
            }
            return {};
        };
    }
    std::string text;
};

SlotView slot_of(std::uint32_t thread, const std::vector<std::uint64_t>& words, std::uint64_t began = 0,
                 std::uint64_t ended = 0) {
    return {0, 1, thread, false, words, began, ended};
}

// The order in which one slot of several threads' turns comes out.
std::string in_turns(const std::vector<std::uint64_t>& words) {
    Collected out;
    Interleaver order(Interleaving::by_turns, out.feed());
    EXPECT_TRUE(order.add(slot_of(0, words)));
    EXPECT_TRUE(order.flush());
    return out.text;
}

TEST(Interleave, turns_of_a_round_are_merged_by_progress) {
    std::vector<std::uint64_t> words;
    put_access(words, 1);
    put_access(words, 2);
    words.push_back(REVISIT_RECORD(REVISIT_THREAD, 1));
    put_access(words, 7);
    put_access(words, 8);
    words.push_back(REVISIT_RECORD(REVISIT_THREAD, 0));  // a second turn: the next round
    put_access(words, 3);
    EXPECT_EQ(in_turns(words), "0:1 1:7 0:2 1:8 0:3");
}

// Equal loops do not stay in step, nor does one get far ahead.
TEST(Interleave, threads_of_equal_speed_drift) {
    constexpr std::size_t kAccesses = 20000;
    std::vector<int> order_seen;
    Interleaver order(Interleaving::by_turns, [&](const SlotView& piece) -> Result<void> {
        for (std::size_t at = 0; at + 1 < piece.words.size(); at += 2)
            order_seen.push_back(static_cast<int>(piece.thread));
        return {};
    });
    std::vector<std::uint64_t> words;
    for (std::uint64_t thread : {0u, 1u}) {
        words.push_back(REVISIT_RECORD(REVISIT_THREAD, thread));
        for (std::size_t i = 0; i < kAccesses; i++) put_access(words, i);
    }
    ASSERT_TRUE(order.add(slot_of(0, words)));
    ASSERT_TRUE(order.flush());
    ASSERT_EQ(order_seen.size(), 2 * kAccesses);
    std::size_t repeated = 0;
    long ahead = 0, furthest = 0;
    for (std::size_t i = 0; i < order_seen.size(); i++) {
        repeated += i > 0 && order_seen[i] == order_seen[i - 1];
        ahead += order_seen[i] == 0 ? 1 : -1;
        furthest = std::max(furthest, std::abs(ahead));
    }
    EXPECT_GT(repeated, kAccesses / 100);
    EXPECT_LT(repeated, kAccesses);
    EXPECT_GT(furthest, 20);
    EXPECT_LT(furthest, static_cast<long>(kAccesses / 10));
}

TEST(Interleave, a_turn_goes_on_in_the_next_slot) {
    Collected out;
    Interleaver order(Interleaving::by_turns, out.feed());
    std::vector<std::uint64_t> first, second;
    put_access(first, 1);
    first.push_back(REVISIT_RECORD(REVISIT_THREAD, 1));
    put_access(first, 7);
    put_access(second, 8);
    second.push_back(REVISIT_RECORD(REVISIT_THREAD, 2));
    put_access(second, 20);
    put_access(second, 21);
    ASSERT_TRUE(order.add(slot_of(0, first)));
    ASSERT_TRUE(order.add(slot_of(1, second)));
    ASSERT_TRUE(order.flush());
    EXPECT_EQ(out.text, "0:1 1:7 2:20 1:8 2:21");
}

TEST(Interleave, a_thread_begins_after_the_call_that_made_it) {
    std::vector<std::uint64_t> words;
    put_access(words, 1);
    put_access(words, 2);
    words.push_back(REVISIT_RECORD(REVISIT_THREAD_START, 1));
    words.push_back(0);
    put_access(words, 3);
    words.push_back(REVISIT_RECORD(REVISIT_THREAD, 1));
    put_access(words, 7);
    EXPECT_EQ(in_turns(words), "0:1 0:2 0:3 1:7");
}

TEST(Interleave, what_a_lock_guards_is_not_mixed) {
    std::vector<std::uint64_t> words;
    for (std::uint64_t thread = 0; thread < 2; thread++) {
        words.push_back(REVISIT_RECORD(REVISIT_THREAD, thread));
        put_sync(words, REVISIT_SYNC_LOCK, 0x1000);
        for (std::uint64_t i = 1; i <= 3; i++) put_access(words, 10 * thread + i);
        put_sync(words, REVISIT_SYNC_UNLOCK, 0x1000);
        put_access(words, 10 * thread + 4);
    }
    const std::string text = in_turns(words);
    EXPECT_EQ(text.substr(0, text.find(" 0:4")), "0:1 0:2 0:3");
    EXPECT_LT(text.find("0:3"), text.find("1:11"));
    EXPECT_NE(text.find("1:14"), std::string::npos);
}

TEST(Interleave, a_lock_that_is_never_released_holds_nobody_up) {
    std::vector<std::uint64_t> words;
    for (std::uint64_t thread = 0; thread < 2; thread++) {
        words.push_back(REVISIT_RECORD(REVISIT_THREAD, thread));
        put_sync(words, REVISIT_SYNC_LOCK, 0x1000);
        put_access(words, thread);
    }
    EXPECT_EQ(in_turns(words), "0:0 1:1");
}

// Block 2 changes a word atomically, block 3 stores to one.
void put_definitions(std::vector<std::uint64_t>& words) {
    for (std::uint64_t block = 2; block <= 3; block++) {
        words.push_back(REVISIT_RECORD(REVISIT_DEFINE_BLOCK, 1));
        words.push_back(block);
        words.push_back(REVISIT_ACCESS(4, REVISIT_WRITE | (block == 2 ? REVISIT_ATOMIC : 0)));
        words.push_back(0);
    }
}
void put_block(std::vector<std::uint64_t>& words, std::uint64_t block, std::uint64_t address) {
    words.push_back(REVISIT_BLOCK(block, 1));
    words.push_back(address);
}

TEST(Interleave, what_a_spinlock_guards_is_not_mixed) {
    std::vector<std::uint64_t> definitions, words;
    put_definitions(definitions);
    for (std::uint64_t thread = 1; thread < 3; thread++) {
        words.push_back(REVISIT_RECORD(REVISIT_THREAD_START, thread));
        words.push_back(0);
    }
    for (std::uint64_t thread = 0; thread < 3; thread++) {
        words.push_back(REVISIT_RECORD(REVISIT_THREAD, thread));
        put_block(words, 2, 500);  // a try that fails, or the one before last of a counter
        for (int round = 0; round < 2; round++) {
            put_block(words, 2, 500);
            for (std::uint64_t i = 1; i <= 3 + thread; i++) put_access(words, 10 * thread + i);
            put_block(words, 3, 500);
        }
    }
    std::vector<std::pair<std::uint32_t, std::uint64_t>> seen;
    Interleaver order(Interleaving::by_turns, [&](const SlotView& piece) -> Result<void> {
        for (std::size_t at = 0; at + 1 < piece.words.size(); at += 2)
            if (piece.words[at] & REVISIT_BLOCK_BIT)
                seen.emplace_back(piece.thread,
                                  REVISIT_BLOCK_ID(piece.words[at]) << 16 | piece.words[at + 1]);
        return {};
    });
    ASSERT_TRUE(order.add(slot_of(0, definitions)));
    ASSERT_TRUE(order.add(slot_of(0, words)));
    ASSERT_TRUE(order.flush());
    ASSERT_EQ(seen.size(), 3u + 3 * 2 * 2 + 2 * (3 + 4 + 5));
    // From a guarded access to the store that releases, no other thread's guarded access.
    std::optional<std::uint32_t> holder;
    bool mixed = false, tried = false;
    for (const auto& [thread, what] : seen) {
        if (what >> 16 == 2) {
            tried |= holder && *holder != thread;
            continue;
        }
        if (holder && *holder != thread) mixed = true;
        holder = what >> 16 == 3 ? std::nullopt : std::optional(thread);
    }
    EXPECT_FALSE(mixed);
    EXPECT_TRUE(tried) << "whoever waits has tried the lock, and taken the line";
    EXPECT_NE(seen[1].first, seen[0].first) << "the first tries of all threads come first";
}

// The joined thread ended long before: nobody waits.
TEST(Interleave, what_a_thread_did_comes_before_its_join) {
    std::vector<std::uint64_t> words;
    words.push_back(REVISIT_RECORD(REVISIT_THREAD_START, 1));
    words.push_back(0);
    words.push_back(REVISIT_RECORD(REVISIT_THREAD, 1));
    for (std::uint64_t i = 1; i <= 4; i++) put_access(words, 10 + i);
    put_sync(words, REVISIT_SYNC_EXIT, 0x10d0);
    words.push_back(REVISIT_RECORD(REVISIT_THREAD_EXIT, 1));
    words.push_back(REVISIT_RECORD(REVISIT_THREAD, 0));
    put_access(words, 1);
    put_sync(words, REVISIT_SYNC_JOIN, 0x1000);
    put_access(words, 2);
    EXPECT_EQ(in_turns(words), "0:1 1:11 1:12 1:13 1:14 0:2");
}

// A thread that was held up for long is joined: what comes after the join is late as well.
TEST(Interleave, a_join_waits_for_a_thread_that_waited_for_a_lock) {
    std::vector<std::uint64_t> words;
    words.push_back(REVISIT_RECORD(REVISIT_THREAD, 2));
    put_sync(words, REVISIT_SYNC_LOCK, 0x9000);
    for (std::uint64_t i = 1; i <= 8; i++) put_access(words, 20 + i);
    put_sync(words, REVISIT_SYNC_UNLOCK, 0x9000);
    words.push_back(REVISIT_RECORD(REVISIT_THREAD, 1));
    put_access(words, 11);
    put_sync(words, REVISIT_SYNC_LOCK, 0x9000);
    put_access(words, 12);
    put_sync(words, REVISIT_SYNC_EXIT, 0x10d0);
    words.push_back(REVISIT_RECORD(REVISIT_THREAD, 0));
    put_access(words, 1);
    put_sync(words, REVISIT_SYNC_JOIN, 0x1000);
    put_access(words, 2);
    const std::string text = in_turns(words);
    EXPECT_LT(text.find("2:28"), text.find("1:12"));
    EXPECT_LT(text.find("1:12"), text.find("0:2"));
    EXPECT_LT(text.find("0:1"), text.find("2:22"));
}

// What an OpenMP reduction looks like: taken by every thread, released by one.
TEST(Interleave, a_lock_that_is_never_released_holds_no_stamped_slot_up) {
    Collected out;
    Interleaver order(Interleaving::by_stamps, out.feed());
    std::vector<std::vector<std::uint64_t>> slots;
    for (std::uint64_t i = 0; i < 40; i++) {
        slots.emplace_back();
        put_sync(slots.back(), REVISIT_SYNC_LOCK, 0x1000);
        put_access(slots.back(), i);
    }
    for (std::uint64_t i = 0; i < 40; i++)
        ASSERT_TRUE(order.add(slot_of(i % 2, slots[i], 100 * i + 1, 100 * i + 150)));
    ASSERT_TRUE(order.flush());
    for (std::uint64_t i = 0; i < 40; i++)
        EXPECT_NE((" " + out.text + " ").find(":" + std::to_string(i) + " "), std::string::npos) << i;
}

TEST(Interleave, stamped_slots_are_merged_by_time) {
    Collected out;
    Interleaver order(Interleaving::by_stamps, out.feed());
    std::vector<std::uint64_t> begin, slow, fast;
    put_access(begin, 100);
    for (std::uint64_t i = 0; i < 4; i++) put_access(slow, i);
    for (std::uint64_t i = 0; i < 4; i++) put_access(fast, 10 + i);
    ASSERT_TRUE(order.add(slot_of(0, begin, 0, 95)));
    ASSERT_TRUE(order.add(slot_of(1, fast, 100, 140)));  // at 100, 110, 120, 130
    ASSERT_TRUE(order.add(slot_of(0, slow, 95, 215)));   // at 95, 125, 155, 185
    ASSERT_TRUE(order.flush());
    EXPECT_EQ(out.text, "0:100 0:0 1:10 1:11 1:12 0:1 1:13 0:2 0:3");
}

// Two threads that each fill a slot in a moment and then wait for the analyzer, in turn: on their own
// they would have run side by side.
TEST(Interleave, time_spent_waiting_for_the_analyzer_is_filled) {
    Collected out;
    Interleaver order(Interleaving::by_stamps, out.feed());
    std::vector<std::uint64_t> first, second;
    for (std::uint64_t i = 0; i < 3; i++) put_access(first, i);
    for (std::uint64_t i = 0; i < 3; i++) put_access(second, 10 + i);
    std::vector<std::uint64_t> begin;
    put_access(begin, 100);
    ASSERT_TRUE(order.add(slot_of(0, begin, 0, 90)));
    ASSERT_TRUE(order.add(slot_of(1, begin, 95, 100)));
    ASSERT_TRUE(order.add(slot_of(0, first, 385, 390)));   // 90, 190, 290
    ASSERT_TRUE(order.add(slot_of(1, second, 395, 400)));  // 100, 200, 300
    ASSERT_TRUE(order.flush());
    EXPECT_EQ(out.text, "0:100 0:0 1:100 1:10 0:1 1:11 0:2 1:12");
}

}  // namespace
}  // namespace revisit::record
