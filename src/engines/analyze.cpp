// The join of sources with what counts them.
//
// Problem. The engines count an access in 10 to 30 ns on a thread. One thread that reads, decodes, cuts
// and copies for all of them spends 3 to 10 ns per access, and sixteen threads wait for it.
// Idea. What the source offers decides who does that work:
//
//     source offers                    engine takes them           engine takes blocks
//     ranges (u64, records, arrays)    reads where it counts       one thread: reads, cuts, counts
//     chunks (own format, text, …)     decodes where it counts     several: some decode ahead
//     a stream (pipes)                 -                           one thread: reads, cuts, counts
//
// Decoding ahead: chunk_pipeline.h. Columns that the engine makes no use of are not decoded.
// Cost. On one thread 1 ns per address of a plain file beyond what the engine takes for an array;
// docs/benchmarks.md has what `make bench-commands` measured.
#include "revisit/analyze.h"

#include <algorithm>

#include "core/parallel.h"
#include "core/try.h"
#include "engines/chunk_pipeline.h"
#include "engines/pass.h"
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

// A source on its way through a pass.
class Join {
 public:
    explicit Join(Pass& pass) : pass_(pass), options_(pass.options()) {}

    Result<void> add(TraceReader& trace) {
        TRY(pass_.is_open());
        if (const AccessRanges* ranges = trace.ranges()) return add_ranges(*ranges);
        if (const AccessChunks* chunks = trace.chunks()) return add_chunks(*chunks);
        return add_stream(trace);
    }

    Result<void> add_ranges(const AccessRanges& ranges) {
        if (pass_.is_engine_alone() && pass_.engine().takes_ranges())
            return pass_.engine().add_ranges(ranges, options_.progress);
        if (threads() > 1 || pass_.engine().takes_chunks()) return add_chunks(ChunkedRanges(ranges));
        total_ = ranges.count();
        AccessColumns columns = columns_wanted();
        for (std::uint64_t at = 0; at < total_;) {
            const std::size_t count = std::min<std::uint64_t>(kRangeAtOnce, total_ - at);
            columns.is_cut = false;
            const AccessBatch batch = TRY(ranges.read(at, count, columns));
            TRY(add(batch, columns.is_cut));
            at += count;
        }
        return {};
    }

    Result<void> add_chunks(const AccessChunks& chunks) {
        if (pass_.is_engine_alone() && pass_.engine().takes_chunks())
            return pass_.engine().add_chunks(chunks, options_.progress);
        if (threads() == 1) {
            AccessColumns columns = columns_wanted();
            for (std::size_t i = 0; i < chunks.count(); ++i) {
                columns.is_cut = false;
                const AccessBatch batch = TRY(chunks.decode(i, columns));
                TRY(add(batch, columns.is_cut));
                progress(i + 1, chunks.count());
            }
            return {};
        }
        // Cut ahead only what nobody wants to see whole.
        ChunkPipeline pipeline(chunks, 0, chunks.count(), wanted(),
                               pass_.is_engine_alone() ? options_.engine.granularity : 0, threads(),
                               options_.engine.sharing);
        std::size_t done = 0;
        return pipeline.each([&](DecodedChunk& slot) -> Result<void> {
            const AccessBatch batch = TRY(slot.accesses);
            progress(++done, chunks.count());
            if (!slot.cut || batch.count() == 0) return add(batch);
            accesses_ += batch.count();
            return pass_.add_blocks(*slot.cut);
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

 private:
    // `is_cut`: they are blocks already.
    Result<void> add(const AccessBatch& batch, bool is_cut = false) {
        if (is_cut)
            TRY(pass_.add_blocks(BlockCutter::as_they_are(batch)));
        else
            TRY(pass_.add(batch));
        accesses_ += batch.count();
        if (options_.progress && total_ != 0) options_.progress(accesses_, total_);
        return {};
    }
    unsigned threads() const { return thread_count(options_.engine.threads); }
    // Who sees the accesses, and methods other than these, may want any column.
    ColumnSet wanted() const {
        const EngineOptions& engine = options_.engine;
        if (!pass_.is_engine_alone() || engine.model != StackModel::single ||
            (options_.method != "exact" && options_.method != "olken"))
            return {true, true, true, true};
        const bool sites = engine.sites || engine.pairs;
        return {sites, engine.granularity > 1, false, sites};
    }
    AccessColumns columns_wanted() const {
        AccessColumns columns;
        columns.wanted = wanted();
        if (columns.wanted == ColumnSet{false, true, false, false})
            columns.cut_shift = pass_.cut_shift();
        return columns;
    }
    // How many accesses all chunks have is a guess from those so far.
    void progress(std::size_t done, std::size_t chunks) const {
        if (options_.progress) options_.progress(accesses_, accesses_ / done * chunks);
    }

    Pass& pass_;
    const AnalyzeOptions& options_;
    std::uint64_t accesses_ = 0, total_ = 0;
};

// Runs `body() -> Result<T>`: what memory does not suffice for is an error as well.
template <class Body>
auto with_memory(Body body) -> decltype(body()) {
    try {
        return body();
    } catch (const std::bad_alloc&) {
        return fail(ErrorCode::no_memory, "not enough memory for the analysis");
    }
}

}  // namespace

Analysis::Analysis(std::unique_ptr<Pass> pass) : pass_(std::move(pass)) {}
Analysis::Analysis(Analysis&&) noexcept = default;
Analysis& Analysis::operator=(Analysis&&) noexcept = default;
Analysis::~Analysis() = default;

Result<Analysis> Analysis::begin(const AnalyzeOptions& options) {
    return with_memory([&]() -> Result<Analysis> { return Analysis(TRY(Pass::create(options))); });
}

Result<void> Analysis::add(const AccessBatch& accesses) {
    return with_memory([&] { return pass_->add(accesses); });
}

Result<void> Analysis::add_blocks(const BlockBatch& blocks) {
    return with_memory([&] { return pass_->add_blocks(blocks); });
}

Result<void> Analysis::add(TraceReader& trace) {
    return with_memory([&] { return Join(*pass_).add(trace); });
}

Result<Profile> Analysis::finish() {
    return with_memory([&] { return pass_->finish(); });
}

Result<Profile> analyze(TraceReader& trace, const AnalyzeOptions& options) {
    Analysis analysis = TRY(Analysis::begin(options));
    TRY(analysis.add(trace));
    return analysis.finish();
}

Result<Profile> analyze(const AccessBatch& accesses, const AnalyzeOptions& options) {
    TRY(check(accesses));
    return with_memory([&]() -> Result<Profile> {
        const auto pass = TRY(Pass::create(options));
        // At granularity 1 blocks are the addresses themselves.
        if (pass->is_engine_alone() && pass->engine().takes_ranges() && options.engine.granularity > 1)
            TRY(Join(*pass).add_ranges(MemoryRanges(accesses)));
        else
            TRY(pass->add(accesses));
        return pass->finish();
    });
}

Result<Profile> analyze(std::span<const std::uint64_t> addresses, std::string_view method,
                        const EngineOptions& options) {
    AnalyzeOptions how;
    how.method = method;
    how.engine = options;
    return analyze(AccessBatch{addresses, {}, {}, {}, {}}, how);
}

}  // namespace revisit
