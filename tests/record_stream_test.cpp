// The stream between a recorded program and the analyzer: order, waiting, and what is left by the dead.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <map>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "record/consume.h"
#include "record/decode.h"
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
    const std::uint32_t guard_at = std::exchange(s->guard_at, 0);  // where there are no such mutexes
    s->head = REVISIT_SLOTS_FULL;
    EXPECT_EQ(revisit_slot_open(s, 1, 0), -1);
    s->guard_at = guard_at;
    waitpid(child, nullptr, 0);
}

// By the shared memory alone: in another PID namespace the analyzer's number is somebody else's.
TEST(record_stream, producer_sees_by_the_guard_that_the_analyzer_was_killed) {
    int told[2];
    ASSERT_EQ(pipe(told), 0);
    pid_t analyzer = fork();
    if (analyzer == 0) {
        auto slots = Slots::create(0);
        const std::string path = slots ? slots->path() : "";
        (void)!write(told[1], path.data(), path.size() + 1);
        pause();
    }
    std::string path(100, '\0');
    ASSERT_GT(read(told[0], path.data(), path.size()), 1);
    int fd = open(path.c_str(), O_RDWR | O_CLOEXEC);
    ASSERT_GE(fd, 0);
    auto* s = static_cast<revisit_stream*>(
        mmap(nullptr, REVISIT_STREAM_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0));
    ASSERT_NE(s, MAP_FAILED);
    ASSERT_TRUE(revisit_stream_valid(s));
    ASSERT_NE(s->guard_at, 0u);
    s->analyzer = static_cast<std::uint32_t>(getpid());
    EXPECT_TRUE(revisit_analyzer_lives(s));
    kill(analyzer, SIGKILL);
    for (int i = 0; i < 1000 && revisit_process_lives(static_cast<std::uint32_t>(analyzer)); i++)
        usleep(1000);  // dead, not yet waited for
    EXPECT_FALSE(revisit_analyzer_lives(s));
    s->head = REVISIT_SLOTS_FULL;
    EXPECT_EQ(revisit_slot_open(s, 1, 0), -1);
    waitpid(analyzer, nullptr, 0);
    munmap(s, REVISIT_STREAM_BYTES);
    for (int file : {fd, told[0], told[1]}) close(file);
}

TEST(record_stream, guards_of_several_streams_are_given_back) {
    for (int i = 0; i < 3; i++) {
        auto first = Slots::create(0), second = Slots::create(0);
        ASSERT_TRUE(first && second);
        EXPECT_TRUE(revisit_analyzer_lives(first->stream()));
        EXPECT_TRUE(revisit_analyzer_lives(second->stream()));
    }
}

// All that becomes of accesses, the long way or by readers.
class BlockList : public ProcessSink {
 public:
    explicit BlockList(std::vector<std::uint64_t>& to) : to_(to) {}
    Result<void> add(const AccessBatch& batch) override {
        return cutter_.cut(batch, [&](const BlockBatch& piece) -> Result<void> {
            to_.insert(to_.end(), piece.blocks.begin(), piece.blocks.end());
            return {};
        });
    }
    Result<void> finish(const Decoder&) override { return {}; }

 private:
    std::vector<std::uint64_t>& to_;
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
        return std::make_unique<BlockList>(blocks);
    });
    auto first = consumer.step(milliseconds(100));
    ASSERT_TRUE(first && *first);
    Result<void> reaped = consumer.reap();
    ASSERT_TRUE(reaped) << reaped.error().sentence();
    Result<void> finished = consumer.finish();
    ASSERT_TRUE(finished) << finished.error().sentence();
    EXPECT_EQ(blocks.size(), 2u);
}

// Starts a process that is killed when it has written these words, and has handed over the first.
pid_t die_after(revisit_stream* s, std::uint64_t parent, std::vector<std::uint64_t> words,
                std::uint32_t handed_over) {
    const pid_t child = fork();
    if (child == 0) {
        const std::uint32_t me = revisit_producer_start(s);
        words.insert(words.begin(),
                     {REVISIT_RECORD(REVISIT_PROCESS, 0), std::uint64_t(getpid()), parent});
        const std::int32_t slot = revisit_slot_open(s, me, 0);
        std::uint64_t* data = revisit_slot_data(s, static_cast<std::uint32_t>(slot));
        for (std::size_t i = 0; i < words.size(); i++) data[i] = words[i];
        if (handed_over != 0) revisit_slot_hand_over(s, slot, handed_over);
        _exit(0);
    }
    waitpid(child, nullptr, 0);
    return child;
}

// A shell's hundred children: each would keep a slot, and all be there at once in the end.
TEST(record_stream, a_process_that_dies_silent_is_finished_when_it_is_found_dead) {
    auto slots = Slots::create(0);
    ASSERT_TRUE(slots);
    revisit_stream* s = slots->stream();
    std::vector<std::uint64_t> blocks;
    Consumer consumer(*slots, {}, [&](const StartedProcess&) -> Result<std::unique_ptr<ProcessSink>> {
        return std::make_unique<BlockList>(blocks);
    });
    const std::vector<std::uint64_t> words{REVISIT_RECORD(REVISIT_DEFINE_BLOCK, 1),
                                           1,
                                           REVISIT_ACCESS(8, 0),
                                           0x1000,
                                           REVISIT_BLOCK(1, 1),
                                           64};
    for (std::size_t died = 1; died <= 3; died++) {
        die_after(s, REVISIT_NO_PARENT, words, 0);
        Result<void> reaped = consumer.reap();
        ASSERT_TRUE(reaped) << reaped.error().sentence();
        EXPECT_EQ(consumer.processes(), died);
        EXPECT_EQ(blocks.size(), died);
        EXPECT_TRUE(slots->openings().empty());
    }
    Result<void> finished = consumer.finish();
    ASSERT_TRUE(finished) << finished.error().sentence();
    EXPECT_EQ(blocks.size(), 3u);
    EXPECT_EQ(consumer.cut_off(), 0u);
}

// A daemon may well end while the results of the others are made.
TEST(record_stream, a_process_that_outlived_the_program_is_counted_though_it_ends_before_its_turn) {
    auto slots = Slots::create(0);
    ASSERT_TRUE(slots);
    revisit_stream* s = slots->stream();
    pid_t outlives = 0;
    struct Kill : BlockList {
        Kill(std::vector<std::uint64_t>& to, pid_t& whom) : BlockList(to), whom_(whom) {}
        Result<void> finish(const Decoder&) override {
            kill(whom_, SIGKILL);
            return {};
        }
        pid_t& whom_;
    };
    std::vector<std::uint64_t> blocks;
    Consumer consumer(*slots, {}, [&](const StartedProcess&) -> Result<std::unique_ptr<ProcessSink>> {
        return std::make_unique<Kill>(blocks, outlives);
    });
    die_after(s, REVISIT_NO_PARENT, {}, 3);
    const std::uint32_t before = slots->producers();
    outlives = fork();
    if (outlives == 0) {
        const std::uint32_t me = revisit_producer_start(s);
        const std::int32_t slot = revisit_slot_open(s, me, 0);
        std::uint64_t* data = revisit_slot_data(s, static_cast<std::uint32_t>(slot));
        data[0] = REVISIT_RECORD(REVISIT_PROCESS, 0);
        data[1] = std::uint64_t(getpid());
        data[2] = REVISIT_NO_PARENT;
        revisit_slot_hand_over(s, slot, 3);
        for (;;) pause();
    }
    while (slots->handed_over() < before + 1) usleep(1000);
    Result<void> finished = consumer.finish();
    ASSERT_TRUE(finished) << finished.error().sentence();
    EXPECT_EQ(consumer.cut_off(), 1u);
    waitpid(outlives, nullptr, 0);
}

// The parent may be over before its child has said whose it is.
TEST(record_stream, what_a_dead_parent_defined_stays_while_a_fork_is_under_way_or_silent) {
    auto slots = Slots::create(0);
    ASSERT_TRUE(slots);
    revisit_stream* s = slots->stream();
    std::vector<std::uint64_t> blocks;
    Consumer consumer(*slots, {}, [&](const StartedProcess&) -> Result<std::unique_ptr<ProcessSink>> {
        return std::make_unique<BlockList>(blocks);
    });
    s->forks = 1;
    die_after(s, REVISIT_NO_PARENT,
              {REVISIT_RECORD(REVISIT_DEFINE_BLOCK, 1), 1, REVISIT_ACCESS(8, 0), 0x1000}, 7);
    ASSERT_TRUE(consumer.step(milliseconds(100)));
    Result<void> reaped = consumer.reap();
    ASSERT_TRUE(reaped) << reaped.error().sentence();
    die_after(s, 1, {REVISIT_BLOCK(1, 1), 64}, 0);
    s->forks = 0;
    reaped = consumer.reap();
    ASSERT_TRUE(reaped) << reaped.error().sentence();
    EXPECT_EQ(blocks.size(), 1u);
    // All children are known now: nothing of the parent's is there for another.
    die_after(s, 1, {REVISIT_BLOCK(1, 1), 64}, 5);
    auto fed = consumer.step(milliseconds(100));
    ASSERT_FALSE(fed);
    EXPECT_NE(fed.error().sentence().find("ended before"), std::string::npos);
}

// A recorder's mistake, or a damaged stream: the range ends before it begins.
TEST(record_stream, modules_stay_where_what_is_unmapped_ends_before_it_begins) {
    DecodeOptions options;
    options.objects = true;
    Decoder decoder(options, [](const AccessBatch&) -> Result<void> { return {}; });
    std::vector<std::uint64_t> words;
    for (const std::uint64_t low : {0x1000, 0x3000, 0x5000})
        words.insert(words.end(), {REVISIT_RECORD(REVISIT_MODULE, 0), low, low + 0x1000, 0});
    words.insert(words.end(), {REVISIT_RECORD(REVISIT_UNLOAD, 0), 0x6000, 0x2000,  //
                               REVISIT_RECORD(REVISIT_DEFINE_BLOCK, 3), 0});
    for (const std::uint64_t at : {0x1010, 0x3010, 0x5010})
        words.insert(words.end(), {REVISIT_ACCESS(8, 0), at});
    SlotView slot;
    slot.words = words;
    Result<void> fed = decoder.feed(slot);
    ASSERT_TRUE(fed) << fed.error().sentence();
    std::vector<std::uint32_t> modules;
    for (const CodePlace& place : decoder.origins().places)
        if (place.module != kNowhere) modules.push_back(place.module);
    EXPECT_EQ(modules, (std::vector<std::uint32_t>{0, 1, 2}));
}

}  // namespace
}  // namespace revisit::record
