// The join of sources and engines.
//
// Problem. The engines count an access in 10 to 30 ns on a thread. One thread that reads, decodes, cuts
// and copies for all of them spends 3 to 10 ns per access, and sixteen threads wait for it.
// Idea. What the source offers decides who does that work:
//
//     source offers                    engine takes ranges     engine takes blocks
//     ranges (u64, records, arrays)    reads where it counts   one thread: reads, cuts, counts
//     chunks (own format, text, …)     -                       several: some decode and cut ahead
//     a stream (pipes, packed files)   -                       one thread: reads, cuts, counts
//
// Decoding ahead: chunk k belongs to slot k mod n. A free thread takes the next chunk once its slot has
// been counted, decodes and cuts it there; the calling thread takes the slots in order. So the order is
// that of the trace and memory is bounded by n chunks.
// Cost. On one thread 1 ns per address of a plain file beyond what the engine takes for an array;
// docs/benchmarks.md has what `make bench-commands` measured.
#include "revisit/analyze.h"

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <thread>

#include "core/parallel.h"
#include "core/try.h"
#include "engines/beside.h"
#include "engines/ranges.h"
#include "revisit/blocks.h"

namespace revisit {
namespace {

// Arrays that lie in memory.
class MemoryRanges final : public AccessRanges {
 public:
    explicit MemoryRanges(const AccessBatch& all) : all_(all) {}
    std::uint64_t count() const override { return all_.count(); }
    Result<AccessBatch> read(std::uint64_t first, std::size_t count, AccessColumns&) const override {
        auto of = [&](auto column) {
            return column.empty() ? column : column.subspan(static_cast<std::size_t>(first), count);
        };
        return AccessBatch{of(all_.addresses), of(all_.sites), of(all_.sizes), of(all_.threads),
                           of(all_.flags)};
    }

 private:
    AccessBatch all_;
};

// Ranges as chunks.
class ChunkedRanges final : public AccessChunks {
 public:
    explicit ChunkedRanges(const AccessRanges& ranges) : ranges_(ranges) {}
    std::size_t count() const override {
        return static_cast<std::size_t>((ranges_.count() + kChunk - 1) / kChunk);
    }
    Result<AccessBatch> decode(std::size_t chunk, AccessColumns& into) const override {
        const std::uint64_t first = std::uint64_t{chunk} * kChunk;
        return ranges_.read(first, std::min<std::uint64_t>(kChunk, ranges_.count() - first), into);
    }

 private:
    static constexpr std::size_t kChunk = std::size_t{1} << 16;
    const AccessRanges& ranges_;
};

// A chunk on its way to the engine.
struct Slot {
    AccessColumns columns;
    Result<AccessBatch> accesses;
    BlockColumns blocks;
    std::optional<BlockBatch> cut;  // unless there are too many blocks to keep
    bool filled = false;
};

class ChunkPipeline {
 public:
    // `cuts`: to blocks of that many bytes, 0 = not at all.
    ChunkPipeline(const AccessChunks& chunks, std::uint64_t cuts, unsigned threads)
        : chunks_(chunks), cuts_(cuts), slots_(2 * threads + 2) {
        for (unsigned i = 0; i < threads; ++i) threads_.emplace_back([this] { decode_ahead(); });
    }
    ~ChunkPipeline() {
        std::lock_guard lock(guard_);
        stopping_ = true;
        changed_.notify_all();
    }
    ChunkPipeline(const ChunkPipeline&) = delete;

    // Calls use(Slot&) -> Result<void> for all chunks, in order.
    template <class Use>
    Result<void> each(Use use) {
        for (; taken_ < chunks_.count();) {
            Slot& slot = slots_[taken_ % slots_.size()];
            {
                std::unique_lock lock(guard_);
                changed_.wait(lock, [&] { return slot.filled; });
            }
            TRY(use(slot));
            std::lock_guard lock(guard_);
            slot.filled = false;
            ++taken_;
            changed_.notify_all();
        }
        return {};
    }

 private:
    void decode_ahead() {
        BlockCutter cutter(std::max<std::uint64_t>(1, cuts_));
        for (;;) {
            std::size_t mine;
            {
                std::unique_lock lock(guard_);
                mine = next_++;
                if (mine >= chunks_.count()) return;
                changed_.wait(lock, [&] { return stopping_ || mine < taken_ + slots_.size(); });
                if (stopping_) return;
            }
            Slot& slot = slots_[mine % slots_.size()];
            fill(slot, mine, cutter);
            std::lock_guard lock(guard_);
            slot.filled = true;
            changed_.notify_all();
        }
    }

    void fill(Slot& slot, std::size_t chunk, BlockCutter& cutter) const {
        try {
            slot.cut.reset();
            slot.accesses = chunks_.decode(chunk, slot.columns);
            if (!slot.accesses || cuts_ == 0) return;
            if (auto whole = check(*slot.accesses); !whole) {
                slot.accesses = unexpected(whole.error());
                return;
            }
            if (cuts_ == 1) {
                slot.cut = cutter.as_they_are(*slot.accesses);
                return;
            }
            slot.blocks.clear();
            const std::size_t most = 2 * slot.accesses->count() + kManyBlocks;
            const auto done = cutter.cut(*slot.accesses, [&](const BlockBatch& piece) -> Result<void> {
                if (slot.blocks.blocks.size() + piece.count() > most) return fail("too many");
                slot.blocks.append(piece);
                return {};
            });
            if (done) slot.cut = slot.blocks.batch();
        } catch (const std::bad_alloc&) {
            slot.accesses = fail(ErrorCode::no_memory, "not enough memory to decode the trace");
        }
    }

    // An access of gigabytes has millions of blocks: those are cut where they are counted.
    static constexpr std::size_t kManyBlocks = std::size_t{1} << 18;

    const AccessChunks& chunks_;
    const std::uint64_t cuts_;
    std::vector<Slot> slots_;
    std::mutex guard_;
    std::condition_variable changed_;
    std::size_t next_ = 0, taken_ = 0;
    bool stopping_ = false;
    std::vector<std::jthread> threads_;  // last: they stop before the rest goes
};

// One analysis on its way.
class Join {
 public:
    Join(Engine& engine, const AnalyzeOptions& options, Beside beside)
        : engine_(engine),
          options_(options),
          beside_(std::move(beside)),
          placement_(options.cores),
          cutter_(options.engine.granularity) {
        if (options.engine.sharing) cutter_.keep_parts();
    }

    Result<void> add(const AccessBatch& threads) {
        if (threads.count() == 0) return {};
        const AccessBatch batch = placement_.apply(threads);
        TRY(cutter_.cut(batch, [&](const BlockBatch& piece) { return engine_.add(piece); }));
        return seen(batch);
    }

    Result<void> add_ranges(const AccessRanges& ranges) {
        if (!sees_accesses() && engine_.takes_ranges())
            return engine_.add_ranges(ranges, options_.progress);
        if (threads() > 1) return add_chunks(ChunkedRanges(ranges));
        total_ = ranges.count();
        AccessColumns columns;
        for (std::uint64_t at = 0; at < total_;) {
            const std::size_t count = std::min<std::uint64_t>(kRangeAtOnce, total_ - at);
            TRY(add(TRY(ranges.read(at, count, columns))));
            at += count;
        }
        return {};
    }

    Result<void> add_chunks(const AccessChunks& chunks) {
        if (threads() == 1) {
            AccessColumns columns;
            for (std::size_t i = 0; i < chunks.count(); ++i) {
                TRY(add(TRY(chunks.decode(i, columns))));
                progress(i + 1, chunks.count());
            }
            return {};
        }
        // Cut ahead only what nobody wants to see whole, or in parts.
        const bool cuts_ahead = !sees_accesses() && !options_.engine.sharing;
        ChunkPipeline pipeline(chunks, cuts_ahead ? options_.engine.granularity : 0, threads());
        std::size_t done = 0;
        return pipeline.each([&](Slot& slot) -> Result<void> {
            const AccessBatch batch = TRY(slot.accesses);
            progress(++done, chunks.count());
            if (!slot.cut || batch.count() == 0) return add(batch);
            accesses_ += batch.count();
            return engine_.add(*slot.cut);
        });
    }

    Result<void> add_stream(TraceReader& trace) {
        for (;;) {
            const AccessBatch batch = TRY(trace.next());
            if (batch.count() == 0) return {};
            TRY(add(batch));
            if (!options_.progress) continue;
            // How many there will be is a guess from the bytes so far.
            const double read = static_cast<double>(trace.bytes_read());
            const double share = read > 0 ? static_cast<double>(trace.bytes_total()) / read : 0;
            options_.progress(accesses_,
                              static_cast<std::uint64_t>(share * static_cast<double>(accesses_)));
        }
    }

    bool sees_accesses() const { return options_.also || !beside_.empty() || !placement_.empty(); }

    Result<Profile> finish() {
        Profile profile = TRY(engine_.finish());
        TRY(beside_.fill(profile));
        return profile;
    }

 private:
    unsigned threads() const { return thread_count(options_.engine.threads); }
    Result<void> seen(const AccessBatch& batch) {
        if (options_.also) TRY(options_.also(batch));
        TRY(beside_.add(batch));
        accesses_ += batch.count();
        if (options_.progress && total_ != 0) options_.progress(accesses_, total_);
        return {};
    }
    // How many accesses all chunks have is a guess from those so far.
    void progress(std::size_t done, std::size_t chunks) const {
        if (options_.progress) options_.progress(accesses_, accesses_ / done * chunks);
    }

    Engine& engine_;
    const AnalyzeOptions& options_;
    Beside beside_;
    Placement placement_;
    BlockCutter cutter_;
    std::uint64_t accesses_ = 0, total_ = 0;
};

}  // namespace

Result<Profile> analyze(TraceReader& trace, const AnalyzeOptions& options) {
    const auto engine = TRY(make_engine(options.method, options.engine));
    try {
        Join join(*engine, options, TRY(Beside::create(options)));
        if (const AccessRanges* ranges = trace.ranges())
            TRY(join.add_ranges(*ranges));
        else if (const AccessChunks* chunks = trace.chunks())
            TRY(join.add_chunks(*chunks));
        else
            TRY(join.add_stream(trace));
        return join.finish();
    } catch (const std::bad_alloc&) {
        return fail(ErrorCode::no_memory, "not enough memory to read the trace");
    }
}

Result<Profile> analyze(const AccessBatch& accesses, const AnalyzeOptions& options) {
    TRY(check(accesses));
    const auto engine = TRY(make_engine(options.method, options.engine));
    Join join(*engine, options, TRY(Beside::create(options)));
    const MemoryRanges ranges(accesses);
    // At granularity 1 blocks are the addresses themselves.
    if (engine->takes_ranges() && !join.sees_accesses() && options.engine.granularity > 1)
        TRY(join.add_ranges(ranges));
    else
        TRY(join.add(accesses));
    return join.finish();
}

Result<Profile> analyze(std::span<const std::uint64_t> addresses, std::string_view method,
                        const EngineOptions& options) {
    AnalyzeOptions how;
    how.method = method;
    how.engine = options;
    return analyze(AccessBatch{addresses, {}, {}, {}, {}}, how);
}

}  // namespace revisit
