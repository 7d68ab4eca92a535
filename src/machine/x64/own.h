// Integer values that only x86_64 computes: see x64.h.
//
// A micro-operation `own` names one of these; its operands are a, the second one and c (micro.h), and
// `pieces` where a source has a size of its own. What is undefined is in its `loses`, or not known.
#pragma once

#include "machine/ahead.h"

namespace revisit::machine::x64 {

enum class Own : std::uint8_t {
    rol,  // a by b, of one or two bytes, or by more than the width
    ror,
    shl,
    shr,
    sar,
    bt,  // bit b of a; it is in the carry
    bts,
    btr,
    btc,
    popcnt,
    tzcnt,
    lzcnt,
    bsf,
    bsr,
    blsr,
    blsmsk,
    blsi,
    bzhi,  // of a, from bit b
    bextr,
    pdep,  // a, by the mask b
    pext,
    adcx,
    adox,
    crc32,  // of iSCSI: a, `pieces` bytes of b
    clc,
    stc,
    cmc,
    sahf,              // from the low byte of a
    xtest,             // its flags
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
