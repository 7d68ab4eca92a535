// Which address comes next: what both sides of revisit's own format drive alike (revisit_chunk.h).
//
// Programs walk arrays, so the prediction is "as far from last time as last time was from the time
// before", where "last time" is the last access by the same instruction when sites are known, and
// otherwise the access a fixed number of places back (the length of the loop body).
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

namespace revisit {

inline constexpr std::size_t kLargestLag = 8;
inline constexpr std::size_t kFromLeast = kLargestLag + 1;  // in place of a lag: not predicted
inline constexpr std::size_t kSiteSlots = 4096;

// What is remembered of the last access in a slot.
struct Walk {
    std::uint64_t last = 0;
    std::uint64_t stride = 0;
};

// Which earlier access predicts this one.
struct Predictor {
    std::uint8_t lag = 1;  // 0: by site
    bool by_stride = false;
    std::array<Walk, kSiteSlots> walks{};

    std::size_t slot(std::size_t i, std::uint32_t site) const {
        return lag == 0 ? (site * 0x9e3779b1u) >> 20 : i % lag;
    }
    std::uint64_t predict(std::size_t slot) const {
        return walks[slot].last + (by_stride ? walks[slot].stride : 0);
    }
    void learn(std::size_t slot, std::uint64_t address) {
        walks[slot] = {address, address - walks[slot].last};
    }
};
static_assert(kSiteSlots == std::size_t{1} << 12, "slot() keeps the top 12 bits of 32");

inline std::uint64_t zigzag(std::uint64_t difference) {
    return (difference << 1) ^ (0 - (difference >> 63));
}
inline std::uint64_t unzigzag(std::uint64_t value) {
    return (value >> 1) ^ (0 - (value & 1));
}

// From differences of a chunk to its addresses, some at a time.
class AddressSum {
 public:
    AddressSum(std::size_t lag, bool by_stride, unsigned shift)
        : lag_(lag), by_stride_(by_stride), shift_(shift) {}

    // Predicted from the access `lag` places back, in registers. All but the last call take a multiple
    // of the lag.
    void add_up(std::span<std::uint64_t> values) {
        add_up(values, std::make_index_sequence<kLargestLag>{});
    }
    // Predicted by site.
    void add_up(std::span<std::uint64_t> values, const std::uint32_t* sites, Predictor& by_site) const {
        for (std::size_t i = 0; i < values.size(); ++i) {
            const std::size_t slot = by_site.slot(i, sites[i]);
            values[i] = by_site.predict(slot) + (unzigzag(values[i]) << shift_);
            by_site.learn(slot, values[i]);
        }
    }

 private:
    template <std::size_t... kLags>
    void add_up(std::span<std::uint64_t> values, std::index_sequence<kLags...>) {
        (void)((lag_ == kLags + 1 &&
                (by_stride_ ? add_up<kLags + 1, true>(values) : add_up<kLags + 1, false>(values),
                 true)) ||
               ...);
    }
    template <std::size_t kLag, bool kByStride>
    void add_up(std::span<std::uint64_t> values) {
        const unsigned shift = shift_;
        Walk walks[kLag];
        std::copy_n(walks_.begin(), kLag, walks);
        auto add = [&](std::uint64_t& value, Walk& walk) {
            value = (unzigzag(value) << shift) + walk.last + (kByStride ? walk.stride : 0);
            walk = {value, value - walk.last};
        };
        std::size_t i = 0;
        for (; i + kLag <= values.size(); i += kLag)
            for (std::size_t j = 0; j < kLag; ++j) add(values[i + j], walks[j]);
        for (std::size_t j = 0; i + j < values.size(); ++j) add(values[i + j], walks[j]);
        std::copy_n(walks, kLag, walks_.begin());
    }

    std::size_t lag_;
    bool by_stride_;
    unsigned shift_;
    std::array<Walk, kLargestLag> walks_{};
};

}  // namespace revisit
