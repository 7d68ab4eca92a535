// Labelled reuse: what the fits are made from.
//
// Every access of every sample run becomes a row: the sizes it ran at, its iteration vector, how many
// iterations of each loop were left, and how far away its block was last touched and by which
// reference. Rows are kept apart by (reference, source of the reuse): a stream.
#pragma once

#include <bit>
#include <cstdint>
#include <string>
#include <vector>

#include "predict/fit/polynomial.h"
#include "predict/run/interpret.h"

namespace revisit::predict {

struct Stream {
    std::int32_t reference = 0;
    std::int32_t source = kCold;
    std::size_t loops = 0;
    std::uint64_t seen = 0;            // rows, kept or not
    Points points;                     // variables: sizes, then iteration numbers, outermost first
    std::vector<std::int32_t> left;    // by row and loop: iterations after this one
    std::vector<std::int32_t> value;   // by row and loop: the loop's variable
    std::vector<std::int32_t> sample;  // by row
    std::vector<std::uint16_t> phase;  // by row: address within the block
};

// A reference under one path of calls, the same in all samples.
struct ReferenceInfo {
    std::uint32_t function = 0;
    std::uint32_t reference = 0;
    std::uint64_t context = 0;
    std::vector<std::string> loops;              // names of the enclosing loops' variables
    std::vector<double> totals;                  // accesses by sample
    std::vector<std::vector<Extremes>> indices;  // by sample and extent
};

// Of each stream the first rows, and every so-many-th after them.
struct Thinned {
    std::uint64_t whole = ~std::uint64_t{0};
    std::uint64_t every = 1;
};

class RowTable {
 public:
    RowTable(std::size_t sizes, std::uint64_t granularity, Thinned kept = {})
        : sizes_(sizes), granularity_(granularity), kept_(kept) {}

    // Takes the accesses of a run at `size`. False, and nothing taken, when loops are nested too deep
    // to distinguish iterations (recursion around a loop nests it once a call).
    bool add(const Program& program, const Trace& trace, const std::vector<std::int64_t>& size);

    const std::vector<Stream>& streams() const { return streams_; }
    const std::vector<ReferenceInfo>& references() const { return references_; }
    const std::vector<std::vector<std::int64_t>>& samples() const { return samples_; }
    std::size_t sizes() const { return sizes_; }
    std::uint64_t granularity() const { return granularity_; }
    std::uint64_t rows() const { return rows_; }

 private:
    std::size_t sizes_;
    std::uint64_t granularity_;
    Thinned kept_;
    std::uint64_t rows_ = 0;
    std::vector<Stream> streams_;
    std::vector<ReferenceInfo> references_;
    std::vector<std::vector<std::int64_t>> samples_;
    std::map<std::tuple<std::uint32_t, std::uint32_t, std::uint64_t>, std::int32_t> reference_index_;
    std::map<std::pair<std::int32_t, std::int32_t>, std::int32_t> stream_index_;
};

// Exact reuse distances of a known number of accesses, one by one.
class DistanceStack {
 public:
    explicit DistanceStack(std::size_t accesses);
    struct Answer {
        std::int64_t distance = -1;  // -1: cold
        std::int64_t previous = -1;  // number of the access before
    };
    Answer access(std::uint64_t block);
    // Asked some accesses ahead: looking a block up is a cache miss, and most of the cost.
    void prefetch(std::uint64_t block) const {
        __builtin_prefetch(&last_[slot_of(block)], 1);
        __builtin_prefetch(&keys_[slot_of(block)], 1);
    }
    std::uint64_t distinct() const { return distinct_; }

 private:
    std::size_t slot_of(std::uint64_t block) const {
        return (block * 0x9E3779B97F4A7C15ull) >> (64 - std::countr_zero(keys_.size()));
    }
    void grow();
    void count(std::size_t word, std::int32_t by);
    std::vector<std::uint64_t> marks_;  // bits over time: blocks whose last access is then
    std::vector<std::int32_t> tree_;    // Fenwick over words of marks
    std::vector<std::uint64_t> keys_;
    std::vector<std::int32_t> last_;  // by slot; -1 = empty
    std::size_t now_ = 0;
    std::uint64_t distinct_ = 0;
};

}  // namespace revisit::predict
