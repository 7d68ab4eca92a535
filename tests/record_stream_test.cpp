// The stream between a recorded program and the analyzer: order, waiting, and what is left by the dead.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <map>
#include <random>
#include <thread>
#include <vector>

#include "record/consume.h"
#include "record/slots.h"
#include "record/stream.h"
#include "revisit/blocks.h"

namespace revisit::record {
namespace {

using std::chrono::milliseconds;

// Numbers words 1, 2, 3, … per thread, so that a lost or repeated slot shows.
void produce(revisit_stream* s, std::uint32_t producer, std::uint32_t thread, int slots) {
    std::uint64_t next = 1;
    for (int i = 0; i < slots; i++) {
        std::int32_t slot = revisit_slot_open(s, producer, thread);
        if (slot < 0) return;
        std::uint64_t* data = revisit_slot_data(s, static_cast<std::uint32_t>(slot));
        std::uint32_t words = 100 + static_cast<std::uint32_t>(i % 50);
        for (std::uint32_t w = 0; w < words; w++) data[w] = next++;
        revisit_slot_hand_over(s, slot, words);
    }
}

TEST(record_stream, threads_arrive_whole_and_in_order) {
    auto slots = Slots::create(0);
    ASSERT_TRUE(slots) << slots.error().sentence();
    revisit_stream* s = slots->stream();
    std::uint32_t me = revisit_producer_start(s);
    constexpr int kThreads = 4, kSlots = 1000;
    std::vector<std::thread> threads;
    for (std::uint32_t t = 0; t < kThreads; t++) threads.emplace_back(produce, s, me, t, kSlots);
    std::map<std::uint32_t, std::uint64_t> next;
    for (int taken = 0; taken < kThreads * kSlots;) {
        auto view = slots->take(milliseconds(1000));
        if (!view) continue;
        for (std::uint64_t word : view->words) ASSERT_EQ(word, ++next[view->thread]);
        slots->give_back(*view);
        taken++;
    }
    for (auto& t : threads) t.join();
    EXPECT_EQ(slots->words_handed_over(), slots->words_taken());
    EXPECT_FALSE(slots->take(milliseconds(0)));
}

TEST(record_stream, another_process_reaches_it_by_path_and_its_unfinished_slot_is_salvaged) {
    auto slots = Slots::create(0);
    ASSERT_TRUE(slots) << slots.error().sentence();
    std::string path = slots->path();
    pid_t child = fork();
    if (child == 0) {
        int fd = open(path.c_str(), O_RDWR | O_CLOEXEC);
        void* base = mmap(nullptr, REVISIT_STREAM_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        auto* s = static_cast<revisit_stream*>(base);
        if (base == MAP_FAILED || !revisit_stream_valid(s)) _exit(1);
        std::uint32_t me = revisit_producer_start(s);
        produce(s, me, 0, 3);
        std::uint64_t* data =
            revisit_slot_data(s, static_cast<std::uint32_t>(revisit_slot_open(s, me, 0)));
        data[0] = 7;
        data[1] = 8;
        kill(getpid(), SIGKILL);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status));
    for (int i = 0; i < 3; i++) {
        auto view = slots->take(milliseconds(100));
        ASSERT_TRUE(view);
        slots->give_back(*view);
    }
    EXPECT_FALSE(slots->take(milliseconds(0)));
    auto left = slots->salvage(1);
    ASSERT_EQ(left.size(), 1u);
    EXPECT_EQ(left[0].words[0], 7u);
    EXPECT_EQ(left[0].words[1], 8u);
    EXPECT_EQ(left[0].words[2], 0u);
    slots->give_back(left[0]);
    EXPECT_TRUE(slots->salvage(1).empty());
}

TEST(record_stream, producer_goes_on_when_the_analyzer_stops_or_dies) {
    auto slots = Slots::create(0);
    ASSERT_TRUE(slots);
    revisit_stream* s = slots->stream();
    slots->stop();
    EXPECT_EQ(revisit_slot_open(s, 1, 0), -1);
    s->stop = 0;
    pid_t child = fork();
    if (child == 0) _exit(0);
    while (revisit_process_lives(static_cast<std::uint32_t>(child)))
        usleep(1000);  // dead, not yet waited for
    s->analyzer = static_cast<std::uint32_t>(child);
    s->head = REVISIT_SLOTS_FULL;
    EXPECT_EQ(revisit_slot_open(s, 1, 0), -1);
    waitpid(child, nullptr, 0);
}

// Accesses of all shapes, cut into slots at random; the long way and the short way must tell the same
// blocks in the same order.
class BlockList : public ProcessSink {
 public:
    BlockList(std::vector<std::uint64_t>& to, bool plain) : to_(to), plain_(plain) {}
    Result<void> add(const AccessBatch& batch) override {
        return cutter_.cut(batch, [&](const BlockBatch& piece) { return add_blocks(piece.blocks); });
    }
    Result<void> finish(const Decoder&) override { return {}; }
    std::optional<unsigned> plain_shift() const override {
        return plain_ ? std::optional<unsigned>(6) : std::nullopt;
    }
    Result<void> add_blocks(std::span<const std::uint64_t> blocks) override {
        to_.insert(to_.end(), blocks.begin(), blocks.end());
        return {};
    }

 private:
    std::vector<std::uint64_t>& to_;
    bool plain_;
    BlockCutter cutter_{64};
};

// Handed over just before it died, and not yet taken when it is found dead.
TEST(record_stream, what_a_process_hands_over_before_it_dies_is_taken_once) {
    auto slots = Slots::create(0);
    ASSERT_TRUE(slots);
    revisit_stream* s = slots->stream();
    pid_t child = fork();
    if (child == 0) {
        std::uint32_t me = revisit_producer_start(s);
        for (int i = 0; i < 2; i++) {
            std::int32_t slot = revisit_slot_open(s, me, 0);
            std::uint64_t* data = revisit_slot_data(s, static_cast<std::uint32_t>(slot));
            std::uint32_t words = 0;
            if (i == 0) {
                for (std::uint64_t word :
                     {REVISIT_RECORD(REVISIT_PROCESS, 0), std::uint64_t(getpid()),
                      std::uint64_t(REVISIT_NO_PARENT), REVISIT_RECORD(REVISIT_DEFINE_BLOCK, 1),
                      std::uint64_t(1), REVISIT_ACCESS(8, 0), std::uint64_t(0x1000)})
                    data[words++] = word;
            }
            data[words++] = REVISIT_BLOCK(1, 1);
            data[words++] = 64;
            revisit_slot_hand_over(s, slot, words);
        }
        _exit(0);
    }
    waitpid(child, nullptr, 0);
    std::vector<std::uint64_t> blocks;
    Consumer consumer(*slots, {}, [&](const StartedProcess&) -> Result<std::unique_ptr<ProcessSink>> {
        return std::make_unique<BlockList>(blocks, false);
    });
    auto first = consumer.step(milliseconds(100));
    ASSERT_TRUE(first && *first);
    Result<void> reaped = consumer.reap();
    ASSERT_TRUE(reaped) << reaped.error().sentence();
    Result<void> finished = consumer.finish();
    ASSERT_TRUE(finished) << finished.error().sentence();
    EXPECT_EQ(blocks.size(), 2u);
}

TEST(record_stream, slots_of_accesses_alone_are_read_to_the_same_blocks) {
    constexpr std::uint32_t kSizes[] = {1, 8, 64, 200, 0};
    auto blocks_of = [&](bool plain, unsigned threads, std::uint64_t& accesses) {
        auto slots = Slots::create(0);
        revisit_stream* s = slots->stream();
        std::uint32_t me = revisit_producer_start(s);
        std::vector<std::uint64_t> blocks;
        DecodeOptions options;
        options.readers = threads;
        Consumer consumer(*slots, options, [&](const StartedProcess&) {
            return Result<std::unique_ptr<ProcessSink>>(std::make_unique<BlockList>(blocks, plain));
        });
        std::mt19937_64 random(5);
        std::uint64_t defined = 0;
        for (int n = 0; n < 60; n++) {
            std::vector<std::uint64_t> words;
            if (n == 0) words = {REVISIT_RECORD(REVISIT_PROCESS, 0), 1, REVISIT_NO_PARENT};
            while (words.size() < 3000) {
                const bool seldom = random() % 3000 == 0;
                if (defined == 0 || seldom) {
                    const std::uint64_t count = 1 + random() % 7;
                    words.push_back(REVISIT_RECORD(REVISIT_DEFINE_BLOCK, count));
                    words.push_back(defined++);
                    for (std::uint64_t i = 0; i < count; i++) {
                        const bool guarded = random() % 5 == 0;
                        words.push_back(REVISIT_ACCESS(kSizes[random() % std::size(kSizes)],
                                                       guarded ? REVISIT_GUARDED : 0));
                        words.push_back(0x1000 + i);
                    }
                    continue;
                }
                if (random() % 4000 == 0)
                    words.insert(words.end(), {REVISIT_RECORD(REVISIT_BULK, 0), 0x2000, random() % 9999,
                                               random() % 5000});
                if (random() % 200 == 0)
                    words.insert(words.end(), {REVISIT_RECORD(REVISIT_SYNC, 1), 0x77});
                // Counts may fall short of the definition: of one access, all are sure to have that.
                words.push_back(REVISIT_BLOCK(random() % defined, 1));
                words.push_back(random() % 4 == 0 ? REVISIT_NO_ACCESS : random() % 100000);
            }
            const auto slot = static_cast<std::uint32_t>(revisit_slot_open(s, me, n % 3));
            std::copy(words.begin(), words.end(), revisit_slot_data(s, slot));
            revisit_slot_hand_over(s, static_cast<std::int32_t>(slot),
                                   static_cast<std::uint32_t>(words.size()));
            if (n % 8 == 7)  // before the slots that may be full are
                while (consumer.step(milliseconds(0)).value()) {
                }
        }
        while (consumer.step(milliseconds(0)).value()) {
        }
        EXPECT_TRUE(consumer.finish());
        accesses = consumer.accesses();
        return blocks;
    };
    std::uint64_t long_accesses = 0, short_accesses = 0;
    const auto expected = blocks_of(false, 1, long_accesses);
    EXPECT_GT(expected.size(), 60000u);
    for (unsigned threads : {1u, 3u}) {
        EXPECT_EQ(blocks_of(true, threads, short_accesses), expected) << threads;
        EXPECT_EQ(short_accesses, long_accesses);
    }
}

}  // namespace
}  // namespace revisit::record
