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
// this is the formula of partition_count.h, and its passes count all chunks at once; first touches that
// find their blocks side by side are counted a run at a time (reuse_runs.h).
//
// Finding places is done in tables that share the blocks out by a hash of their page of ids: each part
// is one thread's own, goes through the chunks in order and depends on nothing else. Where the chunk's
// engine has its last positions in pages, so has the part: the two pages are gone through side by side,
// the chunk's page takes the places found and the part's takes the new ones. Nothing is dealt out, and
// the lists then look their places up in the chunk's own table. Scattered ids are dealt to the parts,
// and cost a lookup for the first touch and one for the last.
//
// What is known of a block's last touch, its site or time, is kept by place: a chunk brings it in order
// of last touch, and a first touch reads it where it found its block.
//
// Afterwards the places that were not found again are the new stack; they are renumbered when a next
// window comes.
//
// Cost. An access that is a first touch of a scan takes 11 ns of CPU time in all, where one thread
// takes 9 (Neoverse V1), and some 7 bytes while it lasts; with scattered ids a first touch takes up to
// 80 ns on top and 50 bytes. Source. The collapsed sequence is ours; the handing back of first touches
// is from Niu et al., PARDA, IPDPS 2012, which does it chunk after chunk.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "core/parallel.h"
#include "engines/big_vector.h"
#include "engines/distance_table.h"
#include "engines/last_access.h"
#include "engines/time_bitmap.h"
#include "engines/touch_stretches.h"

namespace revisit {

// Which part a block belongs to. Pages of ids are not torn apart.
class PartOf {
 public:
    explicit PartOf(unsigned parts) : parts_(parts) {}
    REVISIT_INLINE unsigned operator()(std::uint64_t block) const {
        return of_page(block >> LastAccessPages<std::uint32_t>::kPageBits);
    }
    REVISIT_INLINE unsigned of_page(std::uint64_t page) const {
        // Another factor than the tables': a part's pages must not share places in its table.
        const std::uint64_t hash = (page ^ page >> 32) * 0xd6e8feb86659fd93u;
        return static_cast<unsigned>((hash >> 32) * parts_ >> 32);
    }
    unsigned count() const { return parts_; }

 private:
    unsigned parts_;
};

// What a chunk hands on: its blocks in the order of first touch, and their ranks in the order of last
// touch, either in the table where its engine has them or dealt to parts.
class ChunkTouches {
 public:
    static constexpr std::size_t kPiece = std::size_t{1} << 16;  // of the list, placed by one thread

    ChunkTouches() = default;
    // The list may be empty when no block is on the stack yet.
    ChunkTouches(BigVector<std::uint64_t> first_touches, TouchStretches stretches,
                 LastAccessPages<std::uint32_t> pages, TimeBitmap marks, const PartOf& part_of);
    // Dealt to parts. add_last() is to be called once for each of the blocks.
    ChunkTouches(BigVector<std::uint64_t> first_touches, const PartOf& part_of);
    void add_last(std::uint64_t block, std::uint32_t rank, const PartOf& part_of) {
        const std::uint32_t to = next_[part_of(block)]++;
        last_blocks_[to] = block;
        last_ranks_[to] = rank;
    }
    // What is known of the last touches, in their order; empty where it is not kept.
    void set_last(BigVector<std::uint32_t> sites, BigVector<std::uint64_t> times) {
        last_sites_ = std::move(sites);
        last_times_ = std::move(times);
    }
    std::size_t count() const { return count_; }

 private:
    friend class StackParts;
    void free_lists();
    void free_tables();
    std::size_t listed() const { return list_.size() + stretches_.count(); }
    std::vector<std::uint32_t> read_places(const PartOf& part_of, std::size_t piece);
    void read_pages(const TouchStretches::Run& run, std::uint32_t* places);

    std::size_t count_ = 0;          // of blocks
    BigVector<std::uint64_t> list_;  // in order of first touch, but for
    TouchStretches stretches_;
    std::vector<std::uint32_t> starts_;  // of parts in the arrays below; one more at the end
    // Either the engine's table, whose positions `marks_` turns into ranks; afterwards it holds the
    // places where blocks were found, 0 = nowhere.
    std::optional<LastAccessPages<std::uint32_t>> pages_;
    TimeBitmap marks_;
    std::vector<std::uint32_t> leaves_;  // by part
    // Or arrays.
    std::vector<std::uint32_t> piece_starts_;  // (piece, part): where the piece's blocks begin
    BigVector<std::uint64_t> first_blocks_;    // by part, in order of first touch
    BigVector<std::uint32_t> places_;          // where they were found, 0 = nowhere
    BigVector<std::uint64_t> last_blocks_;     // by part, in any order
    BigVector<std::uint32_t> last_ranks_;
    std::vector<std::uint32_t> next_;
    BigVector<std::uint32_t> last_sites_;
    BigVector<std::uint64_t> last_times_;
};

// Some first touches of a chunk and what was found out.
struct FoundTouches {
    std::size_t chunk, first;                  // the chunk, and where in its list they begin
    std::span<const std::uint32_t> places;     // on the stack, 0 = not there
    std::span<const std::uint32_t> distances;  // anything for those
};

class StackParts {
 public:
    // Sites and times of last touches are kept for all places where they are wanted.
    StackParts(Crew& crew, unsigned parts, bool sites = false, bool times = false);

    const PartOf& part_of() const { return part_of_; }
    std::size_t live() const { return places_ - found_; }  // blocks on the stack

    // Counts the first touches of the chunks of a window, in order of time; tables[t] takes thread t's
    // share. Empties the chunks. `use` sees all of them, on all threads at once.
    void resolve(std::span<ChunkTouches> chunks, std::span<DistanceTable> tables,
                 const std::function<void(const FoundTouches&)>& use = {});
    // Of the last touch before the one that found this place. For `use`.
    std::uint32_t last_site(std::uint64_t place) const { return last_sites_[place]; }
    std::uint64_t last_time(std::uint64_t place) const { return last_times_[place]; }

    // The blocks, oldest first, and what was kept of them. Leaves an empty stack.
    struct Stack {
        std::vector<std::uint64_t> blocks;
        std::vector<std::uint32_t> sites;
        std::vector<std::uint64_t> times;
    };
    Stack take();

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
    void look_up_dealt(Part& part, ChunkTouches& chunk, unsigned p, std::uint32_t base);
    void look_up_pages(Part& part, ChunkTouches& chunk, unsigned p, std::uint32_t base);
    template <class Next, class Use>
    static void exchange(Part& part, std::span<const std::uint64_t> blocks, Next next, Use use);
    struct Piece;
    using UseFound = std::function<void(const FoundTouches&)>;
    void renumber();
    template <class Value>
    void renumber_column(BigVector<Value>& column, std::size_t places);
    template <class Value>
    void extend_column(BigVector<Value>& column, std::span<ChunkTouches> chunks,
                       std::span<const std::size_t> base, BigVector<Value> ChunkTouches::* of_chunk);
    void find_places(std::span<ChunkTouches> chunks, std::span<const std::size_t> base);
    void read_piece(ChunkTouches& chunk, Piece& piece);
    void sum_found(std::size_t places);
    void count_runs(std::span<Piece> pieces, DistanceTable& table, const UseFound& use);
    void count_one_by_one(std::span<Piece> pieces, std::span<DistanceTable> tables,
                          const UseFound& use);
    std::uint32_t found_before(std::uint64_t place) const {
        const Word& word = words_[place >> 6];
        return static_cast<std::uint32_t>(word.before) +
               static_cast<std::uint32_t>(
                   std::popcount(word.found & ((std::uint64_t{1} << (place & 63)) - 1)));
    }

    Crew& crew_;
    PartOf part_of_;
    std::vector<Part> parts_;
    std::size_t places_ = 0;           // numbered from 1
    std::size_t found_ = 0;            // of them were found again in the window counted last
    BigVector<std::uint8_t> touched_;  // by place, in this window
    BigVector<Word> words_;
    bool sites_, times_;
    BigVector<std::uint32_t> last_sites_;  // by place, from 1
    BigVector<std::uint64_t> last_times_;
};

}  // namespace revisit
