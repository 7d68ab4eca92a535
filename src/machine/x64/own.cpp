#include "machine/x64/own.h"

namespace revisit::machine::x64 {
namespace {

// By any count, as those of one and two bytes are.
Outcome shift(Own what, std::uint64_t a, std::uint64_t by, unsigned bytes, const Known& known) {
    unsigned width = 8 * bytes, count = by & (bytes == 8 ? 63 : 31), rotate = count % width;
    if (count == 0) return {a, known.flags, true, known.flags_known == kAllFlags};
    std::uint64_t result = 0, top = std::uint64_t{1} << (width - 1);
    bool carry = false, rotates = what <= Own::ror;
    switch (what) {
        case Own::rol:
            result = rotate ? a << rotate | a >> (width - rotate) : a;
            break;
        case Own::ror:
            result = rotate ? a >> rotate | a << (width - rotate) : a;
            break;
        case Own::shl:
            result = a << count;
            carry = count <= width && (a >> (width - count) & 1);
            break;
        case Own::shr:
            result = a >> count;
            carry = a >> (count - 1) & 1;
            break;
        default:
            result = static_cast<std::uint64_t>(sign_extend(a, width) >> count);
            carry = sign_extend(a, width) >> (count - 1) & 1;
    }
    result = cut(result, bytes);
    if (rotates) carry = what == Own::rol ? result & 1 : (result & top) != 0;
    auto flags = static_cast<std::uint8_t>(result_flags(result, bytes) | (carry ? kCarry : 0));
    return {result, flags, count <= width, count <= width};
}

// rdx:rax, or ax, by b. Where the quotient does not fit the program ends.
Outcome divide(Own what, std::uint64_t a, std::uint64_t b, std::uint64_t high, unsigned bytes) {
    unsigned width = 8 * bytes;
    bool is_remainder = what == Own::remainder || what == Own::signed_remainder;
    if (bytes == 1) high = a >> 8 & 0xff;
    a = cut(a, bytes);
    b = cut(b, bytes);
    high = cut(high, bytes);
    if (what == Own::quotient || what == Own::remainder) {
        if (high >= b) return {0, 0, false, false};
        auto whole = static_cast<unsigned __int128>(high) << width | a;
        return {static_cast<std::uint64_t>(is_remainder ? whole % b : whole / b)};
    }
    std::int64_t n = sign_extend(a, width), d = sign_extend(b, width);
    if (d == 0 || d == -1 || high != (n < 0 ? ones(width) : 0)) return {0, 0, false, false};
    return {static_cast<std::uint64_t>(is_remainder ? n % d : n / d)};
}

std::uint64_t checksum(std::uint64_t sum, std::uint64_t value, unsigned bytes) {
    auto crc = static_cast<std::uint32_t>(sum);
    for (unsigned k = 0; k < bytes; k++) {
        crc ^= static_cast<std::uint8_t>(value >> 8 * k);
        for (unsigned bit = 0; bit < 8; bit++) crc = crc >> 1 ^ (crc & 1 ? 0x82f63b78u : 0);
    }
    return crc;
}

std::uint64_t by_mask(bool deposits, std::uint64_t a, std::uint64_t mask) {
    std::uint64_t result = 0;
    unsigned k = 0;
    for (unsigned bit = 0; bit < 64; bit++) {
        if (!(mask >> bit & 1)) continue;
        if (deposits)
            result |= (a >> k++ & 1) << bit;
        else
            result |= (a >> bit & 1) << k++;
    }
    return result;
}

Outcome with_carry(std::uint64_t result, bool carry, unsigned bytes) {
    return {cut(result, bytes),
            static_cast<std::uint8_t>(result_flags(cut(result, bytes), bytes) | (carry ? kCarry : 0))};
}

Outcome flag(std::uint8_t which, bool is_set) {
    return {0, static_cast<std::uint8_t>(is_set ? which : 0)};
}

}  // namespace

Outcome own(const Micro& m, std::uint64_t a, std::uint64_t b, std::uint64_t c, const Known& known,
            Unit unit) {
    auto what = static_cast<Own>(m.lanes);
    unsigned bytes = m.bytes, width = 8 * bytes;
    if (what >= Own::quotient && what <= Own::signed_remainder) return divide(what, a, b, c, bytes);
    if (what == Own::string_chunk || what == Own::string_chunk_stored)
        return {unit.words ? string_chunk(what == Own::string_chunk, m.pieces, a, b, c) : m.pieces};
    a = cut(a, bytes);
    if (what != Own::crc32) b = cut(b, bytes);
    switch (what) {
        case Own::rol:
        case Own::ror:
        case Own::shl:
        case Own::shr:
        case Own::sar:
            return shift(what, a, b, bytes, known);
        case Own::bt:
        case Own::bts:
        case Own::btr:
        case Own::btc: {
            std::uint64_t bit = std::uint64_t{1} << (b & (width - 1));
            std::uint64_t result = what == Own::bts ? a | bit : what == Own::btr ? a & ~bit : a ^ bit;
            return {result, static_cast<std::uint8_t>(a & bit ? kCarry : 0)};
        }
        case Own::popcnt:
            return {static_cast<std::uint64_t>(std::popcount(a)),
                    static_cast<std::uint8_t>(a == 0 ? kZero : 0)};
        case Own::tzcnt:
        case Own::lzcnt: {
            std::uint64_t result = a == 0 ? width
                                   : what == Own::tzcnt
                                       ? static_cast<unsigned>(std::countr_zero(a))
                                       : static_cast<unsigned>(std::countl_zero(a)) - (64 - width);
            // Taken for bsf, and lzcnt for bsr, where the processor knows no better.
            if (!unit.has_bmi) return {result, 0, what == Own::tzcnt && a != 0, false};
            return {result,
                    static_cast<std::uint8_t>((a == 0 ? kCarry : 0) | (result == 0 ? kZero : 0))};
        }
        case Own::bsf:
        case Own::bsr: {  // of 0: the register keeps what it had, more or less
            if (a == 0) return {0, kZero, false};
            int bit = what == Own::bsf ? std::countr_zero(a) : 63 - std::countl_zero(a);
            return {static_cast<std::uint64_t>(bit), 0};
        }
        case Own::blsr:
            return with_carry(a & (a - 1), a == 0, bytes);
        case Own::blsmsk:
            return with_carry(a ^ (a - 1), a == 0, bytes);
        case Own::blsi:
            return with_carry(a & (0 - a), a != 0, bytes);
        case Own::bzhi: {
            unsigned bits = b & 255;
            return with_carry(bits < width ? a & ones(bits) : a, bits >= width, bytes);
        }
        case Own::bextr: {
            unsigned from = b & 255, bits = b >> 8 & 255;
            std::uint64_t result = (from < width ? a >> from : 0) & ones(bits < 64 ? bits : 64);
            return {result, static_cast<std::uint8_t>(result == 0 ? kZero : 0)};
        }
        case Own::pdep:
        case Own::pext:
            return {by_mask(what == Own::pdep, a, b)};
        case Own::adcx:
        case Own::adox: {
            std::uint8_t which = what == Own::adcx ? kCarry : kOverflow;
            Sum sum = sum_of(a, b, (known.flags & which) != 0, bytes);
            bool can_tell = known.flags_known & which;
            return {sum.result, static_cast<std::uint8_t>(sum.flags & kCarry ? which : 0), can_tell,
                    can_tell};
        }
        case Own::crc32:
            return {checksum(a, b, m.pieces)};
        case Own::clc:
        case Own::stc:
            return flag(kCarry, what == Own::stc);
        case Own::cmc:
            return {0, static_cast<std::uint8_t>(known.flags ^ kCarry), true,
                    (known.flags_known & kCarry) != 0};
        case Own::sahf:
            return {0, static_cast<std::uint8_t>((a & 1 ? kCarry : 0) | (a & 4 ? kParity : 0) |
                                                 (a & 64 ? kZero : 0) | (a & 128 ? kSign : 0))};
        case Own::xtest:
            return flag(kZero, true);
        case Own::high_is_not_zero:
            return flag(kCarry | kOverflow, a != 0);
        default:  // high_is_not_sign
            return flag(kCarry | kOverflow, a != (b >> (width - 1) ? ones(width) : 0));
    }
}

}  // namespace revisit::machine::x64
