// Vector and mask registers of x86_64: see x64.h.
//
// A register of 64 bytes is known by 16. What an instruction writes goes through one place (write): the
// elements its mask leaves out, and the bytes above, which stay with the old encoding and become zero
// with the new ones.
#pragma once

#include "machine/x64/packed.h"
#include "machine/x64/registers.h"

namespace revisit::machine::x64 {

class Vectors : public Registers {
 public:
    using Registers::Registers;

    Operand get_vector(unsigned v) const { return {s_.v[v], s_.v_known[v]}; }

    // `b` is the operand that may be in memory; those that write memory are not among these.
    void vector(const X64Instruction& i, const Operand& b);
    // What is stored.
    Operand stored(const X64Instruction& i) const;
    // Which elements of memory a masked instruction touches, a bit each. False = not known.
    bool touched_elements(const X64Instruction& i, std::uint64_t& elements) const;
    bool left_out_vectors() const { return left_out_; }

 private:
    bool mask_known(unsigned k) const { return s_.k_known >> k & 1; }
    void put_mask(unsigned k, Value value, unsigned bytes);
    void write(const X64Instruction& i, Operand result, unsigned bytes);
    void forget(const X64Instruction& i, unsigned bytes);
    void masks(const X64Instruction& i, const Operand& b);
    void floats(const X64Instruction& i, const Operand& b);
    void halves(const X64Instruction& i, const Operand& b);

    bool left_out_ = false;
};

}  // namespace revisit::machine::x64
