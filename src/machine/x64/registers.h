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
        s_.known = known ? s_.known | slot_bit(r) : s_.known & ~slot_bit(r);
    }

    void set_flags(std::uint8_t which, std::uint8_t values, bool known) {
        s_.flags = static_cast<std::uint8_t>((s_.flags & ~which) | (values & which));
        s_.flags_known =
            static_cast<std::uint8_t>(known ? s_.flags_known | which : s_.flags_known & ~which);
    }

 protected:
    X64State& s_;
};

}  // namespace revisit::machine::x64
