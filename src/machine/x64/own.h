// Integer values that only x86_64 computes: see x64.h.
//
// A micro-operation `own` names one of these; its operands are a, the second one and c (micro.h), and
// `pieces` where a source has a size of its own. What is undefined is in its `loses`, or not known.
#pragma once

#include "machine/ahead.h"

namespace revisit::machine::x64 {

enum class Own : std::uint8_t {
    rotate_left,  // a by b, of one or two bytes, or by more than the width
    rotate_right,
    shift_left,
    shift_right,
    shift_signed,
    bit_test,  // bit b of a; it is in the carry
    bit_set,
    bit_reset,
    bit_complement,
    population,
    trailing_zeros,
    leading_zeros,
    first_bit,
    last_bit,
    reset_lowest,
    mask_to_lowest,
    lowest,
    zero_high,  // of a, from bit b
    extract_field,
    deposit,  // a, by the mask b
    extract,
    add_carry,
    add_overflow,
    checksum,  // of iSCSI: a, `pieces` bytes of b
    clear_carry,
    set_carry,
    complement_carry,
    load_flags,        // from the low byte of a
    no_transaction,    // the flags of xtest
    high_is_not_zero,  // whether a product is more than its low half, b: the high one is a
    high_is_not_sign,  // …
    quotient,          // c:a by b
    remainder,
    signed_quotient,
    signed_remainder,
    string_chunk,  // bytes to move at once: see string_chunk()
    string_chunk_stored,
};

// What is not in the registers.
struct Unit {
    bool words = false;  // repeated strings go by words, not by elements
    bool has_bmi = true;
    bool floats = true;  // floating point is computed; it rarely matters to what is touched next
};

// How many bytes of a repeated string of `bytes` each are moved or filled at once: one element, as the
// processor does when it is stepped through, or those up to the end of the target's word. Bytes that
// follow each other are then one access, as they are in the code of any other copy.
inline unsigned string_chunk(bool moves, unsigned bytes, std::uint64_t to, std::uint64_t from,
                             std::uint64_t count) {
    auto room = static_cast<unsigned>((8 - (to & 7)) / bytes);
    if (count < room) room = static_cast<unsigned>(count);
    if (moves && to - from < 8) return bytes;  // it reads what it has just written
    return room > 0 ? room * bytes : bytes;
}

Outcome own(const Micro& m, std::uint64_t a, std::uint64_t b, std::uint64_t c, const Known& known,
            Unit unit);

}  // namespace revisit::machine::x64
