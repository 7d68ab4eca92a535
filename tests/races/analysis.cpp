// The analysis side under ThreadSanitizer: producers in threads, the analyzer beside them.
//
// A thread of this process fills slots as a recorded program does, another takes and decodes them, and
// the engine and its attribution have threads of their own, and where blocks are all that matters
// several readers take slots side by side: all that runs at the same time in `revisit profile`, small
// enough to be built with the sanitizer in a minute. Every count is known.
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

#include "engines/block_workers.h"
#include "engines/cache_bank.h"
#include "engines/line_use.h"
#include "record/consume.h"
#include "record/decode.h"
#include "record/slots.h"
#include "revisit/blocks.h"
#include "revisit/engine.h"

namespace revisit {
Result<std::unique_ptr<Engine>> make_exact(const EngineOptions& options);
}

using namespace revisit;
using namespace revisit::record;

namespace {

constexpr std::uint32_t kThreads = 3, kSlots = 60, kAccesses = 3;

void expect(bool good, const char* what) {
    if (good) return;
    std::fprintf(stderr, "%s\n", what);
    std::exit(1);
}

// Block 5 has three accesses of one site each; every slot is full of it.
void produce(revisit_stream* s, std::uint32_t producer, std::uint32_t thread) {
    for (std::uint32_t i = 0; i < kSlots; i++) {
        std::int32_t slot = revisit_slot_open(s, producer, thread);
        expect(slot >= 0, "no slot");
        std::uint64_t* to = revisit_slot_data(s, static_cast<std::uint32_t>(slot));
        std::uint32_t n = 0;
        if (i == 0) {
            to[n++] = REVISIT_RECORD(REVISIT_DEFINE_BLOCK, kAccesses);
            to[n++] = 5 + thread;
            for (std::uint32_t k = 0; k < kAccesses; k++) {
                to[n++] = REVISIT_ACCESS(8, k == 2 ? REVISIT_WRITE : 0);
                to[n++] = 0x1000 + 4 * k;
            }
        }
        while (n + 1 + kAccesses <= REVISIT_SLOT_WORDS - 100) {
            if (n % 5 == 0 && i > 0) {  // a call, which has returned by the next one
                to[n] = REVISIT_RECORD(REVISIT_ENTER, 0x2000 + n % 3);
                to[n + 1] = 0x700000;
                n += 2;
            }
            to[n] = REVISIT_BLOCK(5 + thread, kAccesses);
            for (std::uint32_t k = 0; k < kAccesses; k++)
                to[n + 1 + k] = 0x100000 + (n * 64 + k * 4096 + thread * 512) % (1u << 20);
            n += 1 + kAccesses;
        }
        revisit_slot_hand_over(s, slot, n);
    }
}

// Caches, and line use of one of them, in four parts.
struct Caches {
    const CacheSpec cache = *CacheSpec::parse("64K:8:64");
    CacheParts parts{{cache}, 64, 4, cache};
    LineUseParts line_use{cache, 4};
};

std::atomic<std::uint64_t> seen;

// An engine, caches, and one that only looks at the blocks.
std::vector<BlockWorkers::Work> counting(Engine& engine, Caches& caches) {
    std::vector<BlockWorkers::Work> all;
    for (std::size_t part = 0; part < caches.parts.count(); part++)
        all.emplace_back([&caches, part](const BlockRoom& room) -> Result<void> {
            caches.parts.access(part, room.lines);
            caches.line_use.add(part, room.lines);
            return {};
        });
    all.emplace_back([&](const BlockBatch& batch) { return engine.add(batch); });
    all.emplace_back([](const BlockBatch& batch) -> Result<void> {
        std::uint64_t sum = 0;
        for (const std::uint64_t block : batch.blocks) sum ^= block;
        seen = sum;
        return {};
    });
    return all;
}

void expect_caches(Caches& caches, Profile& profile) {
    caches.parts.fill(profile);
    caches.line_use.fill(profile);
    expect(profile.caches.size() == 1 && profile.caches[0].accesses == profile.accesses,
           "caches did not see all accesses");
    expect(profile.line_use && profile.line_use->use.fetches == profile.caches[0].misses,
           "what was fetched is not what missed");
}

void run(const EngineOptions& options, bool labels) {
    Result<Slots> slots = Slots::create(0);
    expect(slots.has_value(), "no shared memory");
    revisit_stream* s = slots->stream();
    std::uint32_t me = revisit_producer_start(s);
    Result<std::unique_ptr<Engine>> engine = make_exact(options);
    expect(engine.has_value(), "no engine");
    Caches caches;
    BlockWorkers workers(counting(**engine, caches), true, {.lines = caches.parts.plan()});
    BlockCutter cutter(64);
    cutter.keep_parts();
    DecodeOptions decode;
    decode.labels = decode.flags = decode.threads = labels;
    decode.cut = 64;
    std::uint64_t handed_on = 0;
    Decoder decoder(decode, [&](const AccessBatch& batch) {
        handed_on += batch.count();
        return cutter.cut(batch, [&](const BlockBatch& piece) { return workers.add(piece); });
    });
    std::vector<std::thread> threads;
    for (std::uint32_t t = 0; t < kThreads; t++) threads.emplace_back(produce, s, me, t);
    for (std::uint32_t taken = 0; taken < kThreads * kSlots;) {
        auto view = slots->take(std::chrono::milliseconds(100));
        if (!view) continue;
        expect(decoder.feed(*view).has_value(), "not decoded");
        slots->give_back(*view);
        taken++;
    }
    for (std::thread& thread : threads) thread.join();
    expect(decoder.finish().has_value(), "not finished");
    expect(workers.finish().has_value(), "not counted");
    Result<Profile> profile = (*engine)->finish();
    expect(profile.has_value(), "no profile");
    expect(slots->words_handed_over() == slots->words_taken(), "words were lost");
    expect(profile->accesses == static_cast<double>(handed_on), "accesses were lost");
    expect(profile->reuse.total() == profile->accesses, "the histogram does not add up");
    expect_caches(caches, *profile);
    double by_site = 0;
    for (const Site& site : profile->sites) by_site += site.accesses;
    expect(!options.sites || by_site == profile->accesses, "the sites do not add up");
}

std::uint64_t blocks_of_readers = 0;

// Blocks alone, or with labels, into an engine that has a thread.
class BlocksSink : public ProcessSink {
 public:
    BlocksSink(BlockWorkers& workers, const LinePlan& lines, std::uint64_t& handed_on)
        : workers_(workers), wanted_{6, false, lines}, handed_on_(handed_on) {
        cutter_.keep_parts();
    }
    Result<void> add(const AccessBatch& batch) override {
        handed_on_ += batch.count();
        return cutter_.cut(batch, [&](const BlockBatch& piece) { return workers_.add(piece); });
    }
    std::optional<BlocksWanted> blocks_wanted() const override { return wanted_; }
    BlockRoom take_room() override { return workers_.take(); }
    Result<void> add_rooms(std::span<BlockRoom> rooms) override {
        for (const BlockRoom& room : rooms) {
            handed_on_ += room.count;
            blocks_of_readers += room.count;
        }
        return workers_.hand_over(rooms);
    }
    Result<void> finish(const Decoder&) override { return {}; }

 private:
    BlockWorkers& workers_;
    BlocksWanted wanted_;
    std::uint64_t& handed_on_;
    BlockCutter cutter_{64};
};

void run_readers(bool labels) {
    Result<Slots> slots = Slots::create(0);
    expect(slots.has_value(), "no shared memory");
    revisit_stream* s = slots->stream();
    std::uint32_t me = revisit_producer_start(s);
    EngineOptions options;
    options.threads = 2;
    options.sites = options.pairs = labels;
    Result<std::unique_ptr<Engine>> engine = make_exact(options);
    expect(engine.has_value(), "no engine");
    Caches caches;
    BlockWorkers workers(counting(**engine, caches), true, {.lines = caches.parts.plan()});
    std::uint64_t handed_on = 0;
    DecodeOptions decode;
    decode.threads = false;
    decode.labels = decode.flags = decode.contexts = decode.objects = labels;
    decode.readers = 3;
    Consumer consumer(*slots, decode,
                      [&](const StartedProcess&) -> Result<std::unique_ptr<ProcessSink>> {
                          return std::make_unique<BlocksSink>(workers, caches.parts.plan(), handed_on);
                      });
    std::int32_t first = revisit_slot_open(s, me, 0);
    expect(first >= 0, "no slot");
    std::uint64_t* to = revisit_slot_data(s, static_cast<std::uint32_t>(first));
    to[0] = REVISIT_RECORD(REVISIT_PROCESS, 1);
    to[1] = static_cast<std::uint64_t>(getpid());
    to[2] = REVISIT_NO_PARENT;
    to[3] = 'p';
    revisit_slot_hand_over(s, first, 4);
    std::vector<std::thread> threads;
    std::atomic<std::uint32_t> busy = kThreads;
    for (std::uint32_t t = 0; t < kThreads; t++)
        threads.emplace_back([&, t] {
            produce(s, me, t);
            busy--;
        });
    while (busy > 0) expect(consumer.step(std::chrono::milliseconds(10)).has_value(), "not consumed");
    for (std::thread& thread : threads) thread.join();
    expect(consumer.finish().has_value(), "not finished");
    expect(workers.finish().has_value(), "not counted");
    Result<Profile> profile = (*engine)->finish();
    expect(profile.has_value(), "no profile");
    expect(slots->words_handed_over() == slots->words_taken(), "words were lost");
    expect(blocks_of_readers > 0, "no slot was read by the readers");
    expect(consumer.accesses() == handed_on, "accesses were lost on the way");
    expect(profile->accesses == static_cast<double>(handed_on), "accesses were lost");
    expect_caches(caches, *profile);
}

}  // namespace

int main() {
    EngineOptions options;
    options.threads = 2;
    run(options, false);
    run_readers(false);
    blocks_of_readers = 0;
    run_readers(true);
    options.sites = options.pairs = true;
    run(options, true);
    options.model = StackModel::private_;
    run(options, true);
    std::puts("no race seen, nothing lost");
}
