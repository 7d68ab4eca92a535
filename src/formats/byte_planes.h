// Columns of numbers as planes of bytes.
//
// Problem. Numbers of varying length one after the other take 6 ns each to decode, and zstd 6 ns more:
// high bytes, which are alike, and low bytes, which are not, alternate, so each byte goes through its
// entropy coder.
// Idea. Groups of 64 numbers have as many half bytes each as the widest of them. A column is several
// parts: the widths of its groups, then the lowest bytes of all numbers, then the next bytes of those
// that have them, and so on. An odd half byte shares its byte with that of the number 32 places on. A
// part of like bytes packs to little and one of random bytes stays as it is (plane_parts.h), and
// decoding is loads and interleavings of vectors.
// Cost. 0.2 to 0.4 ns per number (Neoverse V1); random 20-bit numbers take 2.5 bytes, as varints 3.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace revisit {

inline constexpr std::size_t kPlaneGroup = 64;

// A part of a column, unpacked.
struct PlainPart {
    const std::uint8_t* bytes;
    bool alike;  // all of them are equal
};

// The last group is filled up with its first number, so that numbers that are alike stay it.
template <class T>
std::vector<std::string> planes_of(std::span<const T> numbers) {
    constexpr std::size_t kHalf = kPlaneGroup / 2;
    std::vector<std::string> parts(1);
    auto each_group = [&](auto use) {
        for (std::size_t at = 0; at < numbers.size(); at += kPlaneGroup) {
            std::array<T, kPlaneGroup> group;
            group.fill(numbers[at]);
            std::copy_n(numbers.begin() + static_cast<std::ptrdiff_t>(at),
                        std::min(kPlaneGroup, numbers.size() - at), group.begin());
            use(group, at / kPlaneGroup);
        }
    };
    unsigned widest = 0;
    each_group([&](const auto& group, std::size_t) {
        T all = 0;
        for (T number : group) all |= number;
        const auto width = static_cast<unsigned>(std::bit_width(all) + 3) / 4;
        parts[0] += static_cast<char>(width);
        widest = std::max(widest, width);
    });
    for (unsigned plane = 0; 2 * plane < widest; ++plane) {
        std::string bytes(parts[0].size() * kPlaneGroup, '\0');
        char* to = bytes.data();
        each_group([&](const auto& group, std::size_t i) {
            const auto width = static_cast<unsigned>(parts[0][i]);
            auto byte = [&](std::size_t j) { return static_cast<std::uint8_t>(group[j] >> 8 * plane); };
            if (width >= 2 * plane + 2)
                for (std::size_t j = 0; j < kPlaneGroup; ++j) *to++ = static_cast<char>(byte(j));
            else if (width == 2 * plane + 1)
                for (std::size_t j = 0; j < kHalf; ++j)
                    *to++ = static_cast<char>(byte(j) | byte(j + kHalf) << 4);
        });
        bytes.resize(static_cast<std::size_t>(to - bytes.data()));
        parts.push_back(std::move(bytes));
    }
    return parts;
}

// The numbers back, in order.
template <class T>
class PlaneReader {
 public:
    // Takes the parts from next(size) -> optional<PlainPart>. Nothing where they are not those of
    // `count` numbers of this type.
    template <class Next>
    static std::optional<PlaneReader> of(std::size_t count, Next next) {
        PlaneReader reader;
        const std::size_t groups = (count + kPlaneGroup - 1) / kPlaneGroup;
        const std::optional<PlainPart> widths = next(groups);
        if (!widths) return std::nullopt;
        reader.widths_ = widths->bytes;
        std::array<std::size_t, kWidest + 2> groups_of{};
        for (std::size_t i = 0; i < groups; ++i) {
            if (widths->bytes[i] > kWidest) return std::nullopt;
            ++groups_of[widths->bytes[i]];
        }
        bool alike = widths->alike;
        std::size_t wider = groups - groups_of[0];
        for (unsigned plane = 0; wider != 0; ++plane) {
            const std::size_t halves = groups_of[2 * plane + 1];
            const std::optional<PlainPart> part = next(wider * kPlaneGroup - halves * kPlaneGroup / 2);
            if (!part) return std::nullopt;
            reader.planes_[plane] = part->bytes;
            alike =
                alike && part->alike && (halves == 0 || part->bytes[0] >> 4 == (part->bytes[0] & 15));
            wider -= halves + groups_of[2 * plane + 2];
        }
        reader.alike_ = alike;
        return reader;
    }

    // The next `count` numbers: whole groups, or all that are left.
    void take(std::size_t count, T* out) {
        for (; count >= kPlaneGroup; count -= kPlaneGroup, out += kPlaneGroup) take_group(out);
        if (count == 0) return;
        T last[kPlaneGroup];
        take_group(last);
        std::copy_n(last, count, out);
    }
    // All numbers are equal: known without a look at them.
    bool alike() const { return alike_; }

 private:
    using u8x16 = std::uint8_t __attribute__((vector_size(16)));
    using u16x8 = std::uint16_t __attribute__((vector_size(16)));
    using u32x4 = std::uint32_t __attribute__((vector_size(16)));
    static constexpr unsigned kWidest = 2 * sizeof(T);  // in half bytes

    void take_group(T* out) { take_group(*widths_++, out, std::make_index_sequence<kWidest>{}); }
    template <std::size_t... kWidths>
    void take_group(unsigned width, T* out, std::index_sequence<kWidths...>) {
        if (width == 0) std::fill_n(out, kPlaneGroup, T{0});
        (void)((width == kWidths + 1 && (take_group<kWidths + 1>(out), true)) || ...);
    }
    template <std::size_t kWidth>
    void take_group(T* out) {
        for (unsigned quarter = 0; quarter < 4; ++quarter) take_quarter<kWidth>(quarter, out);
        for (unsigned plane = 0; 2 * plane < kWidth; ++plane)
            planes_[plane] += 2 * plane + 1 == kWidth ? kPlaneGroup / 2 : kPlaneGroup;
    }
    // 16 numbers.
    template <std::size_t kWidth>
    void take_quarter(unsigned quarter, T* out) const {
        out += 16 * quarter;
        const u8x16 lowest = bytes<kWidth, 0>(quarter);
        if constexpr (sizeof(T) == 1) {
            put(lowest, out);
        } else {
            const u8x16 next = bytes<kWidth, 1>(quarter);
            const auto low = reinterpret_cast<u16x8>(first_halves(lowest, next)),
                       high = reinterpret_cast<u16x8>(second_halves(lowest, next));
            if constexpr (sizeof(T) == 2) {
                put(low, out);
                put(high, out + 8);
            } else {
                const u8x16 third = bytes<kWidth, 2>(quarter), fourth = bytes<kWidth, 3>(quarter);
                const auto low_top = reinterpret_cast<u16x8>(first_halves(third, fourth)),
                           high_top = reinterpret_cast<u16x8>(second_halves(third, fourth));
                const u32x4 words[] = {reinterpret_cast<u32x4>(first_halves(low, low_top)),
                                       reinterpret_cast<u32x4>(second_halves(low, low_top)),
                                       reinterpret_cast<u32x4>(first_halves(high, high_top)),
                                       reinterpret_cast<u32x4>(second_halves(high, high_top))};
                if constexpr (sizeof(T) == 4) {
                    for (unsigned i = 0; i < 4; ++i) put(words[i], out + 4 * i);
                } else {
                    std::uint32_t tops[16] = {};
                    if constexpr (kWidth > 8) four_tops<kWidth>(quarter, tops);
                    for (unsigned i = 0; i < 4; ++i) {
                        u32x4 top;
                        std::memcpy(&top, tops + 4 * i, sizeof top);
                        put(first_halves(words[i], top), out + 4 * i);
                        put(second_halves(words[i], top), out + 4 * i + 2);
                    }
                }
            }
        }
    }
    // The upper four bytes, of wide numbers: rare enough for the plain form.
    template <std::size_t kWidth>
    void four_tops(unsigned quarter, std::uint32_t* tops) const {
        [&]<std::size_t... kPlanes>(std::index_sequence<kPlanes...>) {
            auto add = [&](u8x16 plane, unsigned shift) {
                for (unsigned i = 0; i < 16; ++i) tops[i] |= std::uint32_t{plane[i]} << shift;
            };
            (add(bytes<kWidth, 4 + kPlanes>(quarter), 8 * kPlanes), ...);
        }
        (std::make_index_sequence<4>{});
    }
    // One byte of 16 numbers.
    template <std::size_t kWidth, std::size_t kPlane>
    u8x16 bytes(unsigned quarter) const {
        u8x16 out{};
        if constexpr (kWidth >= 2 * kPlane + 2) {
            std::memcpy(&out, planes_[kPlane] + 16 * quarter, sizeof out);
        } else if constexpr (kWidth == 2 * kPlane + 1) {
            std::memcpy(&out, planes_[kPlane] + 16 * (quarter % 2), sizeof out);
            out = quarter < 2 ? out & 15 : out >> 4;
        }
        return out;
    }
    template <class Vector>
    static void put(Vector vector, T* out) {
        std::memcpy(out, &vector, sizeof vector);
    }
    static u8x16 first_halves(u8x16 a, u8x16 b) {
        return __builtin_shufflevector(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
    }
    static u8x16 second_halves(u8x16 a, u8x16 b) {
        return __builtin_shufflevector(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15,
                                       31);
    }
    static u16x8 first_halves(u16x8 a, u16x8 b) {
        return __builtin_shufflevector(a, b, 0, 8, 1, 9, 2, 10, 3, 11);
    }
    static u16x8 second_halves(u16x8 a, u16x8 b) {
        return __builtin_shufflevector(a, b, 4, 12, 5, 13, 6, 14, 7, 15);
    }
    static u32x4 first_halves(u32x4 a, u32x4 b) { return __builtin_shufflevector(a, b, 0, 4, 1, 5); }
    static u32x4 second_halves(u32x4 a, u32x4 b) { return __builtin_shufflevector(a, b, 2, 6, 3, 7); }

    const std::uint8_t* widths_ = nullptr;
    std::array<const std::uint8_t*, sizeof(T)> planes_{};
    bool alike_ = false;
};

}  // namespace revisit
