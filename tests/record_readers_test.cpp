// Slots read by several readers against the decoder alone: the same blocks in the same order, with the
// same labels, and the same tables of where they come from.
#include <gtest/gtest.h>

#include <optional>
#include <random>
#include <vector>

#include "record/consume.h"
#include "record/slots.h"
#include "record/stream.h"
#include "revisit/blocks.h"

namespace revisit::record {
namespace {

using std::chrono::milliseconds;
using Words = std::vector<std::uint64_t>;

struct Seen {
    std::vector<std::uint64_t> blocks;
    std::vector<std::uint32_t> sites;
    std::vector<std::uint16_t> parts;
    std::vector<std::uint8_t> flags;
    std::size_t by_readers = 0;  // blocks
    std::uint64_t accesses = 0;
    Origins origins;

    void add(const BlockBatch& batch) {
        auto extend = [](auto& to, auto from) { to.insert(to.end(), from.begin(), from.end()); };
        extend(blocks, batch.blocks);
        extend(sites, batch.sites);
        extend(parts, batch.parts);
        extend(flags, batch.flags);
    }
};

class SeenSink : public ProcessSink {
 public:
    SeenSink(Seen& seen, std::optional<BlocksWanted> wanted) : seen_(seen), wanted_(wanted) {
        cutter_.keep_parts();
    }
    Result<void> add(const AccessBatch& batch) override {
        return cutter_.cut(batch, [&](const BlockBatch& piece) -> Result<void> {
            seen_.add(piece);
            return {};
        });
    }
    std::optional<BlocksWanted> blocks_wanted() const override { return wanted_; }
    Result<void> add_rooms(std::span<BlockRoom> rooms) override {
        for (const BlockRoom& room : rooms) {
            seen_.add(room.batch());
            seen_.by_readers += room.count;
        }
        return {};
    }
    Result<void> finish(const Decoder& process) override {
        seen_.origins = process.origins();
        return {};
    }

 private:
    Seen& seen_;
    std::optional<BlocksWanted> wanted_;
    BlockCutter cutter_{64};
};

// A program of three threads that define, call, return, jump out of calls, allocate and access.
class Program {
 public:
    struct Habits {
        unsigned sites = 12;            // that call
        unsigned depth = 6;             // of calls
        unsigned seldom = 6000;         // records per definition or allocation
        std::uint64_t reach = 1 << 20;  // of addresses
        bool derives = true;            // else each access has its word; the accesses are the same
    };
    Program(std::uint64_t seed, Habits habits) : random_(seed), habits_(habits) {}

    Words slot(std::uint32_t thread, std::size_t words) {
        Words out;
        if (!begun_) out = {REVISIT_RECORD(REVISIT_PROCESS, 0), 1, REVISIT_NO_PARENT};
        begun_ = true;
        spelled_out_ = 0;
        while (out.size() < words + spelled_out_) record(thread, out);
        return out;
    }

 private:
    std::uint64_t up_to(std::uint64_t end) { return random_() % end; }
    bool one_in(std::uint64_t many) { return up_to(many) == 0; }
    static std::uint64_t stack_of(std::uint32_t thread) { return 0x7f0000000000 + thread * 0x100000; }
    static void put(Words& to, std::initializer_list<std::uint64_t> words) {
        to.insert(to.end(), words);
    }

    void define_block(Words& out) {
        constexpr std::uint32_t kSizes[] = {1, 8, 8, 8, 64, 200, 0};
        const std::uint64_t count = 1 + up_to(7);
        put(out, {REVISIT_RECORD(REVISIT_DEFINE_BLOCK, count), blocks_.size()});
        Layout layout;
        std::vector<std::uint64_t> certain;  // words that are addresses of accesses that are made
        for (std::uint64_t i = 0; i < count; i++) {
            const bool is_derived = !certain.empty() && one_in(3);
            const bool by_site = one_in(2) || is_derived, guarded = one_in(5) && !is_derived;
            std::uint64_t what =
                REVISIT_ACCESS(kSizes[up_to(std::size(kSizes))], (guarded ? REVISIT_GUARDED : 0) |
                                                                     (one_in(3) ? REVISIT_WRITE : 0) |
                                                                     (by_site ? REVISIT_BY_SITE : 0));
            std::uint64_t where = by_site ? 100 + up_to(50) : 0x1000 + up_to(50);
            if (is_derived) {
                const auto offset = static_cast<std::int32_t>(up_to(5000)) - 2500;
                layout.accesses.push_back({certain[up_to(certain.size())], offset});
                if (habits_.derives) {
                    what |= REVISIT_DERIVED_FROM(layout.accesses.back().first);
                    where |= REVISIT_DERIVED_BY(offset);
                }
            } else {
                if (!guarded) certain.push_back(layout.words);
                layout.accesses.push_back({layout.words++, 0});
            }
            put(out, {what, where});
        }
        blocks_.push_back(layout);
    }

    void record(std::uint32_t thread, Words& out) {
        std::vector<std::uint64_t>& calls = calls_[thread];
        if (blocks_.size() < 6 || one_in(habits_.seldom)) define_block(out);
        if (one_in(habits_.seldom))
            put(out,
                {REVISIT_RECORD(REVISIT_STACK, thread), stack_of(thread), stack_of(thread) + 0x10000});
        if (one_in(habits_.seldom / 3)) {
            if (one_in(2))
                put(out,
                    {REVISIT_RECORD(REVISIT_ALLOC_SITE, up_to(5)), up_to(64) << 13, 1 + up_to(40000)});
            else
                put(out, {REVISIT_RECORD(REVISIT_FREE, up_to(64) << 13)});
        }
        if (one_in(habits_.seldom))
            put(out, {REVISIT_RECORD(REVISIT_ALLOC, 0), up_to(16) << 16, std::uint64_t{1} << 16});
        if (one_in(habits_.seldom / 10)) {
            const std::uint64_t by_site = one_in(2) ? REVISIT_BY_SITE : 0;
            put(out, {REVISIT_RECORD(REVISIT_BULK, by_site), by_site != 0 ? 60ull : 0x2000ull,
                      up_to(habits_.reach), up_to(900)});
        }
        if (one_in(200)) put(out, {REVISIT_RECORD(REVISIT_SYNC, 1), 0x77});
        if (one_in(300)) put(out, {REVISIT_RECORD(REVISIT_THREAD, thread)});
        if (one_in(8) && calls.size() < habits_.depth) {
            calls.push_back(stack_of(thread) + 0xf000 - 0x100 * calls.size());
            const std::uint64_t site = up_to(habits_.sites);
            put(out, {one_in(2) ? REVISIT_RECORD(REVISIT_ENTER_SITE, site)
                                : REVISIT_RECORD(REVISIT_ENTER, 0x3000 + site),
                      calls.back()});
        }
        if (one_in(8) && !calls.empty()) {
            if (one_in(4)) calls.resize(1 + up_to(calls.size()));  // jumped out of
            if (!one_in(9)) put(out, {REVISIT_RECORD(REVISIT_LEAVE, calls.back())});
            calls.pop_back();
        }
        const std::uint64_t block = up_to(blocks_.size());
        const Layout& layout = blocks_[block];
        Words told(one_in(9) ? up_to(layout.words) : layout.words);
        for (std::uint64_t& word : told)
            word = one_in(9)     ? REVISIT_NO_ACCESS
                   : one_in(5)   ? stack_of(thread) + 0xe000 + up_to(0x1000)
                   : one_in(400) ? ~up_to(100)
                                 : up_to(habits_.reach);
        if (!habits_.derives) {
            Words all;
            for (const auto& [word, offset] : layout.accesses) {
                if (word >= told.size()) break;
                all.push_back(told[word] + static_cast<std::uint64_t>(std::int64_t{offset}));
            }
            spelled_out_ += all.size() - told.size();
            told = std::move(all);
        }
        put(out, {REVISIT_BLOCK(block, told.size())});
        out.insert(out.end(), told.begin(), told.end());
    }

    struct Layout {
        std::uint64_t words = 0;
        std::vector<std::pair<std::uint64_t, std::int32_t>> accesses;  // word, and how far from it
    };

    std::mt19937_64 random_;
    Habits habits_;
    bool begun_ = false;
    std::size_t spelled_out_ = 0;  // words of this slot that it would not have with derived accesses
    std::vector<Layout> blocks_;
    std::vector<std::uint64_t> calls_[3];
};

struct Reading {
    DecodeOptions decode;
    std::optional<BlocksWanted> wanted;
    int slots = 120;
    std::size_t words = 3000;
};

Seen seen_of(Program program, const Reading& how) {
    Seen seen;
    auto slots = Slots::create(0);
    revisit_stream* s = slots->stream();
    const std::uint32_t me = revisit_producer_start(s);
    Consumer consumer(*slots, how.decode, [&](const StartedProcess&) {
        return Result<std::unique_ptr<ProcessSink>>(std::make_unique<SeenSink>(seen, how.wanted));
    });
    auto read_all = [&] {
        for (;;) {
            const Result<bool> more = consumer.step(milliseconds(0));
            if (!more) ADD_FAILURE() << more.error().sentence();
            if (!more || !*more) return;
        }
    };
    for (int n = 0; n < how.slots; n++) {
        const std::uint32_t thread = n % 7 % 3;
        const Words words = program.slot(thread, how.words);
        const auto slot = static_cast<std::uint32_t>(revisit_slot_open(s, me, thread));
        std::copy(words.begin(), words.end(), revisit_slot_data(s, slot));
        revisit_slot_hand_over(s, static_cast<std::int32_t>(slot),
                               static_cast<std::uint32_t>(words.size()));
        if (n % 8 == 7) read_all();  // before the slots that may be full are
    }
    read_all();
    EXPECT_TRUE(consumer.finish());
    seen.accesses = consumer.accesses();
    return seen;
}

void expect_same(const Seen& one, const Seen& other, bool labels, bool parts) {
    EXPECT_EQ(one.blocks, other.blocks);
    EXPECT_EQ(one.accesses, other.accesses);
    if (labels) {
        EXPECT_EQ(one.sites, other.sites);
        EXPECT_EQ(one.flags, other.flags);
        EXPECT_TRUE(one.origins == other.origins);
        EXPECT_EQ(one.origins.labels, other.origins.labels);
    }
    if (parts) EXPECT_EQ(one.parts, other.parts);
}

TEST(record_readers, blocks_alone_are_the_decoders) {
    const Program program(5, {});
    Reading how;
    how.decode.labels = how.decode.flags = how.decode.threads = false;
    const Seen expected = seen_of(program, how);
    EXPECT_GT(expected.blocks.size(), 200000u);
    how.wanted = BlocksWanted{6, false};
    for (unsigned readers : {1u, 3u, 8u}) {
        how.decode.readers = readers;
        const Seen seen = seen_of(program, how);
        expect_same(seen, expected, false, false);
        EXPECT_GT(seen.by_readers, seen.blocks.size() / 10);
    }
}

TEST(record_readers, labels_and_tables_are_the_decoders) {
    std::uint64_t seed = 7;
    for (const bool contexts : {false, true})
        for (const bool objects : {false, true})
            for (const std::uint64_t cut : {0, 64}) {
                SCOPED_TRACE(::testing::Message() << contexts << objects << cut);
                Reading how;
                how.decode.contexts = contexts;
                how.decode.objects = objects;
                how.decode.threads = false;
                how.decode.cut = cut;
                how.slots = 400;
                const Program program(seed++,
                                      {.sites = 2, .depth = 1, .seldom = 60000, .reach = 1 << 18});
                const Seen expected = seen_of(program, how);
                how.wanted = BlocksWanted{6, true};
                for (unsigned readers : {1u, 3u, 8u}) {
                    how.decode.readers = readers;
                    const Seen seen = seen_of(program, how);
                    expect_same(seen, expected, true, cut == 0);
                    EXPECT_GT(seen.by_readers, seen.blocks.size() / 10);
                }
            }
}

// What a definition tells and what words tell are the same accesses, also where a block is cut short.
TEST(record_readers, derived_accesses_are_those_that_are_spelled_out) {
    for (const bool labels : {false, true})
        for (const std::uint64_t cut : {0, 64}) {
            SCOPED_TRACE(::testing::Message() << labels << cut);
            Reading how;
            how.decode.labels = how.decode.flags = how.decode.objects = labels;
            how.decode.threads = false;
            how.decode.cut = cut;
            const Seen spelled_out = seen_of(Program(13, {.seldom = 20000, .derives = false}), how);
            const Program derives(13, {.seldom = 20000});
            expect_same(seen_of(derives, how), spelled_out, labels, cut == 0);
            how.wanted = BlocksWanted{6, labels};
            how.decode.readers = 3;
            expect_same(seen_of(derives, how), spelled_out, labels, labels && cut == 0);
        }
}

// So many call paths that only frequent ones are told apart: what is frequent depends on the order of
// accesses, and must not on who read them.
TEST(record_readers, frequent_paths_are_the_decoders) {
    Reading how;
    how.decode.contexts = how.decode.objects = true;
    how.decode.threads = false;
    how.slots = 200;
    how.words = 8000;
    const Program program(11, {.sites = 60, .seldom = 200000, .reach = 1 << 14});
    const Seen expected = seen_of(program, how);
    EXPECT_GT(expected.origins.labels.size(), 32768u);
    how.wanted = BlocksWanted{6, true};
    how.decode.readers = 3;
    expect_same(seen_of(program, how), expected, true, true);
}

}  // namespace
}  // namespace revisit::record
