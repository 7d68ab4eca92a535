// What simulated caches see of a batch of blocks: few of them, and dealt to parts of the caches.
//
// Problem. Eight threads that each pick their share of the lines read every line eight times: 9 ns of
// CPU time per access, as much as counting it.
// Idea. Whoever has a batch at hand deals it, once. Lines that are used twice in a row within a set are
// dropped: a line that was the last one used there is found first in any cache whose number of sets is
// a multiple, and changes nothing in it. What remains of a loop over arrays is a line per array and
// line, and of a gather nearly all:
//
//     sets of 2:   line  4 4 5 4 7 5  ─▶  4 5 7 5
//
// Where the bytes of lines are wanted, the dropped accesses leave theirs with the one before them.
// Lines are dealt by their remainder: with r parts, part p knows line r n + p as n. One part alone gets
// the batch as it is: simulating a hit takes no longer than dropping it.
// Cost. 2 to 4 ns per access.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engines/big_vector.h"
#include "revisit/access.h"

namespace revisit {

struct LinePlan {
    unsigned parts = 1;      // a power of two, up to kMostParts
    std::uint64_t sets = 1;  // a power of two that divides the sets of all caches; may be less
    bool bytes = false;      // which bytes of a line are used
    static constexpr unsigned kMostParts = 8;
    // Whether the batch's own column of parts is looked at later.
    bool keeps_parts() const { return bytes && parts == 1; }
};

class DealtLines {
 public:
    struct Part {
        std::span<const std::uint64_t> lines;
        // In the batch, where that has sites or bytes are wanted. None: the lines are those of the
        // batch.
        std::span<const std::uint32_t> at;
        std::span<const std::uint64_t> bytes;  // those used, as bits, where they are wanted; or
        std::span<const std::uint16_t> parts;  // as in the batch
    };
    Part part(std::size_t number) const;
    // All that was dealt.
    std::size_t kept() const { return is_whole_ ? blocks_.size() : ends_[LinePlan::kMostParts - 1]; }
    // As it came, with those that were dropped; good as long as the batch is.
    std::span<const std::uint64_t> blocks() const { return blocks_; }
    std::span<const std::uint32_t> sites() const { return sites_; }

 private:
    friend class LineDealer;

    std::span<const std::uint64_t> blocks_;
    std::span<const std::uint32_t> sites_;
    std::span<const std::uint16_t> parts_;
    bool is_whole_ = false;
    bool has_at_ = false, has_bytes_ = false;
    std::uint32_t ends_[LinePlan::kMostParts] = {};
    BigVector<std::uint64_t> lines_, bytes_;
    BigVector<std::uint32_t> at_;
};

// One per thread that deals.
class LineDealer {
 public:
    explicit LineDealer(const LinePlan& plan);
    void deal(const BlockBatch& batch, DealtLines& out);

 private:
    struct Last {
        std::uint64_t line;
        std::uint32_t at;  // among those that were dealt
    };
    void forget(const BlockBatch& batch);
    template <bool kAt, bool kBytes>
    void put(const BlockBatch& batch, DealtLines& out, std::uint32_t* next);

    LinePlan plan_;
    std::vector<Last> last_;  // by set
};

}  // namespace revisit
