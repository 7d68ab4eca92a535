// A stretch of a trace that several threads count: blocks that lie in memory, or accesses of a source
// that are read and cut by the thread that counts them.
#pragma once

#include <cstdint>
#include <vector>

#include "engines/ranges.h"

namespace revisit {

class TraceWindow {
 public:
    TraceWindow(const BlockBatch& blocks) : blocks_(blocks), count_(blocks.count()) {}  // NOLINT
    TraceWindow(const AccessRanges& source, std::uint64_t granularity, std::uint64_t first,
                std::size_t count)
        : source_(&source), granularity_(granularity), first_(first), count_(count) {}

    // Accesses. Those of a source may touch more blocks than one each.
    std::size_t count() const { return count_; }
    TraceWindow part(std::size_t from, std::size_t count) const {
        if (source_ == nullptr) return blocks_.part(from, count);
        return {*source_, granularity_, first_ + from, count};
    }
    // Empty where blocks are read from a source.
    const BlockBatch& in_memory() const { return blocks_; }

    // Calls use(BlockBatch) -> Result<void> for all of it, in order. Gives the number of blocks.
    template <class Use>
    Result<std::uint64_t> each(Use use) const {
        if (source_ == nullptr) {
            TRY(use(blocks_));
            return blocks_.count();
        }
        BlockCutter cutter(granularity_);
        AccessColumns columns;
        std::uint64_t blocks = 0;
        TRY(each_block_of(*source_, cutter, columns, first_, count_, [&](const BlockBatch& piece) {
            blocks += piece.count();
            return use(piece);
        }));
        return blocks;
    }

 private:
    BlockBatch blocks_;
    const AccessRanges* source_ = nullptr;
    std::uint64_t granularity_ = 1, first_ = 0;
    std::size_t count_;
};

// First touches of a chunk, as shares of its accesses.
struct FirstTouches {
    double share = 1;
    double in_order = 0;  // of all accesses, those in long runs of blocks that go up by one each
    bool only_repeats = false;

    double scattered() const { return std::max(0.0, share - in_order); }
};

// An estimate, from the blocks whose hash falls in a thousandth; `threads` threads look at the window.
FirstTouches estimate_first_touches(const TraceWindow& window, unsigned threads);

// Nearly all accesses repeat the one before: counting them takes no longer than reading them.
bool only_repeats(const TraceWindow& window);

}  // namespace revisit
