// Block → value of its last access, in the form that suits the ids.
//
// A table starts as pages, which are smaller and faster where ids lie close together. When pages turn
// out to be thinly filled, so that they take more than a hash would, the blocks move to the hash, chunk
// by chunk, and the pages' memory is given back on the way: the bound on bytes a block holds
// throughout.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <variant>

#include "engines/last_access_hash.h"
#include "engines/last_access_pages.h"
#include "engines/simd.h"

namespace revisit {

enum class LastAccessForm : std::uint8_t { automatic, pages, hash };

template <class Value>
class LastAccess {
 public:
    static constexpr unsigned kBatch = 64;
    // What pages may take a block, and beyond that while there are few blocks: ids of one dense range
    // met in random order open all of its pages before they fill any.
    static constexpr std::size_t kPageBytesPerBlock = 16;
    static constexpr std::size_t kFreeBytes = std::size_t{1} << 20;
    static constexpr std::size_t kFreeRangeBytes = std::size_t{8} << 20;
    static constexpr std::size_t kLookAgainBytes = std::size_t{256} << 10;

    explicit LastAccess(LastAccessForm form = LastAccessForm::automatic,
                        double hash_bytes_per_block = 18.4)
        : form_(form), hash_bytes_per_block_(hash_bytes_per_block) {
        if (form == LastAccessForm::hash) table_.template emplace<SmallHash>(hash_bytes_per_block);
    }

    // Calls use(table) on the present form. While it exchanges, use() watches table.crowded() and
    // returns early when that is so, for adapt() to be called.
    template <class Use>
    auto visit(Use use) {
        return std::visit(use, table_);
    }

    // Judges the form by the number of blocks in the table and changes it where it does not pay.
    void adapt(std::size_t blocks) {
        if (auto* const pages = std::get_if<Pages>(&table_);
            pages && form_ == LastAccessForm::automatic) {
            const bool narrow = pages->range_bytes() <= kFreeRangeBytes;
            const std::size_t allowed =
                (narrow ? kFreeRangeBytes : kFreeBytes) + kPageBytesPerBlock * blocks;
            if (pages->bytes() > allowed && !SmallHash::can_hold(expected_))
                move_to<CompactHash>(*pages);
            else if (pages->bytes() > allowed)
                move_to<SmallHash>(*pages);
            else
                pages->limit_bytes(std::min(allowed, pages->bytes() + kLookAgainBytes));
        }
        if (auto* const small = std::get_if<SmallHash>(&table_); small && small->crowded())
            move_to<CompactHash>(*small);
    }

    // So many blocks are to come, it is thought: a hash takes the room at once, now or when it becomes
    // one, and need not grow on the way.
    void expect(std::size_t blocks) {
        expected_ = std::max(expected_, blocks);
        if (auto* const small = std::get_if<SmallHash>(&table_)) {
            if (SmallHash::can_hold(expected_))
                small->expect(expected_);
            else
                move_to<CompactHash>(*small);
        } else if (auto* const compact = std::get_if<CompactHash>(&table_)) {
            compact->expect(expected_);
        }
    }

    // A block that is not in the table yet; `blocks` are.
    void insert(std::uint64_t block, Value value, std::size_t blocks) {
        std::visit([&](auto& table) { table.insert(block, value); }, table_);
        if (blocks % 1024 == 0) adapt(blocks);
    }

    template <class Prepare, class Replace>
    void transform(Prepare prepare, Replace replace) {
        std::visit([&](auto& table) { table.transform(prepare, replace); }, table_);
    }

    template <class Take>
    void drain(Take take) {
        std::visit([&](auto& table) { table.drain(take); }, table_);
    }

    bool is_hash() const { return !std::holds_alternative<Pages>(table_); }
    LastAccessPages<Value>* pages() { return std::get_if<Pages>(&table_); }  // null: it is a hash

 private:
    using Pages = LastAccessPages<Value>;
    using SmallHash = LastAccessHash<Value, std::uint32_t>;
    using CompactHash = LastAccessHash<Value, std::uint16_t>;

    template <class Form>
    void move_to(auto& from) {
        Form to(hash_bytes_per_block_);
        if (Form::can_hold(expected_)) to.expect(expected_);
        from.drain([&](std::uint64_t block, Value value) { to.insert(block, value); });
        table_ = std::move(to);
    }

    LastAccessForm form_;
    double hash_bytes_per_block_;
    std::size_t expected_ = 0;
    std::variant<Pages, SmallHash, CompactHash> table_;
};

// Exchanges values for a run of blocks, 64 at a time, locating them some batches ahead so that the
// table's lines are near when they are needed. 192 accesses ahead, into the second-level cache,
// measured best.
template <class Table>
class Lookahead {
 public:
    static constexpr unsigned kBatch = 64;
    static constexpr unsigned kBatchesAhead = 3;

    Lookahead(Table& table, std::span<const std::uint64_t> blocks) : table_(table), blocks_(blocks) {
        while (located_ < kBatchesAhead && located_ < batches()) locate();
    }

    std::size_t batches() const { return (blocks_.size() + kBatch - 1) / kBatch; }
    unsigned size(std::size_t batch) const {
        const std::size_t left = blocks_.size() - batch * kBatch;
        return left < kBatch ? static_cast<unsigned>(left) : kBatch;
    }

    // Batches are exchanged in order, each once. Some values of `previous` may be missing until
    // finish(), which comes before the next exchange(): the more happens in between, the less it waits.
    template <class Value, class Next>
    REVISIT_INLINE void exchange(std::size_t batch, Value* previous, Next next) {
        if (located_ < batches()) locate();
        table_.exchange(blocks_.data() + batch * kBatch, slots_[batch % (kBatchesAhead + 1)],
                        size(batch), previous, next);
    }
    template <class Value, class Next>
    REVISIT_INLINE void finish(std::size_t batch, Value* previous, Next next) {
        table_.finish(blocks_.data() + batch * kBatch, previous, next);
    }
    bool crowded() const { return table_.crowded(); }

    // The values as they are; the table has pages and all the blocks.
    template <class Wide>
    REVISIT_INLINE void read(std::size_t batch, Wide* values) {
        if (located_ < batches()) locate();
        for (unsigned j = 0; j < size(batch); j++) values[j] = *slots_[batch % (kBatchesAhead + 1)][j];
    }

 private:
    REVISIT_INLINE void locate() {
        table_.locate(blocks_.data() + located_ * kBatch, size(located_),
                      slots_[located_ % (kBatchesAhead + 1)]);
        located_++;
    }

    Table& table_;
    std::span<const std::uint64_t> blocks_;
    std::size_t located_ = 0;
    typename Table::Slot slots_[kBatchesAhead + 1][kBatch];
};

}  // namespace revisit
