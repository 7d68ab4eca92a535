// General registers and flags of x86_64, each with whether its value is known: see x64.h.
#pragma once

#include "machine/x64/x64.h"

namespace revisit::machine::x64 {

struct Value {
    std::uint64_t bits = 0;
    bool known = true;
};

inline std::uint64_t mask(unsigned bytes) {
    return ~std::uint64_t{0} >> (64 - 8 * bytes);
}
inline std::int64_t extended(std::uint64_t value, unsigned bytes) {
    return sign_extend(value, 8 * bytes);
}
inline Value constant(const X64Instruction& i) {
    return {static_cast<std::uint64_t>(i.immediate), true};
}

class Registers {
 public:
    explicit Registers(X64State& state) : s_(state) {}

    Value get(unsigned r, unsigned bytes, bool high = false) const {
        return {(high ? s_.r[r] >> 8 : s_.r[r]) & mask(bytes), s_.is_known(r)};
    }
    void put(unsigned r, Value value, unsigned bytes, bool high = false) {
        bool known = value.known;
        if (bytes < 4) {  // the rest stays
            unsigned by = high ? 8 : 0;
            value.bits = (s_.r[r] & ~(mask(bytes) << by)) | (value.bits & mask(bytes)) << by;
            known &= s_.is_known(r);
        } else
            value.bits &= mask(bytes);
        s_.r[r] = value.bits;
        s_.known = known ? s_.known | 1u << r : s_.known & ~(1u << r);
    }

    void set_flags(std::uint8_t which, std::uint8_t values, bool known) {
        s_.flags = static_cast<std::uint8_t>((s_.flags & ~which) | (values & which));
        s_.flags_known =
            static_cast<std::uint8_t>(known ? s_.flags_known | which : s_.flags_known & ~which);
    }
    static std::uint8_t result_flags(std::uint64_t result, unsigned bytes) {
        result &= mask(bytes);
        unsigned flags = (result == 0 ? kZero : 0u) | (result >> (8 * bytes - 1) ? kSign : 0u);
        if (__builtin_parityll(result & 0xff) == 0) flags |= kParity;
        return static_cast<std::uint8_t>(flags);
    }
    // a + b + carry, or a + ~b + carry, with its flags.
    Value add(Value a, Value b, unsigned carry, unsigned bytes, bool subtract,
              std::uint8_t which = kAllFlags) {
        std::uint64_t m = mask(bytes), x = a.bits & m, y = (subtract ? ~b.bits : b.bits) & m;
        std::uint64_t partial = x + y, sum = (partial + carry) & m, top = 8 * bytes - 1;
        bool carries = bytes == 8 ? partial < x || partial + carry < partial
                                  : (partial + carry) >> (8 * bytes) & 1;
        bool overflow = (~(x ^ y) & (x ^ sum)) >> top & 1;
        unsigned flags = result_flags(sum, bytes) | (carries != subtract ? kCarry : 0u) |
                         (overflow ? kOverflow : 0u);
        bool known = a.known && b.known;
        set_flags(which, static_cast<std::uint8_t>(flags), known);
        return {sum, known};
    }
    // False = it depends on a flag that is not known.
    bool condition(unsigned c, bool& holds) const {
        static constexpr std::uint8_t kNeeds[8] = {kOverflow,
                                                   kCarry,
                                                   kZero,
                                                   kCarry | kZero,
                                                   kSign,
                                                   kParity,
                                                   kSign | kOverflow,
                                                   kSign | kOverflow | kZero};
        std::uint8_t needs = kNeeds[c >> 1];
        if ((s_.flags_known & needs) != needs) return false;
        bool sign_differs = !(s_.flags & kSign) != !(s_.flags & kOverflow);
        holds = c >> 1 < 6    ? (s_.flags & needs) != 0
                : c >> 1 == 6 ? sign_differs
                              : sign_differs || (s_.flags & kZero);
        if (c & 1) holds = !holds;
        return true;
    }

 protected:
    X64State& s_;
};

}  // namespace revisit::machine::x64
