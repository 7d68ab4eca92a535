#include "engines/stack_parts.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "core/parallel.h"
#include "engines/partition_count.h"

namespace revisit {
namespace {

constexpr unsigned kBatch = 64;
constexpr std::size_t kWordsAtOnce = std::size_t{1} << 14;

std::size_t pieces_of(std::size_t count, std::size_t piece) {
    return (count + piece - 1) / piece;
}

// Bit j = byte j is 1, of 8 bytes that are 0 or 1.
std::uint64_t gather_bits(const std::uint8_t* bytes) {
    std::uint64_t eight;
    std::memcpy(&eight, bytes, 8);
    return eight * 0x0102040810204080u >> 56;
}

}  // namespace

ChunkTouches::ChunkTouches(BigVector<std::uint64_t> first_touches, const PartOf& part_of)
    : list_(std::move(first_touches)),
      starts_(part_of.count() + 1),
      piece_starts_(pieces_of(list_.size(), kPiece) * part_of.count()),
      first_blocks_(list_.size()),
      places_(list_.size()),
      last_blocks_(list_.size()),
      last_ranks_(list_.size()),
      next_(part_of.count()) {
    for (std::uint64_t block : list_) ++next_[part_of(block)];
    std::uint32_t sum = 0;
    for (unsigned part = 0; part < part_of.count(); ++part) {
        starts_[part] = sum;
        sum += std::exchange(next_[part], sum);
    }
    starts_.back() = sum;
    for (std::size_t at = 0; at < list_.size(); at += kPiece) {
        std::ranges::copy(
            next_, piece_starts_.begin() + static_cast<std::ptrdiff_t>(at / kPiece * part_of.count()));
        const std::size_t end = std::min(list_.size(), at + kPiece);
        for (std::size_t i = at; i < end; ++i) first_blocks_[next_[part_of(list_[i])]++] = list_[i];
    }
    std::copy(starts_.begin(), starts_.end() - 1, next_.begin());
}

StackParts::StackParts(unsigned threads, unsigned parts)
    : threads_(threads), part_of_(parts), parts_(parts) {}

// Exchanges values for blocks that occur once each; use(i, before) is called for all, in order.
template <class Next, class Use>
void StackParts::exchange(Part& part, std::span<const std::uint64_t> blocks, Next next, Use use) {
    for (std::size_t begin = 0; begin < blocks.size();) {
        part.table.adapt(part.blocks);
        begin += part.table.visit([&](auto& table) {
            Lookahead look(table, blocks.subspan(begin));
            std::uint32_t previous[kBatch];
            std::size_t batch = 0;
            for (; batch < look.batches() && !look.crowded(); ++batch) {
                const std::size_t first = begin + batch * kBatch;
                auto value = [&](unsigned j) { return next(first + j); };
                look.exchange(batch, previous, value);
                look.finish(batch, previous, value);
                for (unsigned j = 0; j < look.size(batch); ++j) {
                    part.blocks += previous[j] == 0;
                    use(first + j, previous[j]);
                }
            }
            return std::min(blocks.size() - begin, batch * kBatch);
        });
    }
}

void StackParts::look_up(Part& part, ChunkTouches& chunk, std::uint32_t begin, std::uint32_t end,
                         std::uint32_t base) {
    const std::size_t count = end - begin;
    std::uint32_t* const places = chunk.places_.data() + begin;
    std::uint8_t* const touched = touched_.data();
    std::uint8_t nowhere = 0;
    exchange(
        part, {chunk.first_blocks_.data() + begin, count}, [](std::size_t) { return 1u; },
        [&](std::size_t i, std::uint32_t place) {
            places[i] = place;
            *(place == 0 ? &nowhere : touched + place) = 1;
        });
    const std::uint32_t* const ranks = chunk.last_ranks_.data() + begin;
    exchange(
        part, {chunk.last_blocks_.data() + begin, count},
        [&](std::size_t i) { return base + 1 + ranks[i]; }, [](std::size_t, std::uint32_t) {});
}

// From bytes to bits that know how many were found before them.
void StackParts::sum_found(std::size_t places) {
    const std::size_t words = places / 64 + 1, pieces = pieces_of(words, kWordsAtOnce);
    words_.resize(words);
    std::vector<std::uint64_t> sums(pieces);
    parallel_for(threads_, pieces, [&](std::size_t piece) {
        std::uint64_t sum = 0;
        const std::size_t end = std::min(words, (piece + 1) * kWordsAtOnce);
        for (std::size_t w = piece * kWordsAtOnce; w < end; ++w) {
            std::uint64_t found = 0;
            for (unsigned b = 0; b < 8; ++b)
                found |= gather_bits(touched_.data() + w * 64 + b * 8) << (8 * b);
            words_[w] = {found, sum};
            sum += static_cast<std::uint64_t>(std::popcount(found));
        }
        sums[piece] = sum;
    });
    std::uint64_t total = 0;
    for (std::uint64_t& sum : sums) total += std::exchange(sum, total);
    parallel_for(threads_, pieces, [&](std::size_t piece) {
        const std::size_t end = std::min(words, (piece + 1) * kWordsAtOnce);
        for (std::size_t w = piece * kWordsAtOnce; w < end; ++w) words_[w].before += sums[piece];
    });
    found_ = total;
    touched_ = {};
}

void StackParts::resolve(std::span<ChunkTouches> chunks, std::span<DistanceTable> tables) {
    renumber();
    std::vector<std::size_t> base;  // places before chunk k's own
    for (const ChunkTouches& chunk : chunks) {
        base.push_back(places_);
        places_ += chunk.count();
    }
    const std::size_t bytes = (places_ / 64 + 1) * 64, clear = std::size_t{1} << 20;
    touched_.resize(bytes);
    parallel_for(threads_, pieces_of(bytes, clear), [&](std::size_t piece) {
        std::memset(touched_.data() + piece * clear, 0, std::min(clear, bytes - piece * clear));
    });
    parallel_for(threads_, parts_.size(), [&](std::size_t p) {
        std::size_t most = 0;  // new blocks of one chunk, if they are all new
        for (const ChunkTouches& chunk : chunks)
            most = std::max(most, chunk.count_of(static_cast<unsigned>(p)));
        if (parts_[p].blocks == 0) parts_[p].table.expect(most);
        for (std::size_t k = 0; k < chunks.size(); ++k)
            look_up(parts_[p], chunks[k], chunks[k].starts_[p], chunks[k].starts_[p + 1],
                    static_cast<std::uint32_t>(base[k]));
    });
    for (ChunkTouches& chunk : chunks) {
        chunk.first_blocks_ = {};
        chunk.last_blocks_ = {};
        chunk.last_ranks_ = {};
    }
    sum_found(places_);

    // Places by part become reuses in the order of the lists, piece by piece.
    struct Piece {
        std::size_t chunk, index, reuses;
    };
    std::vector<Piece> pieces;
    for (std::size_t k = 0; k < chunks.size(); ++k)
        for (std::size_t at = 0; at < chunks[k].count(); at += ChunkTouches::kPiece)
            pieces.push_back({k, at / ChunkTouches::kPiece, 0});
    const unsigned parts = part_of_.count();
    parallel_for(threads_, pieces.size(), [&](std::size_t p) {
        Piece& piece = pieces[p];
        const ChunkTouches& chunk = chunks[piece.chunk];
        const std::uint32_t* const starts = chunk.piece_starts_.data() + piece.index * parts;
        const bool last = (piece.index + 1) * ChunkTouches::kPiece >= chunk.count();
        const std::uint32_t* const ends = last ? chunk.starts_.data() + 1 : starts + parts;
        for (unsigned part = 0; part < parts; ++part)
            piece.reuses += static_cast<std::size_t>(
                ends[part] - starts[part] -
                std::count(chunk.places_.data() + starts[part], chunk.places_.data() + ends[part], 0u));
    });
    std::size_t reuses = 0;
    for (Piece& piece : pieces) reuses += std::exchange(piece.reuses, reuses);
    ReuseArrays found(reuses);
    std::vector<std::uint8_t> in_order(pieces.size());
    parallel_for(threads_, pieces.size(), [&](std::size_t p) {
        const Piece& piece = pieces[p];
        const ChunkTouches& chunk = chunks[piece.chunk];
        const std::size_t low = piece.index * ChunkTouches::kPiece;
        const std::size_t high = std::min(chunk.count(), low + ChunkTouches::kPiece);
        std::vector<std::uint32_t> next(
            chunk.piece_starts_.begin() + static_cast<std::ptrdiff_t>(piece.index * parts),
            chunk.piece_starts_.begin() + static_cast<std::ptrdiff_t>((piece.index + 1) * parts));
        std::size_t to = piece.reuses;
        bool ordered = true;
        for (std::size_t i = low; i < high; ++i) {
            const std::uint32_t place = chunk.places_[next[part_of_(chunk.list_[i])]++];
            if (place == 0) continue;
            const std::uint32_t key = found_before(place);
            found.key[to] = key;
            found.span[to] = static_cast<std::uint32_t>(i + base[piece.chunk] - place);
            ordered &= key == to;
            ++to;
        }
        in_order[p] = ordered;
    });
    for (ChunkTouches& chunk : chunks) chunk = {};
    // Scans find their blocks in order, and have nothing to subtract.
    if (std::ranges::count(in_order, 0) != 0) count_distances_by_key(found, threads_);
    parallel_for(threads_, tables.size(), [&](std::size_t t) {
        const std::size_t low = reuses * t / tables.size(), high = reuses * (t + 1) / tables.size();
        constexpr std::size_t kAtOnce = std::size_t{1} << 16;
        for (std::size_t at = low; at < high; at += kAtOnce)
            tables[t].add(
                std::span<const std::uint32_t>(found.span.data() + at, std::min(kAtOnce, high - at)));
    });
}

void StackParts::renumber() {
    if (found_ == 0) return;
    parallel_for(threads_, parts_.size(), [&](std::size_t p) {
        parts_[p].table.transform([&](std::uint32_t place) { __builtin_prefetch(&words_[place >> 6]); },
                                  [&](std::uint32_t place) { return place - found_before(place); });
    });
    places_ -= std::exchange(found_, 0);
    words_ = {};
}

std::vector<std::uint64_t> StackParts::take() {
    renumber();
    std::vector<std::uint64_t> blocks(std::exchange(places_, 0));
    parallel_for(threads_, parts_.size(), [&](std::size_t p) {
        parts_[p].table.drain(
            [&](std::uint64_t block, std::uint32_t place) { blocks[place - 1] = block; });
        parts_[p] = Part();
    });
    return blocks;
}

}  // namespace revisit
