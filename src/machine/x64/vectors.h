// Vector and mask registers of x86_64: see x64.h.
//
// A register of 64 bytes is known by 16. What an instruction writes goes through one place (write): the
// elements its mask leaves out, and the bytes above, which stay with the old encoding and become zero
// with the new ones.
#pragma once

#include "machine/ahead.h"
#include "machine/x64/packed.h"

namespace revisit::machine::x64 {

struct Value {
    std::uint64_t bits = 0;
    bool known = true;
};

class Vectors {
 public:
    explicit Vectors(X64State& state) : s_(state) {}

    // A general register; those of four bytes are extended by zeros.
    Value get(unsigned r, unsigned bytes) const { return {cut(s_.r[r], bytes), s_.is_known(r)}; }
    void put(unsigned r, Value value, unsigned bytes) {
        s_.r[r] = cut(value.bits, bytes);
        s_.known = value.known ? s_.known | slot_bit(r) : s_.known & ~slot_bit(r);
    }
    void set_flags(std::uint8_t which, unsigned values, bool known) {
        Known all{0, s_.flags, s_.flags_known};
        all.set_flags(which, static_cast<std::uint8_t>(values), known);
        s_.flags = all.flags;
        s_.flags_known = all.flags_known;
    }
    Operand get_vector(unsigned v) const { return {s_.v[v], s_.v_known[v]}; }

    // `b` is the operand that may be in memory; those that write memory are not among these.
    void vector(Native i, const Operand& b);
    // What is stored.
    Operand stored(Native i) const;
    // Which elements of memory a masked instruction touches, a bit each. False = not known.
    bool touched_elements(Native i, std::uint64_t& elements) const;
    bool left_out_vectors() const { return left_out_; }
    // What was gathered, and the mask, of which nothing is left.
    void end_gather(Native i, Operand value);

 private:
    bool mask_known(unsigned k) const { return s_.k_known >> k & 1; }
    void put_mask(unsigned k, Value value, unsigned bytes);
    void put_compared(Native i, Value result);
    Value get_mask(unsigned k, unsigned bytes) const { return {cut(s_.k[k], bytes), mask_known(k)}; }
    void write(Native i, const Operand& result, unsigned bytes) { write(i, result, bytes, i.reg); }
    void write(Native i, const Operand& result, unsigned bytes, unsigned to);
    void forget(Native i, unsigned bytes);
    void set_zero_and_carry(bool zero, bool carry, bool known) {
        set_flags(kAllFlags, (zero ? kZero : 0u) | (carry ? kCarry : 0u), known);
    }
    void masks(Native i, const Operand& b);
    void floats(Native i, const Operand& b);
    void halves(Native i, const Operand& b);

    X64State& s_;
    bool left_out_ = false;
};

}  // namespace revisit::machine::x64
