// What integer instructions of x86_64 compute, from the values of their operands: see x64.h.
//
// Where the operands are, and where the result goes, is x64_ahead.h's part. Undefined flags become
// unknown.
#pragma once

#include <utility>

#include "watch/x64_registers.h"

namespace revisit::watch::x64 {

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
        set_flags(kAllFlags, 0, false);
        if (i.sub >= 4)
            set_flags(
                kCarry | kZero | kSign | kParity,
                static_cast<std::uint8_t>(result_flags(result.bits, i.bytes) | (carry ? kCarry : 0)),
                result.known);
        return result;
    }

    // rax and rdx, times or by b. False = a division that faults.
    bool multiply_wide(const X64Instruction& i, Value b) {
        Value low = get(0, i.bytes), high = get(2, i.bytes);
        set_flags(kAllFlags, 0, false);
        unsigned width = 8 * i.bytes;
        if (i.sub == 4) {
            auto product = static_cast<unsigned __int128>(low.bits) * b.bits;
            low = {static_cast<std::uint64_t>(product), low.known && b.known};
            high = {static_cast<std::uint64_t>(product >> width), low.known};
        } else if (i.sub == 5) {
            auto product =
                static_cast<__int128>(extended(low.bits, i.bytes)) * extended(b.bits, i.bytes);
            low = {static_cast<std::uint64_t>(product), low.known && b.known};
            high = {static_cast<std::uint64_t>(product >> width), low.known};
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
        put(2, high, i.bytes);
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
        // Which of tzcnt and bsf an old processor takes these for differs in the flags, and for zero.
        if (i.sub > 0 && a.bits == 0) result.known = false;
        set_flags(kAllFlags, 0, false);
        if (i.sub >= 3) set_flags(kZero, a.bits == 0 ? kZero : 0, a.known);
        return result;
    }
};

}  // namespace revisit::watch::x64
