// Accesses of a running program that are held back until several threads count them.
//
// Problem. A window of 1.5 million accesses takes 20 MiB as columns of 64, 32 and 8 bits, and the next
// one is collected while it is counted: 40 MiB, most of what a live profile takes on 16 cores.
// Idea. Blocks of programs have less than 47 bits and nearly all programs less than 65 536 sites, so an
// access takes 8 bytes, 6 without a site: the low half of the block, 15 more of its bits beside one for
// a write, and the site. Windows are cut into segments; one with other blocks or sites is wide. Whoever
// counts a segment gives it back, and the next window goes there: two windows take little more than
// one.
//
//     being counted, by two threads      collected meanwhile
//     □□□□■■■■  □□□■■■■■                 ■■■■■■■
//
// Cost. 1 ns per access to put it in and 0.5 to take it out (x86_64).
#pragma once

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "core/try.h"
#include "engines/big_vector.h"
#include "revisit/access.h"

namespace revisit {

// Memory of segments, which come and go.
class HeldSegments {
 public:
    explicit HeldSegments(bool columns) : columns_(columns) {}

    static constexpr std::size_t kAccesses = std::size_t{1} << 15;
    bool columns() const { return columns_; }  // sites and writes

    std::byte* take();
    // Null for a segment that has memory of its own.
    void give_back(std::byte* memory);
    void keep(std::byte* memory);  // while the segment stays out
    // Until fewer than `many` are out, or nobody gives any back, which `wake` tells.
    void wait_below(std::size_t many, const std::atomic<bool>& somebody_counts);
    void wake();

 private:
    // Mapped together, so that the system can give huge pages.
    static constexpr std::size_t kSlab = std::size_t{4} << 20;

    const bool columns_;
    std::mutex guard_;
    std::condition_variable given_back_;
    std::vector<BigVector<std::byte>> slabs_;
    std::vector<std::byte*> spare_;
    std::size_t out_ = 0;
};

class HeldBlocks {
 public:
    explicit HeldBlocks(std::shared_ptr<HeldSegments> memory) : memory_(std::move(memory)) {}

    std::size_t size() const { return size_; }
    // Of flags, the bit for writes. Columns that are missing are zeros.
    void append(const BlockBatch& batch);
    void clear();

    // Calls use(BlockBatch) -> Result<void> for accesses [first, first + count), in order. Threads may
    // do so at once. `last`: each access is used the last time, and its segment is given back.
    template <class Use>
    Result<void> each(std::size_t first, std::size_t count, bool last, Use use) const {
        // Whoever counts sites takes so many at once; others take longer for short pieces.
        const std::size_t at_once = memory_->columns() ? kWithColumns : HeldSegments::kAccesses;
        Columns room(std::min(at_once, count), memory_->columns());
        for (const std::size_t end = first + count; first < end;) {
            const std::size_t in_segment = first % HeldSegments::kAccesses;
            const std::size_t take =
                std::min({at_once, HeldSegments::kAccesses - in_segment, end - first});
            TRY(use(unpack(*segments_[first / HeldSegments::kAccesses], in_segment, take, room)));
            if (last) used(*segments_[first / HeldSegments::kAccesses], take);
            first += take;
        }
        return {};
    }

 private:
    static constexpr std::size_t kWithColumns = std::size_t{1} << 12;

    struct Columns {
        Columns(std::size_t count, bool columns)
            : blocks(count), sites(columns ? count : 0), flags(columns ? count : 0) {}
        std::vector<std::uint64_t> blocks;
        std::vector<std::uint32_t> sites;
        std::vector<std::uint8_t> flags;
    };
    struct Segment {
        std::byte* narrow = nullptr;
        std::unique_ptr<Columns> wide;  // instead
        std::size_t filled = 0;
        std::atomic<std::size_t> left = 0;  // that were not used yet
        // Columns of kAccesses each.
        std::uint32_t* low() const { return reinterpret_cast<std::uint32_t*>(narrow); }
        std::uint16_t* high() const {
            return reinterpret_cast<std::uint16_t*>(low() + HeldSegments::kAccesses);
        }
        std::uint16_t* sites() const { return high() + HeldSegments::kAccesses; }
    };
    bool pack(Segment& segment, const BlockBatch& batch) const;
    void widen(Segment& segment) const;
    BlockBatch unpack(const Segment& segment, std::size_t first, std::size_t count,
                      Columns& room) const;
    void used(Segment& segment, std::size_t count) const;

    std::shared_ptr<HeldSegments> memory_;
    std::vector<std::unique_ptr<Segment>> segments_;
    std::size_t size_ = 0;
};

}  // namespace revisit
