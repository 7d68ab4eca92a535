#include "engines/stack_parts.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "core/parallel.h"
#include "engines/partition_count.h"
#include "engines/reuse_runs.h"

namespace revisit {
namespace {

constexpr unsigned kPlacesBatch = 64;
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

// A page of a chunk's last positions and the stack's page: the chunk's takes the places that were
// there, the stack's the new ones. Returns how many blocks are new to it.
template <class Rank>
std::size_t swap_page(std::uint32_t* __restrict stack, std::uint32_t* __restrict last,
                      std::uint32_t base, Rank rank) {
    constexpr unsigned kAtOnce = 16;
    std::size_t fresh = 0;
    for (std::size_t at = 0; at < LastAccessPages<std::uint32_t>::kPage; at += kAtOnce) {
        std::uint32_t* const s = stack + at;
        std::uint32_t* const l = last + at;
        if (l[0] != 0 && (l[0] & 63) <= 64 - kAtOnce && consecutive<kAtOnce>(l)) {
            const std::uint32_t place = base + 1 + rank(l[0]);
            unsigned zero = 0;
            for (std::uint32_t j = 0; j < kAtOnce; ++j) {
                zero += s[j] == 0;
                l[j] = s[j];
                s[j] = place + j;
            }
            fresh += zero;
            continue;
        }
        for (unsigned j = 0; j < kAtOnce; ++j) {
            if (l[j] == 0) continue;
            const std::uint32_t place = base + 1 + rank(l[j]);
            fresh += s[j] == 0;
            l[j] = std::exchange(s[j], place);
        }
    }
    return fresh;
}

}  // namespace

namespace {

// Calls use(place, at, length) for all runs of places side by side, 0 being none.
template <class Use>
void each_run(std::span<const std::uint32_t> places, Use use) {
    constexpr std::size_t kWorthLeaping = 16;
    const std::size_t count = places.size();
    for (std::size_t i = 0; i < count;) {
        const std::uint32_t place = places[i];
        std::size_t end = i + 1;
        if (place != 0) {
            while (end < count && places[end] == place + (end - i)) {
                const bool leap = end - i >= kWorthLeaping && end + kPlacesBatch <= count &&
                                  consecutive<kPlacesBatch>(&places[end]);
                end += leap ? kPlacesBatch : 1;
            }
            use(place, i, end - i);
        }
        i = end;
    }
}

struct PlaceRun {
    std::uint32_t place, at, length;
};

}  // namespace

// Some of a chunk's list, looked at by one thread.
struct StackParts::Piece {
    std::size_t chunk, index;
    std::uint64_t first_span;  // of the first entry, if its place were 0
    // Places as runs where these are few, else one by one.
    std::vector<PlaceRun> in_runs = {};
    std::vector<std::uint32_t> one_by_one = {};
    std::size_t count = 0, reuses = 0, runs = 0;

    std::uint32_t span(std::size_t at, std::uint32_t place) const {
        return static_cast<std::uint32_t>(first_span + at - place);
    }
    template <class Use>
    void each(Use use) const {
        for (const PlaceRun& run : in_runs) use(run.place, run.at, run.length);
        each_run(one_by_one, use);
    }
    std::span<const std::uint32_t> places() {
        if (one_by_one.empty()) {
            one_by_one.resize(count);
            for (const PlaceRun& run : in_runs)
                for (std::uint32_t j = 0; j < run.length; ++j) one_by_one[run.at + j] = run.place + j;
            in_runs = {};
        }
        return one_by_one;
    }
};

ChunkTouches::ChunkTouches(BigVector<std::uint64_t> first_touches, TouchStretches stretches,
                           LastAccessPages<std::uint32_t> pages, TimeBitmap marks,
                           const PartOf& part_of)
    : count_(marks.live()),
      list_(std::move(first_touches)),
      stretches_(std::move(stretches)),
      starts_(part_of.count() + 1),
      pages_(std::move(pages)),
      marks_(std::move(marks)),
      leaves_(pages_->leaf_count()) {
    std::vector<std::uint32_t> next(part_of.count());
    auto part = [&](std::size_t leaf) { return part_of.of_page(pages_->page_of_leaf(leaf)); };
    for (std::size_t leaf = 0; leaf < leaves_.size(); ++leaf) ++next[part(leaf)];
    std::uint32_t sum = 0;
    for (unsigned p = 0; p < part_of.count(); ++p) {
        starts_[p] = sum;
        sum += std::exchange(next[p], sum);
    }
    starts_.back() = sum;
    for (std::uint32_t leaf = 0; leaf < leaves_.size(); ++leaf) leaves_[next[part(leaf)]++] = leaf;
}

ChunkTouches::ChunkTouches(BigVector<std::uint64_t> first_touches, const PartOf& part_of)
    : count_(first_touches.size()),
      list_(std::move(first_touches)),
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

void ChunkTouches::free_lists() {
    marks_ = TimeBitmap();
    first_blocks_ = {};
    last_blocks_ = {};
    last_ranks_ = {};
}

void ChunkTouches::free_tables() {
    pages_.reset();
    places_ = {};
}

// The places that the pages hold for blocks, by the batch where these lie side by side.
void ChunkTouches::read_pages(const TouchStretches::Run& run, std::uint32_t* places) {
    using Pages = LastAccessPages<std::uint32_t>;
    constexpr std::size_t kScattered = 16 * kPlacesBatch;
    if (run.blocks == nullptr) {
        for (std::size_t at = 0; at < run.count;) {
            const std::uint64_t block = run.first + at;
            const std::size_t in_page = block & (Pages::kPage - 1);
            const std::size_t count = std::min(run.count - at, Pages::kPage - in_page);
            std::memcpy(places + at, pages_->leaf_of_page(block >> Pages::kPageBits) + in_page,
                        count * sizeof *places);
            at += count;
        }
        return;
    }
    std::span<const std::uint64_t> blocks(run.blocks, run.count);
    while (!blocks.empty()) {
        const std::size_t in_page = blocks[0] & (Pages::kPage - 1);
        std::size_t done = kPlacesBatch;
        if (blocks.size() >= kPlacesBatch && in_page + kPlacesBatch <= Pages::kPage &&
            consecutive<kPlacesBatch>(blocks.data())) {
            std::memcpy(places, pages_->leaf_of_page(blocks[0] >> Pages::kPageBits) + in_page,
                        kPlacesBatch * sizeof *places);
        } else {
            done = std::min(kScattered, blocks.size());
            Lookahead look(*pages_, blocks.first(done));
            for (std::size_t batch = 0; batch < look.batches(); ++batch)
                look.read(batch, places + batch * kPlacesBatch);
        }
        places += done;
        blocks = blocks.subspan(done);
    }
}

// Where the blocks of a piece of the list were found.
std::vector<std::uint32_t> ChunkTouches::read_places(const PartOf& part_of, std::size_t piece) {
    const std::size_t low = piece * kPiece, high = std::min(low + kPiece, listed());
    std::vector<std::uint32_t> out(high - low);
    if (pages_) {
        stretches_.each(list_, low, high, [&](std::size_t at, const TouchStretches::Run& run) {
            read_pages(run, out.data() + at - low);
        });
        return out;
    }
    const auto starts = piece_starts_.begin() + static_cast<std::ptrdiff_t>(piece * part_of.count());
    std::vector<std::uint32_t> next(starts, starts + part_of.count());
    for (std::size_t i = low; i < high; ++i) out[i - low] = places_[next[part_of(list_[i])]++];
    return out;
}

StackParts::StackParts(Crew& crew, unsigned parts, bool sites, bool times)
    : crew_(crew), part_of_(parts), parts_(parts), sites_(sites), times_(times) {}

// Exchanges values for blocks that occur once each; use(i, before) is called for all, in order.
template <class Next, class Use>
void StackParts::exchange(Part& part, std::span<const std::uint64_t> blocks, Next next, Use use) {
    for (std::size_t begin = 0; begin < blocks.size();) {
        part.table.adapt(part.blocks);
        begin += part.table.visit([&](auto& table) {
            Lookahead look(table, blocks.subspan(begin));
            std::uint32_t previous[kPlacesBatch];
            std::size_t batch = 0;
            for (; batch < look.batches() && !look.crowded(); ++batch) {
                const std::size_t first = begin + batch * kPlacesBatch;
                auto value = [&](unsigned j) { return next(first + j); };
                look.exchange(batch, previous, value);
                look.finish(batch, previous, value);
                for (unsigned j = 0; j < look.size(batch); ++j) {
                    part.blocks += previous[j] == 0;
                    use(first + j, previous[j]);
                }
            }
            return std::min(blocks.size() - begin, batch * kPlacesBatch);
        });
    }
}

void StackParts::look_up_dealt(Part& part, ChunkTouches& chunk, unsigned p, std::uint32_t base) {
    const std::uint32_t begin = chunk.starts_[p];
    const std::size_t count = chunk.starts_[p + 1] - begin;
    std::uint32_t* const places = chunk.places_.data() + begin;
    exchange(
        part, {chunk.first_blocks_.data() + begin, count}, [](std::size_t) { return 1u; },
        [&](std::size_t i, std::uint32_t place) { places[i] = place; });
    const std::uint32_t* const ranks = chunk.last_ranks_.data() + begin;
    exchange(
        part, {chunk.last_blocks_.data() + begin, count},
        [&](std::size_t i) { return base + 1 + ranks[i]; }, [](std::size_t, std::uint32_t) {});
}

void StackParts::look_up_pages(Part& part, ChunkTouches& chunk, unsigned p, std::uint32_t base) {
    using Pages = LastAccessPages<std::uint32_t>;
    chunk.marks_.with_ranks([&](auto rank) {
        for (std::uint32_t at = chunk.starts_[p]; at < chunk.starts_[p + 1]; ++at) {
            const std::uint64_t page = chunk.pages_->page_of_leaf(chunk.leaves_[at]);
            std::uint32_t* const last = chunk.pages_->leaf(chunk.leaves_[at]);
            part.table.adapt(part.blocks);
            if (Pages* const stack = part.table.pages()) {
                part.blocks += swap_page(stack->leaf_of_page(page), last, base, rank);
                continue;
            }
            std::uint64_t blocks[Pages::kPage];
            std::uint32_t next[Pages::kPage];
            std::uint32_t* from[Pages::kPage];
            std::size_t count = 0;
            for (std::size_t j = 0; j < Pages::kPage; ++j) {
                if (last[j] == 0) continue;
                blocks[count] = page << Pages::kPageBits | j;
                next[count] = base + 1 + rank(last[j]);
                from[count++] = last + j;
            }
            exchange(
                part, {blocks, count}, [&](std::size_t i) { return next[i]; },
                [&](std::size_t i, std::uint32_t place) { *from[i] = place; });
        }
    });
}

// From bytes to bits that know how many were found before them.
void StackParts::sum_found(std::size_t places) {
    const std::size_t words = places / 64 + 1, pieces = pieces_of(words, kWordsAtOnce);
    words_.resize(words);
    std::vector<std::uint64_t> sums(pieces);
    crew_.run(pieces, [&](std::size_t piece) {
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
    crew_.run(pieces, [&](std::size_t piece) {
        const std::size_t end = std::min(words, (piece + 1) * kWordsAtOnce);
        for (std::size_t w = piece * kWordsAtOnce; w < end; ++w) words_[w].before += sums[piece];
    });
    found_ = total;
    touched_ = BigVector<std::uint8_t>();  // not {}, which keeps the memory
}

void StackParts::find_places(std::span<ChunkTouches> chunks, std::span<const std::size_t> base) {
    crew_.run(parts_.size(), [&](std::size_t index) {
        const auto p = static_cast<unsigned>(index);
        Part& part = parts_[p];
        std::size_t most = 0;  // new blocks of one chunk, if they are all new
        for (const ChunkTouches& chunk : chunks)
            if (!chunk.pages_)
                most = std::max<std::size_t>(most, chunk.starts_[p + 1] - chunk.starts_[p]);
        if (part.blocks == 0 && most != 0) part.table.expect(most);
        for (std::size_t k = 0; k < chunks.size(); ++k) {
            const auto before = static_cast<std::uint32_t>(base[k]);
            if (chunks[k].pages_)
                look_up_pages(part, chunks[k], p, before);
            else
                look_up_dealt(part, chunks[k], p, before);
        }
    });
}

// Brings the places into the order of the list, marks them as found and looks for runs.
void StackParts::read_piece(ChunkTouches& chunk, Piece& piece) {
    piece.one_by_one = chunk.read_places(part_of_, piece.index);
    piece.count = piece.one_by_one.size();
    const std::size_t few = piece.count / 8;
    std::uint8_t* const touched = touched_.data();
    each_run(piece.one_by_one, [&](std::uint32_t place, std::size_t at, std::size_t length) {
        if (length == 1)
            touched[place] = 1;
        else
            std::memset(touched + place, 1, length);
        piece.reuses += length;
        if (piece.runs++ < few)
            piece.in_runs.push_back(
                {place, static_cast<std::uint32_t>(at), static_cast<std::uint32_t>(length)});
    });
    if (piece.runs <= few)
        piece.one_by_one = {};
    else
        piece.in_runs = {};
}

// Appends what the chunks brought, each at its own places.
template <class Value>
void StackParts::extend_column(BigVector<Value>& column, std::span<ChunkTouches> chunks,
                               std::span<const std::size_t> base,
                               BigVector<Value> ChunkTouches::* of_chunk) {
    column.resize(places_ + 1);
    crew_.run(chunks.size(), [&](std::size_t k) {
        BigVector<Value>& brought = chunks[k].*of_chunk;
        std::ranges::copy(brought, column.begin() + static_cast<std::ptrdiff_t>(base[k]) + 1);
        brought = {};
    });
}

void StackParts::resolve(std::span<ChunkTouches> chunks, std::span<DistanceTable> tables,
                         const UseFound& use) {
    renumber();
    std::vector<std::size_t> base;  // places before chunk k's own
    for (const ChunkTouches& chunk : chunks) {
        base.push_back(places_);
        places_ += chunk.count();
    }
    if (sites_) extend_column(last_sites_, chunks, base, &ChunkTouches::last_sites_);
    if (times_) extend_column(last_times_, chunks, base, &ChunkTouches::last_times_);
    find_places(chunks, base);
    for (ChunkTouches& chunk : chunks) chunk.free_lists();

    std::vector<Piece> pieces;
    for (std::size_t k = 0; k < chunks.size(); ++k)
        for (std::size_t at = 0; at < chunks[k].listed(); at += ChunkTouches::kPiece)
            pieces.push_back({k, at / ChunkTouches::kPiece, base[k] + at});
    const std::size_t bytes = (places_ / 64 + 1) * 64, clear = std::size_t{1} << 20;
    // New memory every time: what a vector keeps when it is emptied would not be zeros.
    touched_ = BigVector<std::uint8_t>(bytes);
    if (!HugePageAllocator<std::uint8_t>::clears(bytes))
        crew_.run(pieces_of(bytes, clear), [&](std::size_t piece) {
            std::memset(touched_.data() + piece * clear, 0, std::min(clear, bytes - piece * clear));
        });
    crew_.run(pieces.size(), [&](std::size_t p) { read_piece(chunks[pieces[p].chunk], pieces[p]); });
    for (ChunkTouches& chunk : chunks) chunk.free_tables();
    sum_found(places_);
    std::size_t reuses = 0, runs = 0;
    for (const Piece& piece : pieces) {
        reuses += piece.reuses;
        runs += piece.runs;
    }
    // A run costs one thread what some eight reuses cost all of them.
    if (runs * 8 * crew_.size() <= reuses)
        count_runs(pieces, tables.front(), use);
    else
        count_one_by_one(pieces, tables, use);
}

void StackParts::count_runs(std::span<Piece> pieces, DistanceTable& table, const UseFound& use) {
    std::vector<std::size_t> starts = {0};
    for (const Piece& piece : pieces) starts.push_back(starts.back() + piece.runs);
    std::vector<ReuseRun> runs(starts.back());
    crew_.run(pieces.size(), [&](std::size_t p) {
        std::size_t next = starts[p];
        pieces[p].each([&](std::uint32_t place, std::size_t at, std::size_t length) {
            runs[next++] = {found_before(place), static_cast<std::uint32_t>(length),
                            pieces[p].span(at, place)};
        });
    });
    count_run_distances(runs);
    for (const ReuseRun& run : runs) table.add(run.span, run.length);
    if (!use) return;
    crew_.run(pieces.size(), [&](std::size_t p) {
        Piece& piece = pieces[p];
        std::vector<std::uint32_t> distances(piece.count);
        std::size_t next = starts[p];
        piece.each([&](std::uint32_t, std::size_t at, std::size_t length) {
            std::fill_n(distances.begin() + static_cast<std::ptrdiff_t>(at), length, runs[next++].span);
        });
        use({piece.chunk, piece.index * ChunkTouches::kPiece, piece.places(), distances});
    });
}

void StackParts::count_one_by_one(std::span<Piece> pieces, std::span<DistanceTable> tables,
                                  const UseFound& use) {
    std::vector<std::size_t> starts = {0};
    for (const Piece& piece : pieces) starts.push_back(starts.back() + piece.reuses);
    const std::size_t reuses = starts.back();
    ReuseArrays found(reuses);
    crew_.run(pieces.size(), [&](std::size_t p) {
        const auto places = pieces[p].places();
        std::size_t to = starts[p];
        for (std::size_t i = 0; i < places.size(); ++i) {
            if (places[i] == 0) continue;
            found.key[to] = found_before(places[i]);
            found.span[to++] = pieces[p].span(i, places[i]);
        }
    });
    count_distances_by_key(found, crew_);
    crew_.run(tables.size(), [&](std::size_t t) {
        const std::size_t low = reuses * t / tables.size(), high = reuses * (t + 1) / tables.size();
        constexpr std::size_t kAtOnce = std::size_t{1} << 16;
        for (std::size_t at = low; at < high; at += kAtOnce)
            tables[t].add(
                std::span<const std::uint32_t>(found.span.data() + at, std::min(kAtOnce, high - at)));
    });
    if (!use) return;
    crew_.run(pieces.size(), [&](std::size_t p) {
        const auto places = pieces[p].places();
        std::vector<std::uint32_t> distances(places.size());
        for (std::size_t i = 0; i < distances.size(); ++i)
            if (places[i] != 0) distances[i] = found.span[found_before(places[i])];
        use({pieces[p].chunk, pieces[p].index * ChunkTouches::kPiece, places, distances});
    });
}

// Closes the gaps that places leave which were found.
template <class Value>
void StackParts::renumber_column(BigVector<Value>& column, std::size_t places) {
    BigVector<Value> kept(places - found_ + 1);
    const std::size_t words = places / 64 + 1;
    crew_.run(pieces_of(words, kWordsAtOnce), [&](std::size_t piece) {
        const std::size_t end = std::min(words, (piece + 1) * kWordsAtOnce);
        for (std::size_t w = piece * kWordsAtOnce; w < end; ++w) {
            std::size_t to = w * 64 - words_[w].before;
            const std::size_t first = std::max<std::size_t>(1, w * 64);  // there is no place 0
            if (w == 0) to = 1;
            for (std::size_t place = first; place < std::min(w * 64 + 64, places + 1); ++place)
                if ((words_[w].found >> (place & 63) & 1) == 0) kept[to++] = column[place];
        }
    });
    column = std::move(kept);
}

void StackParts::renumber() {
    if (found_ == 0) return;
    crew_.run(parts_.size(), [&](std::size_t p) {
        parts_[p].table.transform([&](std::uint32_t place) { __builtin_prefetch(&words_[place >> 6]); },
                                  [&](std::uint32_t place) { return place - found_before(place); });
    });
    if (sites_) renumber_column(last_sites_, places_);
    if (times_) renumber_column(last_times_, places_);
    places_ -= std::exchange(found_, 0);
    words_ = {};
}

StackParts::Stack StackParts::take() {
    renumber();
    Stack out;
    if (sites_ && places_ != 0) out.sites.assign(last_sites_.begin() + 1, last_sites_.end());
    if (times_ && places_ != 0) out.times.assign(last_times_.begin() + 1, last_times_.end());
    last_sites_ = {};
    last_times_ = {};
    out.blocks.resize(std::exchange(places_, 0));
    crew_.run(parts_.size(), [&](std::size_t p) {
        parts_[p].table.drain(
            [&](std::uint64_t block, std::uint32_t place) { out.blocks[place - 1] = block; });
        parts_[p] = Part();
    });
    return out;
}

}  // namespace revisit
