// A stretch of a trace that several threads count: blocks that lie in memory, or that are held back
// there in less of it, or accesses of a source that are read or decoded, and cut, by the thread that
// counts them.
#pragma once

#include <cstdint>
#include <vector>

#include "core/try.h"
#include "engines/chunk_pipeline.h"
#include "engines/held_blocks.h"
#include "engines/ranges.h"

namespace revisit {

class TraceWindow {
 public:
    TraceWindow(const BlockBatch& blocks) : blocks_(blocks), count_(blocks.count()) {}  // NOLINT
    TraceWindow(const HeldBlocks& held) : TraceWindow(held, 0, held.size()) {}          // NOLINT
    TraceWindow(const AccessRanges& source, std::uint64_t granularity, std::uint64_t first,
                std::size_t count)
        : source_(&source), granularity_(granularity), first_(first), count_(count) {}

    // Whole chunks [first, end).
    TraceWindow(const AccessChunks& chunks, std::uint64_t granularity, std::size_t first,
                std::size_t end)
        : chunks_(&chunks),
          granularity_(granularity),
          grain_(
              std::max<std::uint64_t>(1, chunks.accesses() / std::max<std::size_t>(1, chunks.count()))),
          first_(first),
          count_((end - first) * grain_) {}

    // Accesses: of chunks, about. Those of a source may touch more blocks than one each.
    std::size_t count() const { return count_; }
    // Windows are parted at multiples of it: less than that is nothing.
    std::size_t grain() const { return grain_; }
    TraceWindow part(std::size_t from, std::size_t count) const {
        if (chunks_ != nullptr)
            return {*chunks_, granularity_, static_cast<std::size_t>(first_) + from / grain_,
                    static_cast<std::size_t>(first_) + (from + count) / grain_};
        if (held_ != nullptr) return {*held_, static_cast<std::size_t>(first_) + from, count};
        if (source_ == nullptr) return blocks_.part(from, count);
        return {*source_, granularity_, first_ + from, count};
    }
    bool is_decoded() const { return chunks_ != nullptr; }
    bool is_held() const { return held_ != nullptr; }
    // Empty where blocks are held back or read from a source.
    const BlockBatch& in_memory() const { return blocks_; }

    // Calls use(BlockBatch) -> Result<void> for all of it, in order, on this thread; chunks are decoded
    // by `ahead` others, if any. Gives the number of blocks.
    template <class Use>
    Result<std::uint64_t> each(Use use, unsigned ahead = 0) const {
        return each(use, ahead, false);
    }
    // The same, once: memory of what is held back is given back on the way.
    template <class Use>
    Result<std::uint64_t> each_once(Use use, unsigned ahead) const {
        return each(use, ahead, true);
    }

 private:
    TraceWindow(const HeldBlocks& held, std::size_t first, std::size_t count)
        : held_(&held), first_(first), count_(count) {}

    template <class Use>
    Result<std::uint64_t> each(Use& use, unsigned ahead, bool once) const {
        if (held_ != nullptr) {
            TRY(held_->each(static_cast<std::size_t>(first_), count_, once, use));
            return count_;
        }
        if (chunks_ == nullptr && source_ == nullptr) {
            TRY(use(blocks_));
            return blocks_.count();
        }
        std::uint64_t blocks = 0;
        auto count = [&](const BlockBatch& piece) {
            blocks += piece.count();
            return use(piece);
        };
        if (chunks_ != nullptr)
            TRY(each_of_chunks(count, ahead));
        else {
            BlockCutter cutter(granularity_);
            AccessColumns columns;
            columns.wanted = wanted();
            columns.cut_shift = cutter.shift();
            TRY(each_block_of(*source_, cutter, columns, first_, count_, count));
        }
        return blocks;
    }
    // Sources are read only where no sites are wanted.
    ColumnSet wanted() const { return {false, granularity_ > 1, false, false}; }

    template <class Use>
    Result<void> each_of_chunks(Use& use, unsigned ahead) const {
        const auto first = static_cast<std::size_t>(first_), end = first + count_ / grain_;
        BlockCutter cutter(granularity_);
        if (ahead == 0 || end - first < 2) {
            AccessColumns columns;
            columns.wanted = wanted();
            columns.cut_shift = cutter.shift();
            for (std::size_t chunk = first; chunk < end; ++chunk)
                TRY(each_block([&](AccessColumns& into) { return chunks_->decode(chunk, into); },
                               cutter, columns, use));
            return {};
        }
        ChunkPipeline pipeline(*chunks_, first, end, wanted(), granularity_, ahead);
        return pipeline.each([&](DecodedChunk& chunk) -> Result<void> {
            const AccessBatch accesses = TRY(chunk.accesses);
            return chunk.cut ? use(*chunk.cut) : cutter.cut(accesses, use);
        });
    }

    BlockBatch blocks_;
    const HeldBlocks* held_ = nullptr;
    const AccessRanges* source_ = nullptr;
    const AccessChunks* chunks_ = nullptr;
    std::uint64_t granularity_ = 1, grain_ = 1, first_ = 0;  // first access, or chunk
    std::size_t count_;
};

// First touches of a chunk, as shares of its accesses.
struct FirstTouches {
    double share = 1;
    double in_order = 0;  // of all accesses, those in long runs of blocks that go up by one each
    bool only_repeats = false;

    double scattered() const { return std::max(0.0, share - in_order); }
};

// An estimate, from the blocks whose hash falls in a small part of all; `threads` threads look at the
// window. It goes for a stretch of `accesses`, of which the window is the beginning: distinct blocks
// grow on as they did from the window's half to its end.
FirstTouches estimate_first_touches(const TraceWindow& window, std::size_t accesses, unsigned threads);

// Nearly all accesses repeat the one before: counting them takes no longer than reading them.
bool only_repeats(const TraceWindow& window);

}  // namespace revisit
