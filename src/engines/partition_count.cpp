// Exact reuse distances in parallel: the count as a stable partition.
//
// Problem. The usual algorithms carry a state from access to access. To use thousands of threads, the
// distances of a chunk must come out of passes over arrays.
// Idea. Let prev[i] be the index of the access before i to the same block. Of the i - prev[i] - 1
// accesses in between, those whose own previous access lies in between as well repeat a block already
// seen there:
//     distance(i) = (i - prev[i] - 1) - #{ j < i : prev[j] > prev[i] }.
// So every element needs the number of larger ones to its left. Keep the elements in time order and
// split them stably by the leading bits of prev. An element with digit d goes past every earlier
// element of its bucket with a larger digit, and nothing else ever separates the two again: subtract
// that number, then go on inside each bucket. First touches have no prev and drop out before. Replacing
// prev by its rank among the accesses that are reused makes buckets exact powers of two
// (partition_plan.h). Cost. ceil((log2 n - tail) / widest) passes over 8 bytes an element, then one in
// fast memory (marks over its keys, counted by words); no random access but the making of prev. The GPU
// engine runs the same passes; this form is its reference, and is what the tests hold against the
// definition. Source. Counting inversions in a merge sort is folklore; splitting by key instead is the
// construction of a wavelet tree. Bender et al., Increment-and-Freeze (SPAA 2023), reach the same bound
// another way.
#include "engines/partition_count.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <unordered_map>
#include <utility>

#include "core/parallel.h"
#include "engines/partition_plan.h"

namespace revisit {
namespace {

constexpr std::size_t kCountedPiece = std::size_t{1} << 16;

std::size_t counted_pieces(std::size_t count, std::size_t piece = kCountedPiece) {
    return (count + piece - 1) / piece;
}

unsigned hash_part(std::uint64_t block, unsigned bits) {
    return bits == 0
               ? 0
               : static_cast<unsigned>((block ^ block >> 32) * 0x9e3779b97f4a7c15u >> (64 - bits));
}

void count_digits(const PartitionPass& pass, const ReuseArrays& in, std::uint32_t tile,
                  std::vector<std::uint32_t>& counts) {
    const std::size_t low = std::size_t{tile} << pass.tail;
    const std::size_t high = std::min(in.count, low + (std::size_t{1} << pass.tail));
    std::uint32_t count[256] = {};
    for (std::size_t i = low; i < high; ++i) ++count[pass.digit(in.key[i])];
    for (unsigned d = 0; d < pass.digits(); ++d) counts[pass.count_index(tile, d)] = count[d];
}

// Row d has a one for every digit below d: what an element with digit d adds to `larger`.
struct Steps {
    alignas(64) std::uint16_t of[16][16];
    constexpr Steps() : of() {
        for (unsigned d = 0; d < 16; ++d)
            for (unsigned e = 0; e < 16; ++e) of[d][e] = e < d;
    }
};
constexpr Steps kSteps;

// `counts` holds, for this tile and every digit, where its next element goes.
void split_tile(const PartitionPass& pass, const ReuseArrays& in, ReuseArrays& out, std::uint32_t tile,
                const std::vector<std::uint32_t>& counts) {
    const std::uint64_t bucket = pass.bucket_of_tile(tile);
    std::uint32_t place[16];             // by digit
    std::uint32_t larger[16];            // elements of the bucket before the tile with a larger digit
    alignas(64) std::uint16_t here[16];  // and before this one in the tile: at most 2^14
    std::uint32_t sum = 0;
    for (unsigned d = pass.digits(); d-- > 0;) {
        place[d] = counts[pass.count_index(tile, d)];
        larger[d] = sum;
        sum += place[d] -
               static_cast<std::uint32_t>(std::min<std::uint64_t>(in.count, pass.begin(bucket, d)));
    }
    std::fill_n(here, 16, std::uint16_t{0});
    const std::size_t low = std::size_t{tile} << pass.tail;
    const std::size_t high = std::min(in.count, low + (std::size_t{1} << pass.tail));
    for (std::size_t i = low; i < high; ++i) {
        const unsigned digit = pass.digit(in.key[i]);
        out.key[place[digit]] = in.key[i];
        out.span[place[digit]] = in.span[i] - larger[digit] - here[digit];
        ++place[digit];
        for (unsigned d = 0; d < 16; ++d)
            here[d] = static_cast<std::uint16_t>(here[d] + kSteps.of[digit][d]);
    }
}

// The bits that are left: marks over the tile's keys, counted as time_bitmap.h does it, by word, by 16
// words and by 16 times that. A key's new span goes to the key's place.
class TileMarks {
 public:
    static constexpr unsigned kMostBits = 14;

    void finish(unsigned tail, const ReuseArrays& in, std::uint32_t* out, std::uint32_t tile) {
        const std::size_t low = std::size_t{tile} << tail;
        const std::size_t high = std::min(in.count, low + (std::size_t{1} << tail));
        *this = TileMarks();
        for (std::size_t i = low; i < high; ++i) {
            const auto key = static_cast<std::uint32_t>(in.key[i] - low);
            const unsigned word = key >> 6, group = word / 16;
            const std::uint32_t larger = after_group_[group] + after_word_[group][word % 16] +
                                         static_cast<std::uint32_t>(std::popcount(
                                             marks_[word] & (~std::uint64_t{1} << (key & 63))));
            out[low + key] = in.span[i] - larger;
            marks_[word] |= std::uint64_t{1} << (key & 63);
            for (unsigned w = 0; w < 16; ++w) {
                after_word_[group][w] =
                    static_cast<std::uint16_t>(after_word_[group][w] + kSteps.of[word % 16][w]);
                after_group_[w] = static_cast<std::uint16_t>(after_group_[w] + kSteps.of[group][w]);
            }
        }
    }

 private:
    std::uint64_t marks_[256] = {};
    alignas(64) std::uint16_t after_word_[16][16] = {};  // marks in later words of the group
    alignas(64) std::uint16_t after_group_[16] = {};     // in later groups
};

}  // namespace

std::vector<std::uint32_t> previous_accesses(std::span<const std::uint64_t> blocks, unsigned threads) {
    // Indices are dealt to parts by the block's hash, in time order; each part is one thread's own.
    const unsigned bits = threads <= 1 ? 0 : std::bit_width(threads - 1u) + 1u;
    const std::size_t parts = std::size_t{1} << bits, pieces = counted_pieces(blocks.size());
    std::vector<std::uint32_t> starts(parts * pieces + 1);
    auto each = [&](std::size_t piece, auto take) {
        const std::size_t low = piece * kCountedPiece,
                          high = std::min(blocks.size(), low + kCountedPiece);
        for (std::size_t i = low; i < high; ++i) take(i, hash_part(blocks[i], bits));
    };
    parallel_for(threads, pieces, [&](std::size_t piece) {
        each(piece, [&](std::size_t, unsigned part) { ++starts[part * pieces + piece]; });
    });
    std::uint32_t sum = 0;
    for (std::uint32_t& start : starts) sum += std::exchange(start, sum);
    std::vector<std::uint32_t> dealt(blocks.size());
    std::vector<std::uint32_t> cursor = starts;
    parallel_for(threads, pieces, [&](std::size_t piece) {
        each(piece, [&](std::size_t i, unsigned part) {
            dealt[cursor[part * pieces + piece]++] = static_cast<std::uint32_t>(i);
        });
    });
    std::vector<std::uint32_t> previous(blocks.size());
    parallel_for(threads, parts, [&](std::size_t part) {
        std::unordered_map<std::uint64_t, std::uint32_t> last;
        const std::size_t end = starts[(part + 1) * pieces];
        for (std::size_t k = starts[part * pieces]; k < end; ++k) {
            const std::uint32_t i = dealt[k];
            auto [found, is_new] = last.try_emplace(blocks[i], i);
            previous[i] = is_new ? kNoAccess : std::exchange(found->second, i);
        }
    });
    return previous;
}

Reuses reuses_of(std::span<const std::uint32_t> previous) {
    std::vector<bool> reused(previous.size());
    for (std::uint32_t p : previous)
        if (p != kNoAccess) reused[p] = true;
    std::vector<std::uint32_t> rank(previous.size());
    std::uint32_t count = 0;
    for (std::size_t i = 0; i < previous.size(); ++i) {
        rank[i] = count;
        count += reused[i];
    }
    Reuses out;
    out.key.reserve(count);
    out.span.reserve(count);
    for (std::size_t i = 0; i < previous.size(); ++i) {
        if (previous[i] == kNoAccess) continue;
        out.key.push_back(rank[previous[i]]);
        out.span.push_back(static_cast<std::uint32_t>(i) - previous[i] - 1);
    }
    return out;
}

void count_distances_by_key(ReuseArrays& reuses, Crew& crew, const PartitionShape& shape) {
    assert(shape.widest <= 4 && shape.tail <= TileMarks::kMostBits);
    const std::size_t count = reuses.count;
    ReuseArrays other(count);
    ReuseArrays *from = &reuses, *to = &other;
    const std::size_t tiles = counted_pieces(count, std::size_t{1} << shape.tail);
    const PartitionPlan plan = plan_partition(count, shape.tail, shape.widest);
    std::vector<std::uint32_t> counts;
    for (unsigned p = 0; p < plan.count; ++p) {
        const PartitionPass pass = plan.passes[p];
        counts.assign(pass.count_size(count), 0);
        crew.run(tiles, [&](std::size_t tile) {
            count_digits(pass, *from, static_cast<std::uint32_t>(tile), counts);
        });
        std::uint32_t sum = 0;
        for (std::uint32_t& place : counts) sum += std::exchange(place, sum);
        crew.run(tiles, [&](std::size_t tile) {
            split_tile(pass, *from, *to, static_cast<std::uint32_t>(tile), counts);
        });
        std::swap(from, to);
    }
    crew.run(tiles, [&](std::size_t tile) {
        TileMarks().finish(shape.tail, *from, to->span.data(), static_cast<std::uint32_t>(tile));
    });
    std::swap(reuses.span, to->span);
}

std::vector<std::uint32_t> distances_by_key(const Reuses& reuses, unsigned threads,
                                            const PartitionShape& shape) {
    ReuseArrays arrays(reuses.key.size());
    std::copy(reuses.key.begin(), reuses.key.end(), arrays.key.begin());
    std::copy(reuses.span.begin(), reuses.span.end(), arrays.span.begin());
    Crew crew(threads);
    count_distances_by_key(arrays, crew, shape);
    return {arrays.span.begin(), arrays.span.end()};
}

}  // namespace revisit
