// The LRU stack of all that was counted before, in parts, so that all threads can look things up in it.
//
// Problem. Chunks of time are counted side by side by engines that start empty (exact_threads.cpp).
// What is left are their first touches: how far down the stack of everything before lies each block?
//
// Idea. Number the places of the stack: 1 is the oldest block; chunk k adds a place for each of its
// blocks, in order of last touch. A chunk's first touch x, the i-th of its list, finds its block at
// place p. Above p there are the places up to the chunk's, less those whose block was touched again
// since, in earlier lists or earlier in this one:
//
//     distance = i + (places before the chunk's own - p) - #{ earlier first touches with a place > p }
//
// where "earlier" runs through all lists of the window in order. Every place is found at most once, so
// this is the formula of partition_count.h, and its passes count all chunks at once. Finding places is
// a lookup a first touch and one a last touch, in tables that share the blocks out by a hash of their
// page of ids: each part is one thread's own, goes through the chunks in order and depends on nothing
// else. Neighbouring ids stay together, as the paged table likes them.
//
// Afterwards the places that were not found again are the new stack; they are renumbered when a next
// window comes.
//
// Cost. Two lookups, three or four passes over 8 bytes and a renumbering a first touch, all of it
// shared by the threads; about 50 bytes a first touch while it lasts. Source. The collapsed sequence is
// ours; the handing back of first touches is from Niu et al., PARDA, IPDPS 2012, which does it chunk
// after chunk.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engines/big_vector.h"
#include "engines/distance_table.h"
#include "engines/last_access.h"

namespace revisit {

// Which part a block belongs to. Pages of ids are not torn apart.
class PartOf {
 public:
    explicit PartOf(unsigned parts) : parts_(parts) {}
    REVISIT_INLINE unsigned operator()(std::uint64_t block) const {
        const std::uint64_t page = block >> LastAccessPages<std::uint32_t>::kPageBits;
        // Another factor than the tables': a part's pages must not share places in its table.
        const std::uint64_t hash = (page ^ page >> 32) * 0xd6e8feb86659fd93u;
        return static_cast<unsigned>((hash >> 32) * parts_ >> 32);
    }
    unsigned count() const { return parts_; }

 private:
    unsigned parts_;
};

// What a chunk hands on: its blocks in the order of first touch, dealt to parts, and those by part with
// their ranks in the order of last touch.
class ChunkTouches {
 public:
    static constexpr std::size_t kPiece = std::size_t{1} << 16;  // of the list, placed by one thread

    ChunkTouches() = default;
    ChunkTouches(BigVector<std::uint64_t> first_touches, const PartOf& part_of);
    // To be called once for each of the blocks.
    void add_last(std::uint64_t block, std::uint32_t rank, const PartOf& part_of) {
        const std::uint32_t to = next_[part_of(block)]++;
        last_blocks_[to] = block;
        last_ranks_[to] = rank;
    }
    std::size_t count() const { return list_.size(); }
    std::size_t count_of(unsigned part) const { return starts_[part + 1] - starts_[part]; }

 private:
    friend class StackParts;
    BigVector<std::uint64_t> list_;            // in order of first touch
    std::vector<std::uint32_t> starts_;        // of parts in the arrays below; one more at the end
    std::vector<std::uint32_t> piece_starts_;  // (piece, part): where the piece's blocks begin
    BigVector<std::uint64_t> first_blocks_;    // by part, in order of first touch
    BigVector<std::uint32_t> places_;          // where they were found, 0 = nowhere
    BigVector<std::uint64_t> last_blocks_;     // by part, in any order
    BigVector<std::uint32_t> last_ranks_;
    std::vector<std::uint32_t> next_;
};

class StackParts {
 public:
    StackParts(unsigned threads, unsigned parts);

    const PartOf& part_of() const { return part_of_; }
    std::size_t live() const { return places_ - found_; }  // blocks on the stack

    // Counts the first touches of the chunks of a window, in order of time; tables[t] takes thread t's
    // share. Empties the chunks.
    void resolve(std::span<ChunkTouches> chunks, std::span<DistanceTable> tables);

    // The blocks, oldest first. Leaves an empty stack.
    std::vector<std::uint64_t> take();

    // At most so many first touches and blocks together in one window.
    static constexpr std::uint64_t kMostPlaces = std::uint64_t{1} << 31;

 private:
    struct Part {
        LastAccess<std::uint32_t> table;
        std::size_t blocks = 0;
    };
    struct Word {  // 64 places
        std::uint64_t found;
        std::uint64_t before;  // places found in earlier words
    };
    void look_up(Part& part, ChunkTouches& chunk, std::uint32_t begin, std::uint32_t end,
                 std::uint32_t base);
    template <class Next, class Use>
    static void exchange(Part& part, std::span<const std::uint64_t> blocks, Next next, Use use);
    void renumber();
    void sum_found(std::size_t places);
    std::uint32_t found_before(std::uint32_t place) const {
        const Word& word = words_[place >> 6];
        return static_cast<std::uint32_t>(word.before) +
               static_cast<std::uint32_t>(
                   std::popcount(word.found & ((std::uint64_t{1} << (place & 63)) - 1)));
    }

    unsigned threads_;
    PartOf part_of_;
    std::vector<Part> parts_;
    std::size_t places_ = 0;           // numbered from 1
    std::size_t found_ = 0;            // of them were found again in the window counted last
    BigVector<std::uint8_t> touched_;  // by place, in this window
    BigVector<Word> words_;
};

}  // namespace revisit
