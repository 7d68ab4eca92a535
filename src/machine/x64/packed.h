// What packed instructions of x86_64 compute: see x64.h.
#pragma once

#include "machine/x64/x64.h"

namespace revisit::machine::x64 {

// All of a vector instruction that its micro-operation does not say, in its immediate.
struct Native {
    X64Instruction::Op op : 7;
    std::uint64_t sub : 8, bytes : 7, from : 6, reg : 5, rm : 5, first : 5, mask : 3, log_element : 3;
    bool has_immediate : 1, to_reg : 1, has_memory : 1, writes : 1, clears_above : 1, zeroes : 1,
        broadcasts : 1;
    std::int64_t immediate : 8;

    template <class Sub>
    bool is(Sub which) const {
        return sub == static_cast<std::uint8_t>(which);
    }
    unsigned element() const { return 1u << log_element >> 1; }  // bytes; 0 where there is none
};
static_assert(sizeof(Native) == 8);

struct Operand {
    X64Vector value;
    std::uint8_t known = 0;  // a bit for every 16 bytes
};

inline std::uint8_t lanes(unsigned bytes) {
    return bytes <= 16 ? 1 : bytes == 32 ? 3 : 15;
}
inline std::uint64_t element_of(const X64Vector& v, unsigned element, unsigned k) {
    unsigned at = element * k;
    return v.word[at >> 3] >> 8 * (at & 7) & ones(8 * element);
}
inline void set_element(X64Vector& v, unsigned element, unsigned k, std::uint64_t value) {
    unsigned at = element * k, by = 8 * (at & 7);
    std::uint64_t mask = ones(8 * element);
    v.word[at >> 3] = (v.word[at >> 3] & ~(mask << by)) | (value & mask) << by;
}
// The vector of what of(k) says.
template <class Of>
X64Vector made(unsigned element, unsigned bytes, Of of) {
    X64Vector out;
    for (unsigned k = 0; k < bytes / element; k++) set_element(out, element, k, of(k));
    return out;
}

// `old` is the destination's value before: some instructions use it beside a and b.
Operand packed(Native i, const Operand& a, const Operand& b, const Operand& old, bool flushes);
Operand fused(Native i, const Operand& old, const Operand& a, const Operand& b, bool flushes);

// Elements for which it holds, a bit each; the predicate is in i.sub, or in the immediate.
std::uint64_t packed_compare(Native i, const X64Vector& a, const X64Vector& b);
std::uint64_t float_compare(Native i, const X64Vector& a, const X64Vector& b, bool flushes);

}  // namespace revisit::machine::x64
