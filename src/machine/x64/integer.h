// What integer instructions of x86_64 compute, from the values of their operands: see x64.h.
//
// Where the operands are, and where the result goes, is x64/ahead.h's part. Undefined flags become
// unknown.
#pragma once

#include <utility>

#include "machine/x64/registers.h"

namespace revisit::machine::x64 {

class Integer : public Registers {
 public:
    using Registers::Registers;

    // a op b, by i.sub; `same` = both are one register.
    Value alu(const X64Instruction& i, Value a, Value b, bool same) {
        switch (i.sub) {
            case 0:
                return add(a, b, 0, i.bytes, false);
            case 2:
            case 3: {
                a.known &= (s_.flags_known & kCarry) != 0;
                bool carry = s_.flags & kCarry;
                return i.sub == 2 ? add(a, b, carry, i.bytes, false) : add(a, b, !carry, i.bytes, true);
            }
            case 5:
            case 7:
                if (same) a = b = {0, true};
                return add(a, b, 1, i.bytes, true);
            default:
                if (i.sub == 6 && same) a = b = {0, true};
                Value result{i.sub == 1   ? a.bits | b.bits
                             : i.sub == 4 ? a.bits & b.bits
                                          : a.bits ^ b.bits,
                             a.known && b.known};
                set_flags(kAllFlags, result_flags(result.bits, i.bytes), result.known);
                return result;
        }
    }

    // By a count that is not 0, or not known.
    Value shift(const X64Instruction& i, Value a, Value by) {
        unsigned count = by.bits & (i.bytes == 8 ? 63 : 31), width = 8 * i.bytes;
        Value result{0, a.known && by.known && count <= width};
        bool carry = false;
        unsigned rotate = count % width;
        switch (i.sub) {
            case 0:
                result.bits = rotate ? a.bits << rotate | a.bits >> (width - rotate) : a.bits;
                break;
            case 1:
                result.bits = rotate ? a.bits >> rotate | a.bits << (width - rotate) : a.bits;
                break;
            case 4:
            case 6:
                result.bits = count < 64 ? a.bits << count : 0;
                carry = count <= width && count > 0 && (a.bits >> (width - count) & 1);
                break;
            case 5:
                result.bits = count < 64 ? a.bits >> count : 0;
                carry = count > 0 && (a.bits >> (count - 1) & 1);
                break;
            case 7:
                result.bits =
                    static_cast<std::uint64_t>(extended(a.bits, i.bytes) >> (count < 63 ? count : 63));
                carry = count > 0 && (extended(a.bits, i.bytes) >> (count - 1) & 1);
                break;
            default:
                result.known = false;  // through the carry
        }
        result.bits &= mask(i.bytes);
        std::uint64_t top = std::uint64_t{1} << (width - 1);
        bool overflow = false;  // defined for one bit
        if (i.sub < 4) {
            bool known = result.known;
            carry = i.sub == 0 ? result.bits & 1 : (result.bits & top) != 0;
            overflow = i.sub == 0 ? !(result.bits & top) != !carry
                                  : !(result.bits & top) != !(result.bits & top >> 1);
            set_flags(kCarry | kOverflow, carry ? kCarry : 0, known);
        } else {
            overflow = i.sub == 5 ? a.bits & top : i.sub == 7 ? false : !(result.bits & top) != !carry;
            set_flags(
                kAllFlags,
                static_cast<std::uint8_t>(result_flags(result.bits, i.bytes) | (carry ? kCarry : 0)),
                result.known);
        }
        set_flags(kOverflow, overflow ? kOverflow : 0, result.known && count == 1);
        return result;
    }

    // The low half of a product; whether it was all of it is told.
    Value multiply(const X64Instruction& i, Value a, Value b) {
        auto product = static_cast<__int128>(extended(a.bits, i.bytes)) * extended(b.bits, i.bytes);
        auto low = static_cast<std::uint64_t>(product) & mask(i.bytes);
        bool known = a.known && b.known, fits = product == extended(low, i.bytes);
        set_flags(kAllFlags, 0, false);
        set_flags(kCarry | kOverflow, fits ? 0 : kCarry | kOverflow, known);
        return {low, known};
    }

    // Two words shifted as one, the upper of which is kept.
    Value double_shift(const X64Instruction& i, Value a, Value b, unsigned count) {
        unsigned width = 8 * i.bytes;
        Value result{i.sub ? a.bits >> count | b.bits << (width - count)
                           : a.bits << count | b.bits >> (width - count),
                     a.known && b.known && count < width};
        result.bits &= mask(i.bytes);
        bool carry = a.bits >> (i.sub ? count - 1 : width - count) & 1;
        set_flags(kAllFlags,
                  static_cast<std::uint8_t>(result_flags(result.bits, i.bytes) | (carry ? kCarry : 0)),
                  result.known);
        set_flags(kOverflow, 0, false);
        return result;
    }

    // rax and rdx, times or by b; of bytes, al and ah. False = a division that faults.
    bool multiply_wide(const X64Instruction& i, Value b) {
        unsigned upper = i.bytes == 1 ? 0 : 2;
        Value low = get(0, i.bytes), high = get(upper, i.bytes, i.bytes == 1);
        set_flags(kAllFlags, 0, false);
        unsigned width = 8 * i.bytes;
        if (i.sub == 4) {
            auto product = static_cast<unsigned __int128>(low.bits) * b.bits;
            low = {static_cast<std::uint64_t>(product), low.known && b.known};
            high = {static_cast<std::uint64_t>(product >> width) & mask(i.bytes), low.known};
            set_flags(kCarry | kOverflow, high.bits ? kCarry | kOverflow : 0, low.known);
        } else if (i.sub == 5) {
            auto product =
                static_cast<__int128>(extended(low.bits, i.bytes)) * extended(b.bits, i.bytes);
            low = {static_cast<std::uint64_t>(product), low.known && b.known};
            high = {static_cast<std::uint64_t>(product >> width), low.known};
            bool fits = product == extended(low.bits & mask(i.bytes), i.bytes);
            set_flags(kCarry | kOverflow, fits ? 0 : kCarry | kOverflow, low.known);
        } else {
            bool known = low.known && high.known && b.known;
            auto whole = static_cast<unsigned __int128>(high.bits) << width | low.bits;
            if (known && b.bits == 0) return false;
            if (i.sub == 6 && known && high.bits < b.bits) {
                low = {static_cast<std::uint64_t>(whole / b.bits), true};
                high = {static_cast<std::uint64_t>(whole % b.bits), true};
            } else if (i.sub == 7 && known &&
                       high.bits == (low.bits >> (width - 1) ? mask(i.bytes) : 0) &&
                       extended(b.bits, i.bytes) != -1) {
                std::int64_t n = extended(low.bits, i.bytes), d = extended(b.bits, i.bytes);
                low = {static_cast<std::uint64_t>(n / d), true};
                high = {static_cast<std::uint64_t>(n % d), true};
            } else
                low.known = high.known = false;
        }
        put(0, low, i.bytes);
        put(upper, high, i.bytes, i.bytes == 1);
        return true;
    }

    // bt and the like: a with that bit changed; the bit itself is in the carry.
    Value bit_test(const X64Instruction& i, Value a, Value by) {
        std::uint64_t bit = std::uint64_t{1} << (by.bits & (8 * i.bytes - 1));
        Value result{i.sub == 1   ? a.bits | bit
                     : i.sub == 2 ? a.bits & ~bit
                                  : a.bits ^ bit,
                     a.known && by.known};
        set_flags(kAllFlags & ~kZero, 0, false);
        set_flags(kCarry, a.bits & bit ? kCarry : 0, result.known);
        return result;
    }

    Value bit_count(const X64Instruction& i, Value a) {
        unsigned width = 8 * i.bytes;
        Value result{0, a.known};
        switch (i.sub) {
            case 0:
                result.bits = static_cast<std::uint64_t>(__builtin_popcountll(a.bits));
                break;
            case 1:
            case 3:
                result.bits = a.bits ? static_cast<std::uint64_t>(__builtin_ctzll(a.bits)) : width;
                break;
            case 2:
                result.bits =
                    a.bits ? static_cast<std::uint64_t>(__builtin_clzll(a.bits)) - (64 - width) : width;
                break;
            default:
                result.bits = a.bits ? 63 - static_cast<std::uint64_t>(__builtin_clzll(a.bits)) : 0;
        }
        set_flags(kAllFlags, 0, false);
        if (i.sub == 0)
            set_flags(kAllFlags, a.bits == 0 ? kZero : 0, a.known);
        else if (i.sub >= 3) {
            set_flags(kZero, a.bits == 0 ? kZero : 0, a.known);
            if (a.known && a.bits == 0) {  // the register keeps what it had; half of it may be cleared
                result = get(i.reg, 8);
                result.known &= i.bytes == 8 || (i.bytes == 4 && result.bits >> 32 == 0);
            }
        } else if (s_.has_bmi)
            set_flags(
                kCarry | kZero,
                static_cast<std::uint8_t>((a.bits == 0 ? kCarry : 0) | (result.bits == 0 ? kZero : 0)),
                a.known);
        else  // taken for bsf, and lzcnt for bsr
            result.known &= i.sub == 1 && a.bits != 0;
        return result;
    }

    // `a` is the register in i.first, b the operand that may be in memory.
    Value bmi(const X64Instruction& i, Value a, Value b) {
        using B = X64Bmi;
        auto op = static_cast<B>(i.sub);
        unsigned width = 8 * i.bytes, by = static_cast<unsigned>(a.bits & (width - 1));
        bool known = a.known && b.known, carry = false;
        std::uint64_t x = b.bits, result = 0;
        switch (op) {
            case B::and_not:
                result = ~a.bits & x;
                break;
            case B::reset_lowest:
                result = x & (x - 1);
                carry = x == 0;
                known = b.known;
                break;
            case B::mask_to_lowest:
                result = x ^ (x - 1);
                carry = x == 0;
                known = b.known;
                break;
            case B::lowest:
                result = x & (0 - x);
                carry = x != 0;
                known = b.known;
                break;
            case B::zero_high: {
                unsigned bits = a.bits & 255;
                result = bits < width ? x & ((std::uint64_t{1} << bits) - 1) : x;
                carry = bits >= width;
                break;
            }
            case B::extract_field: {
                unsigned from = a.bits & 255, bits = a.bits >> 8 & 255;
                result = from < width ? x >> from : 0;
                if (bits < 64) result &= (std::uint64_t{1} << bits) - 1;
                set_flags(kAllFlags, 0, false);
                set_flags(kCarry | kOverflow | kZero, result == 0 ? kZero : 0, known);
                return {result, known};
            }
            case B::deposit:
            case B::extract: {  // a, by the mask x
                unsigned k = 0;
                for (unsigned bit = 0; bit < width; bit++) {
                    if (!(x >> bit & 1)) continue;
                    if (op == B::deposit)
                        result |= (a.bits >> k++ & 1) << bit;
                    else
                        result |= (a.bits >> bit & 1) << k++;
                }
                return {result, known};
            }
            case B::shift_left:
                return {x << by, known};
            case B::shift_right:
                return {x >> by, known};
            case B::shift_signed:
                return {static_cast<std::uint64_t>(extended(x, i.bytes) >> by), known};
            case B::rotate:
                by = static_cast<unsigned>(i.immediate) & (width - 1);
                return {by ? x >> by | x << (width - by) : x, b.known};
            case B::add_carry:
            case B::add_overflow: {
                std::uint8_t flag = op == B::add_carry ? kCarry : kOverflow;
                std::uint8_t before = s_.flags, before_known = s_.flags_known;
                a.known &= (before_known & flag) != 0;
                Value sum = add(a, b, (before & flag) != 0, i.bytes, false);
                bool carries = s_.flags & kCarry;
                s_.flags = before;
                s_.flags_known = before_known;
                set_flags(flag, carries ? flag : 0, sum.known);
                return sum;
            }
            default:
                return {0, false};
        }
        result &= mask(i.bytes);
        set_flags(kAllFlags, 0, false);
        set_flags(kCarry | kOverflow | kZero | kSign,
                  static_cast<std::uint8_t>((result_flags(result, i.bytes) & ~kParity) |
                                            (carry ? kCarry : 0)),
                  known);
        return {result, known};
    }

    // rdx times b: the high half into reg, the low one into first. No flags.
    void multiply_plain(const X64Instruction& i, Value b) {
        Value a = get(2, i.bytes);
        auto product = static_cast<unsigned __int128>(a.bits) * b.bits;
        bool known = a.known && b.known;
        put(i.first, {static_cast<std::uint64_t>(product), known}, i.bytes);
        put(i.reg, {static_cast<std::uint64_t>(product >> 8 * i.bytes), known}, i.bytes);
    }

    // The checksum of iSCSI, bit by bit.
    static std::uint64_t checksum(std::uint64_t sum, std::uint64_t value, unsigned bytes) {
        auto crc = static_cast<std::uint32_t>(sum);
        for (unsigned k = 0; k < bytes; k++) {
            crc ^= static_cast<std::uint8_t>(value >> 8 * k);
            for (unsigned bit = 0; bit < 8; bit++) crc = crc >> 1 ^ (crc & 1 ? 0x82f63b78u : 0);
        }
        return crc;
    }
};

}  // namespace revisit::machine::x64
