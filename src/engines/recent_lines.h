// The lines of a small LRU cache, for hits that cost next to nothing.
//
// Problem. Most accesses hit the smallest cache, at any depth of their set, and moving lines to the
// front of their sets took longer than all else. Idea. A hit only notes the time; the oldest line of a
// set is looked for when one has to leave. Where a line was placed last is kept by its last bits, as a
// hint that is checked:
//
//     line ─▶ hint: place ─▶ lines[place] = line?  ─yes─▶ times[place] = now
//                                                  └no──▶ search the set; a miss takes the least time
//
// A set is searched by a byte of each line's hash, sixteen ways at once. Times have 31 bits; ranks take
// their place when those are used up.
// Cost. 14 instructions per hit, some 90 per miss (x86_64).
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "engines/cpu.h"
#include "engines/missed_lines.h"
#include "engines/simd.h"

namespace revisit {

class RecentLines {
 public:
    // Tests start late, to see the times run out.
    RecentLines(std::uint64_t sets, std::size_t ways, std::uint32_t start = 1)
        : sets_(sets),
          mask_(std::has_single_bit(sets) ? sets - 1 : 0),
          ways_(ways),
          row_((ways + kLanes - 1) / kLanes * kLanes),
          now_(start),
          lines_((static_cast<std::size_t>(sets) + 1) * row_),
          bytes_(lines_.size()),
          times_(lines_.size(), kNever) {
        // Hints begin with places outside the sets, where a line is that has another hint.
        lines_[1] = 1;
        hints_[0] = 1;
        for (std::size_t set = 0; set < sets; ++set) {
            // Places that are free have a line of another set.
            std::fill_n(&lines_[first_of(set)], row_, (set + 1) % sets);
            std::fill_n(&times_[first_of(set)], ways, kFree);
        }
    }

    std::uint64_t set_of(std::uint64_t line) const { return mask_ != 0 ? line & mask_ : line % sets_; }

    // At most kMostAtOnce lines.
    static constexpr std::size_t kMostAtOnce = std::size_t{1} << 16;
    void access(std::span<const std::uint64_t> lines, MissedLines& missed) {
        missed.clear(lines.size());
        if (now_ > kNever - kMostAtOnce) renumber();
        const bool is_plain = mask_ != 0 && row_ == kLanes;
        if (kMayHaveAvx2 && has_avx2())
            is_plain ? run<true, true>(lines, missed) : run<true, false>(lines, missed);
        else
            is_plain ? run<false, true>(lines, missed) : run<false, false>(lines, missed);
        now_ += static_cast<std::uint32_t>(lines.size());
    }

 private:
    static constexpr std::size_t kLanes = 16, kHints = 4096;
    static constexpr std::uint32_t kFree = 0, kNever = std::numeric_limits<std::int32_t>::max();

    std::size_t first_of(std::size_t set) const { return (set + 1) * row_; }
    static std::uint8_t byte_of(std::uint64_t line) {
        return static_cast<std::uint8_t>(line * 0x9E3779B97F4A7C15u >> 56);
    }

    template <bool kAvx2, bool kPlain>  // plain: a power of two sets of up to sixteen ways
    void run(std::span<const std::uint64_t> lines, MissedLines& missed) {
        const std::uint64_t* const held = lines_.data();
        const std::uint16_t* const hints = hints_.data();
        std::uint32_t* const times = times_.data();
        const std::uint32_t now = now_;
        for (std::size_t i = 0; i < lines.size(); ++i) {
            const std::uint64_t line = lines[i];
            const std::size_t place = hints[line % kHints];
            if (held[place] == line) [[likely]]
                times[place] = now + static_cast<std::uint32_t>(i);
            else if constexpr (kAvx2)
                search_avx2<kPlain>(line, now + static_cast<std::uint32_t>(i), i, missed);
            else
                search_plain<kPlain>(line, now + static_cast<std::uint32_t>(i), i, missed);
        }
    }

    // Kept apart: inlined it takes the registers that hits need.
    template <bool kPlain>
    REVISIT_AVX2 [[gnu::noinline]] void search_avx2(std::uint64_t line, std::uint32_t time,
                                                    std::size_t access, MissedLines& missed) {
        search<kPlain>(line, time, access, missed);
    }
    template <bool kPlain>
    [[gnu::noinline]] void search_plain(std::uint64_t line, std::uint32_t time, std::size_t access,
                                        MissedLines& missed) {
        search<kPlain>(line, time, access, missed);
    }
    template <bool kPlain>
    REVISIT_INLINE void search(std::uint64_t line, std::uint32_t time, std::size_t access,
                               MissedLines& missed) {
        const std::size_t row = kPlain ? kLanes : row_;
        const std::size_t first =
            (static_cast<std::size_t>(kPlain ? line & mask_ : set_of(line)) + 1) * row;
        std::uint64_t* const lines = lines_.data() + first;
        std::uint8_t* const bytes = bytes_.data() + first;
        std::uint32_t* const times = times_.data() + first;
        const std::uint8_t byte = byte_of(line);
        std::uint64_t equal = 0;
        for (std::size_t at = 0; at < row; at += kLanes)
            equal |= std::uint64_t{simd::equal_bits(bytes + at, byte)} << at;
        std::size_t way = 0;
        for (; equal != 0; equal &= equal - 1) {
            way = static_cast<std::size_t>(std::countr_zero(equal));
            if (lines[way] == line) break;
        }
        if (equal == 0) {
            way = oldest<kPlain>(times);
            missed.add({line, times[way] == kFree ? line : lines[way],
                        static_cast<std::uint32_t>(access), false});
            lines[way] = line;
            bytes[way] = byte;
        }
        times[way] = time;
        if (first + way <= std::numeric_limits<std::uint16_t>::max())
            hints_[line % kHints] = static_cast<std::uint16_t>(first + way);
    }

    template <bool kPlain>
    REVISIT_INLINE std::size_t oldest(const std::uint32_t* times) const {
        return simd::least_at(times, kPlain ? kLanes : row_);
    }

    void renumber() {
        std::vector<std::uint32_t> order;
        for (std::size_t first = first_of(0); first < times_.size(); first += row_) {
            order.assign(&times_[first], &times_[first] + ways_);
            std::ranges::sort(order);
            for (std::size_t way = 0; way < ways_; ++way)
                if (std::uint32_t& time = times_[first + way]; time != kFree)
                    time = 1 + static_cast<std::uint32_t>(std::ranges::lower_bound(order, time) -
                                                          order.begin());
        }
        now_ = 1 + static_cast<std::uint32_t>(ways_);
    }

    std::uint64_t sets_, mask_;  // mask: sets - 1 where that is a power of two
    std::size_t ways_, row_;     // row: ways, filled up with places that are never free
    std::uint32_t now_;
    std::vector<std::uint64_t> lines_;
    std::vector<std::uint8_t> bytes_;
    std::vector<std::uint32_t> times_;  // of the last access
    std::vector<std::uint16_t> hints_ = std::vector<std::uint16_t>(kHints);
};

}  // namespace revisit
