// Chunks of a trace, decoded and cut ahead of whoever counts them.
//
// Chunk k belongs to slot k mod n. A free thread takes the next chunk once its slot has been counted,
// decodes and cuts it there; the calling thread takes the slots in order. So the order is that of the
// trace and memory is bounded by n chunks.
#pragma once

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "core/try.h"
#include "revisit/blocks.h"
#include "revisit/source.h"

namespace revisit {

// A chunk on its way to the engine.
struct DecodedChunk {
    AccessColumns columns;
    Result<AccessBatch> accesses;
    BlockColumns blocks;
    std::vector<std::uint16_t> parts;  // of the blocks
    std::optional<BlockBatch> cut;     // unless there are too many blocks to keep
    bool filled = false;
};

class ChunkPipeline {
 public:
    // Chunks [first, end). `cuts`: to blocks of that many bytes, 0 = not at all; `parts`: with the
    // parts of them that are touched.
    ChunkPipeline(const AccessChunks& chunks, std::size_t first, std::size_t end,
                  const ColumnSet& wanted, std::uint64_t cuts, unsigned threads, bool parts = false)
        : chunks_(chunks),
          end_(end),
          cuts_(cuts),
          parts_(parts),
          slots_(2 * threads + 2),
          next_(first),
          taken_(first) {
        const bool only_blocks =
            cuts > 1 && !wanted.sites && !wanted.threads && !wanted.flags && !parts;
        for (DecodedChunk& slot : slots_) {
            slot.columns.wanted = wanted;
            if (only_blocks) slot.columns.cut_shift = BlockCutter(cuts).shift();
        }
        for (unsigned i = 0; i < threads; ++i) threads_.emplace_back([this] { decode_ahead(); });
    }
    ~ChunkPipeline() {
        std::lock_guard lock(guard_);
        stopping_ = true;
        changed_.notify_all();
    }
    ChunkPipeline(const ChunkPipeline&) = delete;

    // Calls use(DecodedChunk&) -> Result<void> for all chunks, in order.
    template <class Use>
    Result<void> each(Use use) {
        for (; taken_ < end_;) {
            DecodedChunk& slot = slots_[taken_ % slots_.size()];
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
        if (parts_) cutter.keep_parts();
        for (;;) {
            std::size_t mine;
            {
                std::unique_lock lock(guard_);
                mine = next_++;
                if (mine >= end_) return;
                changed_.wait(lock, [&] { return stopping_ || mine < taken_ + slots_.size(); });
                if (stopping_) return;
            }
            DecodedChunk& slot = slots_[mine % slots_.size()];
            fill(slot, mine, cutter);
            std::lock_guard lock(guard_);
            slot.filled = true;
            changed_.notify_all();
        }
    }

    void fill(DecodedChunk& slot, std::size_t chunk, BlockCutter& cutter) const {
        try {
            slot.cut.reset();
            slot.columns.is_cut = false;
            slot.accesses = chunks_.decode(chunk, slot.columns);
            if (!slot.accesses || cuts_ == 0) return;
            if (auto whole = check(*slot.accesses); !whole) {
                slot.accesses = unexpected(whole.error());
                return;
            }
            if (cuts_ == 1 || slot.columns.is_cut) {
                slot.cut = cutter.as_they_are(*slot.accesses);
                return;
            }
            slot.blocks.clear();
            slot.parts.clear();
            const std::size_t most = 2 * slot.accesses->count() + kManyBlocks;
            const auto done = cutter.cut(*slot.accesses, [&](const BlockBatch& piece) -> Result<void> {
                if (slot.blocks.blocks.size() + piece.count() > most) return fail("too many");
                slot.blocks.append(piece);
                slot.parts.insert(slot.parts.end(), piece.parts.begin(), piece.parts.end());
                return {};
            });
            if (!done) return;
            slot.cut = slot.blocks.batch();
            slot.cut->parts = slot.parts;
        } catch (const std::bad_alloc&) {
            slot.accesses = fail(ErrorCode::no_memory, "not enough memory to decode the trace");
        }
    }

    // An access of gigabytes has millions of blocks: those are cut where they are counted.
    static constexpr std::size_t kManyBlocks = std::size_t{1} << 18;

    const AccessChunks& chunks_;
    const std::size_t end_;
    const std::uint64_t cuts_;
    const bool parts_;
    std::vector<DecodedChunk> slots_;
    std::mutex guard_;
    std::condition_variable changed_;
    std::size_t next_, taken_;
    bool stopping_ = false;
    std::vector<std::jthread> threads_;  // last: they stop before the rest goes
};

}  // namespace revisit
