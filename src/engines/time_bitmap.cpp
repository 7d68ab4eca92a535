#include "engines/time_bitmap.h"

#include <algorithm>
#include <cstring>

#include "engines/cpu.h"

namespace revisit {
namespace {

using namespace simd;

// Rows of lanes to subtract from: `from` has all bits set in lanes j >= row, `after` in lanes j > row.
struct LaneMasks {
    alignas(64) std::uint16_t from_of_16[16][16];
    alignas(64) std::uint16_t after_of_8[8][8];
    alignas(64) std::uint32_t after_of_16[16][16];
};

consteval LaneMasks make_lane_masks() {
    LaneMasks masks{};
    for (unsigned row = 0; row < 16; row++)
        for (unsigned lane = 0; lane < 16; lane++) {
            masks.from_of_16[row][lane] = lane >= row ? 0xffff : 0;
            masks.after_of_16[row][lane] = lane > row ? ~0u : 0;
            if (row < 8 && lane < 8) masks.after_of_8[row][lane] = lane > row ? 0xffff : 0;
        }
    return masks;
}

constexpr LaneMasks kLaneMasks = make_lane_masks();

template <class Vector, unsigned kVectors, class Lane>
REVISIT_INLINE void subtract_masked(Lane* lanes, const Lane* mask, Vector amount) {
    constexpr unsigned kLanes = sizeof(Vector) / sizeof(Lane);
    for (unsigned i = 0; i < kVectors * kLanes; i += kLanes)
        store(lanes + i, load<Vector>(lanes + i) - (load<Vector>(mask + i) & amount));
}

// earlier_less[i] = #{ i' < i : keys[i'] < keys[i] } for i < count <= 64.
REVISIT_INLINE void count_earlier_less(std::int8_t* keys, std::uint8_t* earlier_less, unsigned count) {
    static constexpr std::int8_t kAfter[32] = {0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,
                                               0,  0,  0,  0,  0,  -1, -1, -1, -1, -1, -1,
                                               -1, -1, -1, -1, -1, -1, -1, -1, -1, -1};
    for (unsigned i = count; (i & 15) != 0; i++) keys[i] = 0;
    s8x16 key[4], sum[4] = {};
    for (unsigned b = 0; b < 4; b++) key[b] = load<s8x16>(keys + 16 * b);
#pragma GCC unroll 4
    for (unsigned b = 0; b < 4; b++) {
        if (16 * b >= count) break;
#pragma GCC unroll 16
        for (unsigned i = 0; i < 16; i++) {
            const s8x16 one = s8x16{} + keys[16 * b + i];
            sum[b] += (one < key[b]) & load<s8x16>(kAfter + 15 - i);
            for (unsigned later = b + 1; later < 4; later++) sum[later] += one < key[later];
        }
    }
    for (unsigned b = 0; b < 4; b++) store(earlier_less + 16 * b, -sum[b]);
}

// before[j] = number of bits of `bits` below j.
REVISIT_INLINE void count_bits_before(std::uint64_t bits, std::uint8_t* before) {
    constexpr std::uint64_t kOnes = 0x0101010101010101u;
    std::uint64_t sum = 0;  // in every byte
    for (unsigned b = 0; b < 8; b++) {
        // Bit i of the byte to byte i of a word, then every byte gets the sum of those below it.
        std::uint64_t spread = ((bits >> (8 * b)) & 255) * kOnes & 0x8040201008040201u;
        spread = ((spread + 0x7f7f7f7f7f7f7f7fu) >> 7) & kOnes;
        const std::uint64_t up_to = spread * kOnes + sum;
        store(before + 8 * b, up_to - spread);
        sum = (up_to >> 56) * kOnes;
    }
}

REVISIT_INLINE unsigned take_lowest(std::uint64_t& bits) {
    const auto j = static_cast<unsigned>(std::countr_zero(bits));
    bits &= bits - 1;
    return j;
}

REVISIT_INLINE std::uint32_t popcount(std::uint64_t bits) {
    return static_cast<std::uint32_t>(std::popcount(bits));
}

}  // namespace

void TimeBitmap::restart(std::uint64_t lines, std::uint32_t live, unsigned least_levels) {
    const std::uint64_t span = lines * 512;
    const unsigned needed = span <= 1u << 20 ? 2 : span <= 1u << 24 ? 3 : span <= 1u << 28 ? 4 : 5;
    levels_ = std::max(needed, least_levels);
    const std::uint64_t tops = (span >> top_shift(levels_)) + 1;
    // Vectors are loaded whole: every array ends on a full one.
    words_.require(lines * 8);
    lines_.require(lines / 16 * 16 + 16);
    groups_.require(lines / 128 * 8 + 8);
    regions_.require(lines / 2048 * 16 + 16);
    provinces_.require(lines / 32768 * 16 + 16);
    top_marks_.require(tops + 4);
    top_before_.require(tops + 4);
    std::memset(words_.data(), 0, lines * 64);
    std::memset(top_marks_.data(), 0, tops * 4);
    lines_[0] = groups_[0] = 0;
    regions_[0] = provinces_[0] = 0;
    word_end_ = static_cast<std::uint32_t>(lines * 8);
    word_ = kFirstWord;
    settled_ = 1;
    stale_top_ = 0;
    live_ = 0;
    for (std::uint32_t left = live; left > 0;) {
        const std::uint32_t count = std::min(left, 64u);
        close_word(~std::uint64_t{0} >> (64 - count), count);
        left -= count;
    }
    rebuild_tops();
}

REVISIT_INLINE void TimeBitmap::close_word(std::uint64_t marks, std::uint32_t count) {
    words_[word_] = marks;
    words_[word_ | 7] += count * tally_step(word_);
    live_ += count;
    word_++;
    if ((word_ & 7) == 7) {
        word_++;
        if (word_ >> 3 >= settled_ + kRecentLines) settle_line();
    }
}

// The oldest recent line enters the sums.
void TimeBitmap::settle_line() {
    const std::uint32_t line = settled_++;
    const std::uint32_t marks = marks_from(words_[std::size_t{line} * 8 + 7], 0);
    std::uint32_t before = lines_[line - 1];
    if ((line & 15) == 0) {
        const std::uint32_t group = line >> 4;
        before += groups_[group - 1];
        if ((group & 7) == 0) {
            const std::uint32_t region = group >> 3;
            before += regions_[region - 1];
            if ((region & 15) == 0) {
                const std::uint32_t province = region >> 4;
                before += provinces_[province - 1];
                provinces_[province] = (province & 15) == 0 ? 0 : before;
                before = 0;
            }
            regions_[region] = before;
            before = 0;
        }
        groups_[group] = static_cast<std::uint16_t>(before);
        before = 0;
    }
    lines_[line] = static_cast<std::uint16_t>(before + marks);
    const std::uint32_t top = line >> (top_shift(levels_) - 9);
    top_marks_[top] += marks;
    stale_top_ = std::min(stale_top_, top);
}

void TimeBitmap::rebuild_tops() {
    const std::uint32_t last = (settled_ - 1) >> (top_shift(levels_) - 9);
    std::uint32_t top = stale_top_;
    stale_top_ = ~0u;
    if (top > last) return;
    std::uint32_t sum = top == 0 ? 0 : top_before_[top - 1] + top_marks_[top - 1];
    for (; (top & 3) != 0; top++) {
        top_before_[top] = sum;
        sum += top_marks_[top];
    }
    u32x4 carry = u32x4{} + sum;
    const u32x4 zero = {};
    for (; top <= last; top += 4) {
        const u32x4 marks = load<u32x4>(&top_marks_[top]);
        u32x4 up_to = marks + __builtin_shufflevector(zero, marks, 0, 4, 5, 6);
        up_to += __builtin_shufflevector(zero, up_to, 0, 1, 4, 5);
        store(&top_before_[top], carry + up_to - marks);
        carry += __builtin_shufflevector(up_to, up_to, 3, 3, 3, 3);
    }
}

void TimeBitmap::settle() {
    while (settled_ << 3 < word_) settle_line();
    rebuild_tops();
}

void TimeBitmap::stop_growing() {
    words_.stop_growing();
    lines_.stop_growing();
    groups_.stop_growing();
    for (auto* array : {&regions_, &provinces_, &top_marks_, &top_before_}) array->stop_growing();
}

// Writes back a word that lost `cleared` marks. Lanes of lines and groups not yet settled are changed
// too; they are set when their time comes.
template <unsigned kLevels>
REVISIT_INLINE void TimeBitmap::clear(std::uint32_t word, std::uint64_t left, std::uint64_t tallies,
                                      std::uint32_t cleared) {
    words_[word] = left;
    words_[word | 7] = tallies - cleared * tally_step(word);
    const std::uint32_t line = word >> 3, group = word >> 7, region = word >> 10, province = word >> 14;
    const u16x8 cleared16 = u16x8{} + static_cast<std::uint16_t>(cleared);
    const u32x4 cleared32 = u32x4{} + cleared;
    subtract_masked<u16x8, 2>(&lines_[group * 16], kLaneMasks.from_of_16[line & 15], cleared16);
    if constexpr (kLevels >= 3)
        subtract_masked<u16x8, 1>(&groups_[region * 8], kLaneMasks.after_of_8[group & 7], cleared16);
    if constexpr (kLevels >= 4)
        subtract_masked<u32x4, 4>(&regions_[region & ~15u], kLaneMasks.after_of_16[region & 15],
                                  cleared32);
    if constexpr (kLevels >= 5)
        subtract_masked<u32x4, 4>(&provinces_[province & ~15u], kLaneMasks.after_of_16[province & 15],
                                  cleared32);
    top_marks_[word >> (top_shift(kLevels) - 6)] -= cleared;
}

// The distance is the number of marks after the block's own: in its line, in later lines, and in this
// batch, where j accesses less those of blocks seen twice have set one.
REVISIT_INLINE unsigned TimeBitmap::count_recent(const std::uint32_t* previous, std::uint64_t recent,
                                                 std::uint64_t inside, std::uint32_t* distances,
                                                 std::uint8_t* order) {
    std::uint64_t* const words = words_.data();
    const std::uint32_t newest = word_ >> 3;
    std::uint32_t after_line[kRecentLines];  // by age
    std::uint32_t sum = 0;
    for (unsigned age = 0; age < kRecentLines; age++) {
        after_line[age] = sum;
        // Before the first line there is line 0, which is empty; ages beyond it are never asked for.
        const std::uint32_t line = newest >= age ? newest - age : 0;
        sum += marks_from(words[std::size_t{line} * 8 + 7], 0);
    }
    std::uint8_t inside_before[64];
    count_bits_before(inside, inside_before);

    std::int8_t ages[64];
    std::uint8_t younger[64];
    unsigned count = 0;
    std::uint32_t word = 0, cleared = 0, marks_after = 0, age = 0;
    std::uint64_t marks = 0, tallies = 0;
    while (recent != 0) {
        const unsigned j = take_lowest(recent);
        const std::uint32_t position = previous[j];
        if (position >> 6 != word) {
            words[word] = marks;
            words[word | 7] = tallies - cleared * tally_step(word);
            word = position >> 6;
            cleared = 0;
            marks = words[word];
            tallies = words[word | 7];
            age = newest - (word >> 3);
            marks_after = after_line[age] + marks_from(tallies, word);
        }
        distances[count] =
            marks_after - popcount(marks << (~position & 63)) - cleared + j - inside_before[j];
        if (order != nullptr) order[count] = static_cast<std::uint8_t>(j);
        ages[count++] = static_cast<std::int8_t>(age);
        marks &= ~(std::uint64_t{1} << (position & 63));
        cleared++;
    }
    words[word] = marks;
    words[word | 7] = tallies - cleared * tally_step(word);
    // after_line was taken before the batch: marks cleared in younger lines since are not there any
    // more.
    count_earlier_less(ages, younger, count);
    for (unsigned i = 0; i < count; i++) distances[i] -= younger[i];
    return count;
}

// The distance is the number of all marks, which grows with every fresh block, less those up to the
// block's own.
template <unsigned kLevels>
REVISIT_INLINE unsigned TimeBitmap::count_old(const std::uint32_t* previous, std::uint64_t old,
                                              std::uint64_t fresh, std::uint32_t* distances,
                                              std::uint8_t* order) {
    std::uint8_t fresh_before[64];
    count_bits_before(fresh, fresh_before);

    std::int8_t tops[64];
    std::uint8_t lower[64];
    unsigned count = 0;
    std::uint32_t word = 0, cleared = 0, not_up_to = 0, top = 0, lowest = ~0u;
    std::uint64_t marks = 0, tallies = 0;
    while (old != 0) {
        const unsigned j = take_lowest(old);
        const std::uint32_t position = previous[j];
        if (position >> 6 != word) {
            clear<kLevels>(word, marks, tallies, cleared);
            word = position >> 6;
            cleared = 0;
            marks = words_[word];
            tallies = words_[word | 7];
            not_up_to = live_ + marks_from(tallies, word) - marks_up_to_line<kLevels>(position);
            top = position >> top_shift(kLevels);
            lowest = std::min(lowest, top);
        }
        distances[count] = not_up_to + fresh_before[j] - popcount(marks << (~position & 63));
        if (order != nullptr) order[count] = static_cast<std::uint8_t>(j);
        tops[count++] = static_cast<std::int8_t>(top - 128);
        marks &= ~(std::uint64_t{1} << (position & 63));
        cleared++;
    }
    clear<kLevels>(word, marks, tallies, cleared);
    // top_before_ was rebuilt before the batch: it still counts marks cleared under lower tops since.
    count_earlier_less(tops, lower, count);
    for (unsigned i = 0; i < count; i++) distances[i] += lower[i];
    stale_top_ = std::min(stale_top_, lowest + 1);
    return count;
}

template <unsigned kLevels, bool kOrdered>
REVISIT_INLINE TimeBitmap::Counted TimeBitmap::count_batch(const std::uint32_t* previous,
                                                           unsigned batch, std::uint32_t* distances,
                                                           std::uint8_t* order) {
    const std::uint64_t all = ~std::uint64_t{0} >> (64 - batch);
    const Comparison compared = compare(previous, settled_ * 512, position());
    const std::uint64_t fresh = compared.zero & all;
    const std::uint64_t old = compared.below_low & ~compared.zero & all;
    const std::uint64_t recent = compared.below_high & ~compared.below_low & all;
    std::uint64_t inside = ~compared.below_high & all;
    unsigned count = 0;
    if constexpr (!kOrdered) order = nullptr;
    auto rest_of_order = [&] { return kOrdered ? order + count : nullptr; };

    if (recent != 0) count += count_recent(previous, recent, inside, distances, rest_of_order());
    if (old != 0) count += count_old<kLevels>(previous, old, fresh, distances + count, rest_of_order());
    live_ -= count;
    std::uint64_t gone = 0;  // marks set in this batch and moved since
    while (inside != 0) {
        const unsigned j = take_lowest(inside);
        const std::uint32_t bit = previous[j] & 63;
        const std::uint64_t marks = ((std::uint64_t{1} << j) - 1) & ~gone;
        distances[count] = popcount(marks >> bit) - 1;
        if constexpr (kOrdered) order[count] = static_cast<std::uint8_t>(j);
        gone |= std::uint64_t{1} << bit;
        count++;
    }
    close_word(all & ~gone, popcount(all & ~gone));
    rebuild_tops();
    return {count, fresh};
}

template <unsigned kLevels, bool kOrdered>
TimeBitmap::Counted TimeBitmap::count(const std::uint32_t* previous, unsigned batch,
                                      std::uint32_t* distances, std::uint8_t* order) {
    return count_batch<kLevels, kOrdered>(previous, batch, distances, order);
}

template <unsigned kLevels, bool kOrdered>
REVISIT_AVX2 TimeBitmap::Counted TimeBitmap::count_avx2(const std::uint32_t* previous, unsigned batch,
                                                        std::uint32_t* distances, std::uint8_t* order) {
    return count_batch<kLevels, kOrdered>(previous, batch, distances, order);
}

template <bool kOrdered>
TimeBitmap::Count TimeBitmap::counter_for_levels() const {
    if constexpr (kMayHaveAvx2) {
        static const bool avx2 = has_avx2();
        if (avx2) switch (levels_) {
                case 2:
                    return &TimeBitmap::count_avx2<2, kOrdered>;
                case 3:
                    return &TimeBitmap::count_avx2<3, kOrdered>;
                case 4:
                    return &TimeBitmap::count_avx2<4, kOrdered>;
                default:
                    return &TimeBitmap::count_avx2<5, kOrdered>;
            }
    }
    switch (levels_) {
        case 2:
            return &TimeBitmap::count<2, kOrdered>;
        case 3:
            return &TimeBitmap::count<3, kOrdered>;
        case 4:
            return &TimeBitmap::count<4, kOrdered>;
        default:
            return &TimeBitmap::count<5, kOrdered>;
    }
}

TimeBitmap::Count TimeBitmap::counter(bool ordered) const {
    return ordered ? counter_for_levels<true>() : counter_for_levels<false>();
}

}  // namespace revisit
