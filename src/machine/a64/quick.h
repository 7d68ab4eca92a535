// Instructions of aarch64 decoded once: the common ones, ready to be executed in a few operations.
//
// Problem. The look-ahead goes through loops; decoding each instruction every time it comes by is most
// of its cost. Idea. Keep what decoding yields, by address, beside the instruction it was made from
// (code that is rewritten is decoded again). Only the common forms are here, and only for operands that
// are known: all else takes the general way (a64/integer.cpp, a64/memory.cpp), which does the same for
// every form. tests/machine_a64_test.cpp holds the two against each other. Cost. 3 to 5 ns an
// instruction against 13 to 17 the general way.
#pragma once

#include "machine/a64/a64.h"

namespace revisit::machine {

struct QuickInstruction {
    enum class Kind : std::uint8_t {
        general,  // not one of these
        constant,
        address,       // adr
        page_address,  // adrp
        move,
        add_immediate,
        add,
        subtract,
        bit_and,
        bit_or,
        bit_xor,
        and_immediate,
        or_immediate,
        xor_immediate,
        compare_immediate,
        compare,
        field,         // (n << d1) >> d2
        signed_field,  // the same, with the sign
        select,        // csel and cset
        jump,
        call,
        jump_if,
        jump_zero,
        jump_bit,
        jump_register,
        load,
        store,
        load_pair,
        store_pair,
        vector_load,  // one or two registers, values not followed
        vector_store,
        vector_skip,  // arithmetic on vector registers, not followed
    };
    enum class Mode : std::uint8_t { offset, after, before, index, signed_index, unsigned_index };

    std::uint32_t instruction = 0;
    std::uint32_t needs = 0;  // registers that must be known
    Kind kind = Kind::general;
    std::uint8_t d = 0, n = 0, m = 0, shift = 0, shift_right = 0;
    bool wide = true;
    bool is_negative =
        false;  // the condition, the bit or zero is to be false; select: otherwise add one
    Mode mode = Mode::offset;
    std::uint8_t bytes = 0, pieces = 1;
    std::uint8_t extend = 0;  // as MemoryOperation's
    std::int64_t value = 0;
};

QuickInstruction decode_quick(std::uint32_t instruction);

class QuickTable {
 public:
    const QuickInstruction& at(std::uint64_t pc, std::uint32_t instruction) {
        QuickInstruction& entry = entries_[pc / 4 % kEntries];
        if (entry.instruction != instruction) entry = decode_quick(instruction);
        return entry;
    }

 private:
    static constexpr unsigned kEntries = 2048;
    QuickInstruction entries_[kEntries];
};

}  // namespace revisit::machine
