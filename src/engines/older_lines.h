// What a larger LRU cache has beyond a smaller one, looked at only where the smaller one misses.
//
// Problem. Each cache of a machine is to see every access, and most of them hit the smallest.
// Idea. Where the number of sets of the smaller cache divides that of the larger, and it has no more
// ways, the larger one has all that the smaller one has, and in each of its sets those lines are the
// ones used last. Lines leave a set of the smaller in the order of their last use. So the rest of the
// larger is a queue per set:
//
//     set of the larger, last used first:   lines in the smaller (above) │ newest … oldest (queue)
//
// A line that leaves the smaller joins its queue; one that is found in a queue goes back to the
// smaller, and nothing changes for caches that are larger still; one that is not found is a miss, and
// evicts the oldest of its queue where above and queue fill the set. Hits of the smaller change
// nothing here.
//
// The next cache may have fewer ways (2 MiB with 16, 105 MiB with 15). For it, a line leaves when it
// comes to the ways that the two do not share, though it can still hit here.
//
// Memory. Most programs use a fraction of a last-level cache of hundreds of MiB, some lines of each
// set. So queues have room for four lines at first, and all of them are moved to twice the room when
// one is full.
//
// Cost. Two sets per miss of the smaller, prefetched, and 4 bytes per line of the room there is.
// Source. Inclusion under set refinement: Hill and Smith 1989; the queues are ours.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <utility>
#include <vector>

#include "engines/big_vector.h"
#include "engines/cpu.h"
#include "engines/missed_lines.h"
#include "engines/simd.h"

namespace revisit {

class OlderLines {
 public:
    // As many ways of them as the caches after it have, or more, are shared.
    OlderLines(std::uint64_t sets, std::size_t ways, std::size_t shared)
        : ways_(static_cast<unsigned>(ways)),
          shared_(static_cast<unsigned>(shared)),
          most_row_((ways + kLanes - 1) / kLanes * kLanes),
          row_(std::min(kFirstRow, most_row_)),
          shift_(static_cast<unsigned>(std::countr_zero(sets))),
          odd_(sets >> shift_),
          spread_(shift_ < kSpread ? 0 : (std::size_t{1} << kSpread) - 1),
          is_large_(sets * most_row_ > kCached),
          counts_(static_cast<std::size_t>(sets)),
          narrow_(rows<std::uint32_t>(row_)) {}

    std::uint64_t set_of(std::uint64_t line) const {
        return (line >> shift_) % odd_ << shift_ | (line & low());
    }

    // What missed the smaller cache; of that, what misses this one, or its shared ways.
    void access(const MissedLines& in, MissedLines& missed) {
        missed.clear(in.size());
        if (in.size() == 0) return;
        if (wide_.empty() && !fits(in)) widen();
        const MissedLines::Miss* next = in.begin();
        for (;;) {
            if (!wide_.empty())
                next = run<0>(wide_.data(), next, in.end(), missed);
            else if (kMayHaveAvx2 && has_avx2())
                next = run_avx2(next, in.end(), missed);
            else
                next = run_narrow(next, in.end(), missed);
            if (next == in.end()) return;
            wide_.empty() ? lengthen(narrow_) : lengthen(wide_);
        }
    }

 private:
    static constexpr std::size_t kLanes = 8, kFirstRow = 4;
    static constexpr unsigned kSpread = 6;
    static constexpr std::size_t kAhead = 32;  // misses whose sets are prefetched
    static constexpr std::uint64_t kCached = std::uint64_t{1} << 16;  // tags that stay near

    struct Counts {
        std::uint8_t above = 0, queued = 0;
    };

    // Where the set of a line lies. Programs with strides of a power of two use sets that far apart,
    // and their rows would be in a few sets of the cache of the machine that simulates.
    template <class Tag>
    REVISIT_INLINE std::size_t place_of(std::uint64_t line) const {
        auto set = static_cast<std::size_t>(line & low());
        if (odd_ != 1)
            set |= static_cast<std::size_t>(static_cast<Tag>(line >> shift_) % static_cast<Tag>(odd_))
                   << shift_;
        return set ^ (set >> kSpread & spread_);
    }
    REVISIT_INLINE std::uint64_t low() const { return (std::uint64_t{1} << shift_) - 1; }

    // A tag is the line without the bits that its set has as well.
    bool fits(const MissedLines& in) const {
        std::uint64_t all = 0;
        for (const MissedLines::Miss& miss : in) all |= miss.line;
        return all >> shift_ <= ~std::uint32_t{0};
    }
    void widen() {
        wide_.assign(narrow_.begin(), narrow_.end());
        narrow_ = {};
    }

    template <class Tag>
    BigVector<Tag> rows(std::size_t row) const {
        BigVector<Tag> out(counts_.size() * row + kLanes);
        if (!HugePageAllocator<Tag>::clears(out.size())) std::ranges::fill(out, Tag{0});
        return out;
    }
    template <class Tag>
    void lengthen(BigVector<Tag>& tags) {
        const std::size_t row = std::min(2 * row_, most_row_);
        BigVector<Tag> longer = rows<Tag>(row);
        for (std::size_t set = 0; set < counts_.size(); ++set)
            std::copy_n(&tags[set * row_], row_, &longer[set * row]);
        tags = std::move(longer);
        row_ = row;
    }

    // The rest is compiled for queues of up to 4, 8 and 16 ways, and for others (0). It ends early
    // where a queue is full and could be longer.
    template <std::size_t kRow>
    REVISIT_INLINE std::size_t row() const {
        return kRow == 0 ? row_ : kRow;
    }

    // Where `tag` is in the queue, or `queued`.
    template <std::size_t kRow>
    REVISIT_INLINE unsigned find(const std::uint32_t* tags, std::uint32_t tag, unsigned queued) const {
        std::uint64_t equal = 0;
        for (std::size_t at = 0; at < row<kRow>(); at += kLanes)
            equal |= std::uint64_t{simd::equal_bits(tags + at, tag)} << at;
        return std::min(static_cast<unsigned>(std::countr_zero(equal)), queued);
    }
    template <std::size_t kRow>
    REVISIT_INLINE unsigned find(const std::uint64_t* tags, std::uint64_t tag, unsigned queued) const {
        unsigned at = 0;
        while (at < queued && tags[at] != tag) ++at;
        return at;
    }
    // Those after it move up, and whatever lies behind the queue.
    template <std::size_t kRow>
    REVISIT_INLINE void remove(std::uint32_t* queue, unsigned at) const {
        const auto before = static_cast<std::int32_t>(at);
        simd::s32x4 lane = {0, 1, 2, 3};
        for (std::size_t from = 0; from < row<kRow>(); from += 4, lane += 4) {
            const auto here = simd::load<simd::s32x4>(queue + from),
                       next = simd::load<simd::s32x4>(queue + from + 1);
            simd::store(queue + from, lane < before ? here : next);
        }
    }
    template <std::size_t kRow>
    REVISIT_INLINE void remove(std::uint64_t* queue, unsigned at) const {
        std::copy(queue + at + 1, queue + row_, queue + at);
    }

    using Next = const MissedLines::Miss*;
    REVISIT_AVX2 Next run_avx2(Next first, Next end, MissedLines& missed) {
        return run_narrow(first, end, missed);
    }
    REVISIT_INLINE Next run_narrow(Next first, Next end, MissedLines& missed) {
        if (row_ == 4) return run<4>(narrow_.data(), first, end, missed);
        if (row_ == 8) return run<8>(narrow_.data(), first, end, missed);
        if (row_ == 16) return run<16>(narrow_.data(), first, end, missed);
        return run<0>(narrow_.data(), first, end, missed);
    }

    template <std::size_t kRow, class Tag>
    REVISIT_INLINE Next run(Tag* tags, Next first, Next end, MissedLines& missed) {
        if (!is_large_) {
            while (first != end && pass<kRow>(tags, place_of<Tag>(first->line),
                                              place_of<Tag>(first->victim), *first, missed))
                ++first;
            return first;
        }
        std::size_t of_line[kAhead], of_victim[kAhead];
        for (; first < end; first += kAhead) {
            const std::size_t count = std::min(kAhead, static_cast<std::size_t>(end - first));
            for (std::size_t i = 0; i < count; ++i) {
                of_line[i] = place_of<Tag>(first[i].line);
                of_victim[i] = place_of<Tag>(first[i].victim);
                __builtin_prefetch(tags + of_line[i] * row<kRow>(), 1);
                __builtin_prefetch(tags + of_victim[i] * row<kRow>(), 1);
                __builtin_prefetch(&counts_[of_line[i]], 1);
                __builtin_prefetch(&counts_[of_victim[i]], 1);
            }
            for (std::size_t i = 0; i < count; ++i)
                if (!pass<kRow>(tags, of_line[i], of_victim[i], first[i], missed)) return first + i;
        }
        return end;
    }

    // False, and nothing done, where the victim finds no room.
    template <std::size_t kRow, class Tag>
    REVISIT_INLINE bool pass(Tag* tags, std::size_t of_line, std::size_t of_victim,
                             const MissedLines::Miss& miss, MissedLines& missed) {
        if (miss.has_victim()) {
            Counts& counts = counts_[of_victim];
            if (counts.queued == row<kRow>()) [[unlikely]]
                return false;
            --counts.above;
            tags[of_victim * row<kRow>() + counts.queued++] = static_cast<Tag>(miss.victim >> shift_);
        }
        look_up<kRow>(tags + of_line * row<kRow>(), counts_[of_line], miss, missed);
        return true;
    }

    template <std::size_t kRow, class Tag>
    REVISIT_INLINE void look_up(Tag* queue, Counts& counts, const MissedLines::Miss& miss,
                                MissedLines& missed) {
        const unsigned queued = counts.queued, all = counts.above + queued;
        const unsigned at = find<kRow>(queue, static_cast<Tag>(miss.line >> shift_), queued);
        ++counts.above;
        // The oldest of the queue are in the ways that are not shared.
        if (at < queued && at + shared_ >= all) {
            --counts.queued;
            return remove<kRow>(queue, at);
        }
        std::uint64_t victim = miss.line;
        if (all >= shared_)
            victim = std::uint64_t{queue[all - shared_]} << shift_ | (miss.line & low());
        if (at < queued || all == ways_) {
            --counts.queued;
            remove<kRow>(queue, at < queued ? at : 0);
        }
        missed.add({miss.line, victim, miss.access, at < queued});
    }

    unsigned ways_, shared_;
    std::size_t most_row_, row_;  // ways, filled up; and what there is room for
    unsigned shift_;              // sets are odd_ << shift_
    std::uint64_t odd_;
    std::size_t spread_;
    bool is_large_;  // to be prefetched
    std::vector<Counts> counts_;
    // Queues, oldest first; tags of 64 bits from the first line on whose tag takes more than 32.
    BigVector<std::uint32_t> narrow_;
    BigVector<std::uint64_t> wide_;
};

}  // namespace revisit
