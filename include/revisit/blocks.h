// Cutting accesses into blocks of a granularity: what stands between a source of accesses and an
// engine.
//
//     BlockCutter cutter(64);
//     cutter.cut(accesses, [&](const BlockBatch& blocks) { return engine->add(blocks); });
//
// An access of known size counts once in each block it touches. Granularity 1 takes addresses as they
// are, sizes ignored, and passes the source's own array through untouched. Pieces stay small enough for
// the second-level cache, so an access of 4 GiB costs time and never memory.
#pragma once

#include <bit>
#include <cstdint>
#include <optional>
#include <vector>

#include "revisit/access.h"
#include "revisit/error.h"

namespace revisit {

// Memory for blocks, column by column.
struct REVISIT_API BlockColumns {
    std::vector<std::uint64_t> blocks;
    std::vector<std::uint32_t> sites;
    std::vector<std::uint16_t> threads;
    std::vector<std::uint8_t> flags;

    void clear();
    void append(const BlockBatch& batch);  // as many columns as the batches before it
    BlockBatch batch() const { return {blocks, sites, threads, flags}; }
};

class REVISIT_API BlockCutter {
 public:
    explicit BlockCutter(std::uint64_t granularity);

    // Batches say which parts of their blocks were touched (BlockBatch::parts).
    void keep_parts();

    // Calls `sink(BlockBatch) -> Result<void>` for the pieces of `batch`, in order.
    template <class Sink>
    Result<void> cut(const AccessBatch& batch, Sink&& sink) {
        if (Result<void> whole = check(batch); !whole) return whole;
        if (granularity_ == 1) return sink(as_they_are(batch));
        Position at;
        while (at.access < batch.count()) {
            if (Result<void> done = sink(next_piece(batch, at)); !done) return done;
        }
        return {};
    }

    // Granularity 1: every address is a block.
    static BlockBatch as_they_are(const AccessBatch& batch) {
        return {batch.addresses, batch.sites, batch.threads, batch.flags};
    }

    std::uint64_t granularity() const { return granularity_; }
    // What a source needs to know to cut accesses itself (AccessColumns::cut_shift).
    std::optional<unsigned> shift() const {
        if (shift_ < 1 || shift_ > 31 || part_bytes_ != 0) return std::nullopt;
        return static_cast<unsigned>(shift_);
    }
    std::uint64_t block_of(std::uint64_t address) const {
        return shift_ >= 0 ? address >> shift_ : address / granularity_;
    }

 private:
    struct Position {
        std::size_t access = 0;
        std::uint64_t blocks_done = 0;  // of that access
    };
    BlockBatch next_piece(const AccessBatch& batch, Position& at);
    std::size_t cut_two_blocks(const AccessBatch& batch, std::size_t access, std::size_t filled);
    std::uint16_t parts_of(std::uint64_t block, std::uint64_t first_byte,
                           std::uint64_t last_byte) const;

    std::uint64_t granularity_;
    int shift_ = -1;  // -1: not a power of two
    std::vector<std::uint64_t> blocks_;
    std::vector<std::uint32_t> sites_;
    std::vector<std::uint16_t> threads_;
    std::vector<std::uint8_t> flags_;
    std::uint64_t part_bytes_ = 0;  // 0: parts are not asked for
    std::vector<std::uint16_t> parts_;
};

}  // namespace revisit
