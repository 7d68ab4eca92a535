// What packed instructions of x86_64 compute: see x64.h.
#pragma once

#include "machine/x64/x64.h"

namespace revisit::machine::x64 {

struct Operand {
    X64Vector value;
    std::uint8_t known = 0;  // a bit for every 16 bytes
};

inline std::uint8_t lanes(unsigned bytes) {
    return bytes <= 16 ? 1 : bytes == 32 ? 3 : 15;
}
inline std::uint64_t element_of(const X64Vector& v, unsigned element, unsigned k) {
    unsigned at = element * k;
    std::uint64_t word = v.word[at >> 3] >> 8 * (at & 7);
    return element == 8 ? word : word & ((std::uint64_t{1} << 8 * element) - 1);
}
inline void set_element(X64Vector& v, unsigned element, unsigned k, std::uint64_t value) {
    unsigned at = element * k, by = 8 * (at & 7);
    std::uint64_t mask = element == 8 ? ~std::uint64_t{0} : (std::uint64_t{1} << 8 * element) - 1;
    v.word[at >> 3] = (v.word[at >> 3] & ~(mask << by)) | (value & mask) << by;
}

// `old` is the destination's value before: two instructions use it beside a and b.
Operand packed(const X64Instruction& i, const Operand& a, const Operand& b, const Operand& old);

// Elements for which it holds, a bit each; the predicate is in i.sub, or in the immediate.
std::uint64_t packed_compare(const X64Instruction& i, const X64Vector& a, const X64Vector& b);

}  // namespace revisit::machine::x64
