// Arithmetic modulo the prime 2^61 - 1.
//
// Polynomials with rational coefficients are fitted and evaluated exactly here: the distances and
// counts we want are integers below 2^60, so their residue is their value, and no fraction ever grows.
// A rational coefficient is recovered from its residue (for printing only) by the half-extended Euclid.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>

namespace revisit::predict {

class Element {
 public:
    static constexpr std::uint64_t kPrime = (std::uint64_t{1} << 61) - 1;

    constexpr Element() = default;
    constexpr Element(std::int64_t value) : value_(reduce_signed(value)) {}

    constexpr Element operator+(Element b) const { return raw(fold(value_ + b.value_)); }
    constexpr Element operator-(Element b) const { return raw(fold(value_ + kPrime - b.value_)); }
    constexpr Element operator-() const { return raw(value_ == 0 ? 0 : kPrime - value_); }
    constexpr Element operator*(Element b) const {
        const auto product = static_cast<unsigned __int128>(value_) * b.value_;
        return raw(fold(static_cast<std::uint64_t>(product & kPrime) +
                        static_cast<std::uint64_t>(product >> 61)));
    }
    constexpr Element& operator+=(Element b) { return *this = *this + b; }
    constexpr Element& operator-=(Element b) { return *this = *this - b; }
    constexpr Element& operator*=(Element b) { return *this = *this * b; }
    constexpr bool operator==(const Element&) const = default;

    // By Euclid's algorithm, which is short for the small numbers that most pivots are.
    constexpr Element inverse() const {
        std::int64_t r0 = kPrime, r1 = static_cast<std::int64_t>(value_), t0 = 0, t1 = 1;
        while (r1 > 1) {
            const auto q = r0 / r1;
            r0 = std::exchange(r1, r0 - q * r1);
            t0 = std::exchange(t1, t0 - q * t1);
        }
        return value_ == 0 ? Element() : Element(t1);
    }

    // The integer of least magnitude with this residue.
    constexpr std::int64_t integer() const {
        return value_ > kPrime / 2 ? -static_cast<std::int64_t>(kPrime - value_)
                                   : static_cast<std::int64_t>(value_);
    }

    // Numerator and denominator, both small, or nothing.
    std::optional<std::pair<std::int64_t, std::int64_t>> rational() const {
        std::int64_t r0 = kPrime, r1 = static_cast<std::int64_t>(value_), t0 = 0, t1 = 1;
        while (r1 > (std::int64_t{1} << 30)) {
            const auto q = r0 / r1;
            r0 = std::exchange(r1, r0 - q * r1);
            t0 = std::exchange(t1, t0 - q * t1);
        }
        if (t1 == 0 || t1 > (std::int64_t{1} << 29) || t1 < -(std::int64_t{1} << 29))
            return std::nullopt;
        return t1 > 0 ? std::pair{r1, t1} : std::pair{-r1, -t1};
    }

 private:
    static constexpr std::uint64_t fold(std::uint64_t v) { return v >= kPrime ? v - kPrime : v; }
    static constexpr std::uint64_t reduce_signed(std::int64_t v) {
        constexpr auto prime = static_cast<std::int64_t>(kPrime);
        const auto m = v > -prime && v < prime ? v : v % prime;
        return static_cast<std::uint64_t>(m < 0 ? m + prime : m);
    }
    static constexpr Element raw(std::uint64_t v) {
        Element e;
        e.value_ = v;
        return e;
    }
    std::uint64_t value_ = 0;
};

}  // namespace revisit::predict
