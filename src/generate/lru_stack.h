// An LRU stack that answers "which block is at depth d?" and moves it to the top.
//
// Idea. Blocks stand in a row of slots in the order of their last access, the latest at the right; a
// bitmap marks the slots in use. The block at depth d is the marked slot with N - 1 - d others to its
// left. It leaves a gap there and takes the next slot on the right; when the row is full the gaps are
// squeezed out. Finding it is a walk down a tree of counts with 16 children a node: a node is one cache
// line of 16 running sums, so a step down is a comparison of 16 numbers at once and a change is an
// addition to some of them, both of which compilers turn into vector code.
// Batches. A walk that has to wait for the changes of the one before is slow, so 16
// depths are first translated to depths in the stack as it was before the batch. Then the walks are
// independent and overlap, the slots' contents are fetched together, and a block found several times
// in the batch moves once.
// Cost. O(log N) an access, 2 N slots of 4 bytes and 3/8 bit each more; squeezing costs O(1) an access.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace revisit {

class LruStack {
 public:
    static constexpr std::size_t kBatch = 16;
    static constexpr std::uint64_t kMostBlocks = std::uint64_t{1} << 31;

    // Blocks 0 … blocks - 1, the last of them on top.
    explicit LruStack(std::uint64_t blocks);

    // Replaces each depth, at most kBatch of them, by the block found there; each goes on top.
    void access(std::span<std::uint64_t> depths_to_blocks);

 private:
    void find(std::span<const std::uint32_t> ranks, std::uint64_t* slots) const;
    void add_to_sums(std::uint64_t word, std::uint32_t by);  // wraps: adding ~0 takes one away
    void mark_next(std::uint64_t count);                     // the next free slots
    void fill();                                             // marks the first slots, one a block
    void squeeze();

    std::uint64_t blocks_;
    std::uint64_t end_ = 0;  // the next free slot
    std::vector<std::uint32_t> content_;
    std::vector<std::uint64_t> marks_;
    std::vector<std::vector<std::uint32_t>> sums_;  // [level]; 0 counts words, the last one is the root
};

}  // namespace revisit
