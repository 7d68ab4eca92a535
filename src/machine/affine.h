// Values that are affine in the iteration: v + k * s in the k-th one to come.
//
// What a register holds (Form); in how many iterations a comparison of two such values comes out the
// same (Comparison), a narrow value does not wrap (stays_within); in which one registers and address
// are those that a replay ends with (Meeting), or a block is touched (before_touch). Everything here is
// exact for up to kMostIterations; unknown is 0 iterations.
//
//     for (i = 5; i < n; i += 3)    i is {5, slope 3}; with n = 100, `i < n` stays true for 31 more
//                                   iterations, and a[i] (8 bytes each) touches the block of a + 560 in
//                                   5 of them
#pragma once

#include <bit>
#include <cstdint>

namespace revisit::machine {

inline constexpr std::uint64_t kMostIterations = 1u << 24;

constexpr std::uint64_t fewer(std::uint64_t a, std::uint64_t b) {
    return a < b ? a : b;
}

struct Form {  // of a value over iterations: what it is now, and so much more each time
    bool is_affine = false;
    std::int64_t slope = 0;
    bool is_still() const { return is_affine && slope == 0; }
    bool operator==(const Form&) const = default;
};
inline constexpr Form kStill{true, 0};

inline Form operator+(Form a, Form b) {
    if (!a.is_affine || !b.is_affine) return {};
    return {true, static_cast<std::int64_t>(static_cast<std::uint64_t>(a.slope) +
                                            static_cast<std::uint64_t>(b.slope))};
}
inline Form operator*(Form a, std::uint64_t by) {
    if (!a.is_affine) return {};
    return {true, static_cast<std::int64_t>(static_cast<std::uint64_t>(a.slope) * by)};
}
inline Form operator-(Form a, Form b) {
    return a + b * ~std::uint64_t{0};
}

using Long128 = __int128;

// As many as are looked at, at most.
inline std::uint64_t capped(Long128 times) {
    return times < Long128{kMostIterations} ? static_cast<std::uint64_t>(times) : kMostIterations;
}
// How often `step`, which is positive, goes into `way`, which is not negative; at most that.
inline std::uint64_t times_in(Long128 way, Long128 step) {
    constexpr Long128 kNarrow = Long128{1} << 64;
    if (way < kNarrow && step < kNarrow) [[likely]]  // a division of 128 bits takes three times as long
        return fewer(static_cast<std::uint64_t>(way) / static_cast<std::uint64_t>(step),
                     kMostIterations);
    return capped(way / step);
}

// The low `bits` of a value, as a number.
inline Long128 low_bits(std::uint64_t value, unsigned bits, bool is_signed) {
    unsigned rest = 64 - bits;
    return is_signed ? Long128{static_cast<std::int64_t>(value << rest) >> rest}
                     : Long128{value << rest >> rest};
}

// Iterations in which the low bits of a value grow as its form says, and do not wrap.
inline std::uint64_t stays_within(std::uint64_t value, std::int64_t slope, unsigned bits,
                                  bool is_signed) {
    Long128 step = low_bits(static_cast<std::uint64_t>(slope), bits, true);
    if (step == 0) return kMostIterations;
    Long128 size = Long128{1} << bits, low = is_signed ? -size / 2 : Long128{0};
    Long128 now = low_bits(value, bits, is_signed);
    return step > 0 ? times_in(low + size - 1 - now, step) : times_in(now - low, -step);
}

// Two values compared, of which flags or a branch come.
struct Comparison {
    enum class Order : std::uint8_t { equal, below, below_equal, less, less_equal, negative };

    Form a, b;
    std::uint64_t a_value = 0, b_value = 0;
    unsigned bits = 64;

    // In how many iterations to come it is what it is now.
    std::uint64_t stays(Order order) const {
        if (!a.is_affine || !b.is_affine) return 0;
        if (a.slope == 0 && b.slope == 0) return kMostIterations;
        Form apart = a - b;
        std::uint64_t difference = a_value - b_value;
        if (order == Order::negative)
            return Comparison{apart, kStill, difference, 0, bits}.stays(Order::less);
        if (order == Order::equal) {
            Long128 step = low_bits(static_cast<std::uint64_t>(apart.slope), bits, true);
            Long128 missing = -low_bits(difference, bits, true);
            if (step == 0) return kMostIterations;
            if (missing == 0) return 0;  // equal now, and not the next time
            if ((missing > 0) == (step > 0)) {
                Long128 way = missing > 0 ? missing : -missing, each = step > 0 ? step : -step;
                std::uint64_t times = times_in(way, each);
                if (Long128{times} * each == way) return times - 1;
            }
            return stays_within(difference, apart.slope, bits, true);
        }
        // Both are straight lines as long as neither wraps, and meet once.
        bool is_signed = order == Order::less || order == Order::less_equal;
        bool is_strict = order == Order::less || order == Order::below;
        std::uint64_t most = fewer(stays_within(a_value, a.slope, bits, is_signed),
                                   stays_within(b_value, b.slope, bits, is_signed));
        Long128 above = low_bits(a_value, bits, is_signed) - low_bits(b_value, bits, is_signed);
        Long128 step = low_bits(static_cast<std::uint64_t>(a.slope), bits, true) -
                       low_bits(static_cast<std::uint64_t>(b.slope), bits, true);
        bool now = is_strict ? above < 0 : above <= 0;
        if (now ? step <= 0 : step >= 0) return most;
        Long128 way = now ? -above : above;
        if (now == is_strict) way--;  // equal is not what it is now
        return fewer(most, times_in(way, now ? step : -step));
    }
};

// In which iteration to come affine values are all what is wanted of them.
class Meeting {
 public:
    void wants(std::uint64_t value, Form form, std::uint64_t wanted) {
        constexpr std::int64_t kFar = std::int64_t{1} << 38;  // it cannot wrap on the way
        if (!form.is_affine || form.slope > kFar || form.slope < -kFar) return;
        auto missing = static_cast<std::int64_t>(wanted - value);
        if (form.slope == 0 || missing == 0) {
            if (missing != 0 || form.slope != 0) never_ = true;  // now, but not in one to come
            return;
        }
        std::int64_t times = missing / form.slope;
        if (missing % form.slope != 0 || times < 1 ||
            (found_ && static_cast<std::uint64_t>(times) != when_))
            never_ = true;
        when_ = static_cast<std::uint64_t>(times);
        found_ = true;
    }
    // So many come before it; as many as one likes where none does it, none where any may.
    std::uint64_t before() const { return never_ ? kMostIterations : found_ ? when_ - 1 : 0; }

 private:
    std::uint64_t when_ = 0;
    bool found_ = false, never_ = false;
};

// How many blocks an access touches in so many iterations to come: pieces of `bytes`, one after the
// other. Where they begin in a block comes round after a block's worth of steps.
//
//     16 bytes at 8 of a line of 64, slope 16:  1 1 1 2, 1 1 1 2 …: 5 blocks in 4 iterations
inline std::uint64_t blocks_over(std::uint64_t address, unsigned pieces, unsigned bytes, Form where,
                                 std::uint64_t iterations, unsigned shift) {
    std::uint64_t block = std::uint64_t{1} << shift, step = static_cast<std::uint64_t>(where.slope);
    auto blocks_at = [&](std::uint64_t low) {
        std::uint64_t blocks = 0;
        for (unsigned k = 0; k < pieces; k++, low += bytes)
            blocks += ((low + bytes - 1) >> shift) - (low >> shift) + 1;
        return blocks;
    };
    step &= block - 1;
    std::uint64_t period = step == 0 ? 1 : block >> std::countr_zero(step);
    bool is_aligned = bytes <= block && (bytes & (bytes - 1)) == 0 && (address & (bytes - 1)) == 0;
    if (!where.is_affine || (is_aligned && (step & (bytes - 1)) == 0)) period = 1;
    if (period == 1) return iterations * blocks_at(address);
    std::uint64_t all = 0, rest = 0;
    for (std::uint64_t k = 1; k <= period; k++) {
        std::uint64_t here = blocks_at(address + k * static_cast<std::uint64_t>(where.slope));
        all += here;
        if (k <= (iterations & (period - 1))) rest += here;
    }
    return (iterations >> std::countr_zero(period)) * all + rest;
}

// In how many iterations to come an access does not touch the block, and one more: there is one that is
// not left out. None where it is not known what it touches, or where it touches the block each time.
inline std::uint64_t before_touch(std::uint64_t wanted, unsigned shift, std::uint64_t address,
                                  unsigned pieces, unsigned bytes, Form where) {
    constexpr std::int64_t kFar = std::int64_t{1} << 32;
    auto size = static_cast<std::int64_t>(bytes), block = std::int64_t{1} << shift;
    std::int64_t slope = where.slope;
    if (!where.is_affine || slope > kFar || slope < -kFar) return 0;
    // Its first byte is one of [low, high] then, from where it is now.
    auto begin = static_cast<std::int64_t>((wanted << shift) - address);
    std::int64_t low = begin - size * pieces + 1, high = begin + block - 1;
    if (slope < 0) {
        slope = -slope;
        begin = low;
        low = -high;
        high = -begin;
    }
    if (slope == 0) return low <= 0 && 0 <= high ? 0 : kMostIterations;
    if (high < slope) return kMostIterations;
    std::int64_t when = low <= slope ? 1 : (low + slope - 1) / slope;
    if (when * slope > high) return kMostIterations;
    return fewer(kMostIterations, static_cast<std::uint64_t>(when));
}

// In how many iterations a store does not come to a place that stays where it is.
struct Piece {
    std::uint64_t address;
    std::uint64_t bytes;
};
inline std::uint64_t before_store(Piece store, Form where, Piece load) {
    Long128 slope = where.slope, bytes = Long128{store.bytes}, room = Long128{load.bytes};
    Long128 from = static_cast<std::int64_t>(store.address - load.address);
    if (from < room && from + bytes > 0) return 0;
    if (slope == 0 || (slope > 0) == (from > 0)) return kMostIterations;
    Long128 way = slope > 0 ? -from - bytes : from - room;
    Long128 times = way / (slope > 0 ? slope : -slope);
    return capped(times);
}

// What an access touches from now on, in so many iterations.
struct AddressRange {
    std::uint64_t low, high;
    AddressRange(std::uint64_t address, std::uint64_t bytes, std::int64_t slope,
                 std::uint64_t iterations) {
        std::uint64_t last = address + iterations * static_cast<std::uint64_t>(slope);
        low = slope < 0 ? last : address;
        high = (slope < 0 ? address : last) + bytes;
    }
};

}  // namespace revisit::machine
