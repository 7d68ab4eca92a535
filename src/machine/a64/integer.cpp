// Integer arithmetic and branches of aarch64: see a64.h.
#include "machine/a64/a64.h"

namespace revisit::machine {
namespace {

std::uint32_t logic_flags(std::uint64_t result, bool wide) {
    bool negative = wide ? result >> 63 : result >> 31 & 1;
    return static_cast<std::uint32_t>(negative << 3 | (result == 0) << 2);
}

std::uint64_t shift(std::uint64_t value, unsigned kind, unsigned amount, bool wide) {
    unsigned width = wide ? 64 : 32;
    if (!wide) value = static_cast<std::uint32_t>(value);
    amount &= width - 1;
    switch (kind) {
        case 0:
            value <<= amount;
            break;
        case 1:
            value >>= amount;
            break;
        case 2:
            value = static_cast<std::uint64_t>(sign_extend(value, width) >> amount);
            break;
        default:
            if (amount) value = value >> amount | value << (width - amount);
    }
    return wide ? value : static_cast<std::uint32_t>(value);
}

Step branch(std::uint32_t i, A64State& s) {
    bool all_known = true;
    auto jump = [&](unsigned low, unsigned bits) {
        s.pc += static_cast<std::uint64_t>(sign_extend(field(i, low, bits), bits) * 4);
        return Step::done;
    };
    auto next = [&] {
        s.pc += 4;
        return Step::done;
    };
    if ((i & 0x7c000000) == 0x14000000) {  // b, bl
        if (i >> 31) s.write(30, s.pc + 4, true);
        return jump(0, 26);
    }
    if ((i & 0xff000010) == 0x54000000) {  // b.cond
        if ((i & 15) < 14 && !s.flags_known) return Step::stop;
        return holds(i & 15, s.nzcv) ? jump(5, 19) : next();
    }
    if ((i & 0x7e000000) == 0x34000000) {  // cbz, cbnz
        std::uint64_t value = s.read(i & 31, all_known);
        if (!all_known) return Step::stop;
        if (!(i >> 31)) value = static_cast<std::uint32_t>(value);
        return (value != 0) == (i >> 24 & 1) ? jump(5, 19) : next();
    }
    if ((i & 0x7e000000) == 0x36000000) {  // tbz, tbnz
        std::uint64_t value = s.read(i & 31, all_known);
        if (!all_known) return Step::stop;
        unsigned bit = i >> 31 << 5 | field(i, 19, 5);
        return (value >> bit & 1) == (i >> 24 & 1) ? jump(5, 14) : next();
    }
    if ((i & 0xff9ffc1f) == 0xd61f0000 && field(i, 21, 2) < 3) {  // br, blr, ret
        std::uint64_t target = s.read(field(i, 5, 5), all_known);
        if (!all_known) return Step::stop;
        if (field(i, 21, 2) == 1) s.write(30, s.pc + 4, true);
        s.pc = target;
        return Step::done;
    }
    if ((i & 0xfffff01f) == 0xd503201f) {  // hints: nop, bti, pointer authentication of x30 and x17
        unsigned hint = field(i, 5, 7);
        bool signs_x17 = hint == 8 || hint == 10, checks_x17 = hint == 12 || hint == 14;
        bool checks_x30 = hint == 7 || (hint >= 28 && hint <= 31);
        if (signs_x17 || checks_x17) return Step::stop;
        // Where addresses are signed the sign is in bits that no address has.
        if (checks_x30) s.x[30] &= ones(48);
        return next();
    }
    if ((i & 0xfffff000) == 0xd5033000) return next();  // barriers, clrex
    if ((i & 0xffffffe0) == 0xd53bd040) {               // mrs tpidr_el0
        s.write(i & 31, s.thread_pointer, true);
        return next();
    }
    if ((i & 0xffffffe0) == 0xd53b4200 || (i & 0xffffffe0) == 0xd51b4200) {  // nzcv
        if (i >> 21 & 1) {
            s.write(i & 31, std::uint64_t{s.nzcv} << 28, s.flags_known);
        } else {
            s.flags_known = true;
            s.nzcv = static_cast<std::uint32_t>(s.read(i & 31, s.flags_known) >> 28 & 15);
        }
        return next();
    }
    if ((i & 0xfff00000) == 0xd5300000) {  // any other register
        s.write(i & 31, 0, false);
        return next();
    }
    return Step::stop;  // system calls, breakpoints and what else there is
}

Step immediate(std::uint32_t i, A64State& s) {
    bool wide = i >> 31, all_known = true;
    unsigned rd = i & 31, rn = field(i, 5, 5), opc = field(i, 29, 2);
    switch (field(i, 23, 3)) {
        case 0:
        case 1: {  // adr, adrp
            std::int64_t offset = sign_extend(field(i, 5, 19) << 2 | opc, 21);
            std::uint64_t base = wide ? s.pc & ~std::uint64_t{0xfff} : s.pc;
            s.write(rd, base + static_cast<std::uint64_t>(wide ? offset * 4096 : offset), true);
            break;
        }
        case 2: {  // add, sub
            std::uint64_t a = s.read_sp(rn, all_known), b = field(i, 10, 12);
            if (i >> 22 & 1) b <<= 12;
            bool subtract = opc & 2;
            std::uint32_t flags;
            std::uint64_t result = add(a, subtract ? ~b : b, subtract, wide, flags);
            if (opc & 1) {
                s.nzcv = flags;
                s.flags_known = all_known;
                s.write(rd, result, all_known, wide);
            } else
                s.write_sp(rd, result, all_known, wide);
            break;
        }
        case 4: {  // and, orr, eor, ands
            std::uint64_t mask;
            if (!bit_mask(field(i, 22, 1), field(i, 10, 6), field(i, 16, 6), mask)) return Step::stop;
            if (!wide) mask = static_cast<std::uint32_t>(mask);
            std::uint64_t a = s.read(rn, all_known);
            std::uint64_t result = opc == 1 ? a | mask : opc == 2 ? a ^ mask : a & mask;
            if (!wide) result = static_cast<std::uint32_t>(result);
            if (opc == 3) {
                s.nzcv = logic_flags(result, wide);
                s.flags_known = all_known;
                s.write(rd, result, all_known, wide);
            } else
                s.write_sp(rd, result, all_known, wide);
            break;
        }
        case 5: {  // movn, movz, movk
            unsigned shift_by = 16 * field(i, 21, 2);
            if (!wide && shift_by > 16) return Step::stop;
            std::uint64_t value = std::uint64_t{field(i, 5, 16)} << shift_by;
            if (opc == 1) return Step::stop;
            if (opc == 0) value = ~value;
            if (opc == 3) value |= s.read(rd, all_known) & ~(std::uint64_t{0xffff} << shift_by);
            s.write(rd, value, all_known, wide);
            break;
        }
        case 6: {  // sbfm, bfm, ubfm
            unsigned r = field(i, 16, 6), top = field(i, 10, 6), width = wide ? 64 : 32;
            if (opc == 3 || r >= width || top >= width) return Step::stop;
            std::uint64_t a = s.read(rn, all_known);
            if (!wide) a = static_cast<std::uint32_t>(a);
            unsigned bits = top >= r ? top - r + 1 : top + 1;
            unsigned to = top >= r ? 0 : width - r;
            std::uint64_t part = (top >= r ? a >> r : a) & ones(bits), result;
            if (opc == 1)
                result = (s.read(rd, all_known) & ~(ones(bits) << to)) | part << to;
            else if (opc == 0)
                result = static_cast<std::uint64_t>(sign_extend(part, bits)) << to;
            else
                result = part << to;
            s.write(rd, result, all_known, wide);
            break;
        }
        case 7: {  // extr
            if (opc != 0 || field(i, 21, 1)) return Step::stop;
            std::uint64_t a = s.read(rn, all_known), b = s.read(field(i, 16, 5), all_known);
            unsigned from = field(i, 10, 6), width = wide ? 64 : 32;
            if (from >= width) return Step::stop;
            if (!wide) b = static_cast<std::uint32_t>(b);
            s.write(rd, from ? b >> from | a << (width - from) : b, all_known, wide);
            break;
        }
        default:
            return Step::stop;  // memory tagging
    }
    s.pc += 4;
    return Step::done;
}

std::uint64_t extend(std::uint64_t value, unsigned kind, unsigned left) {
    switch (kind) {
        case 0:
            value = static_cast<std::uint8_t>(value);
            break;
        case 1:
            value = static_cast<std::uint16_t>(value);
            break;
        case 2:
            value = static_cast<std::uint32_t>(value);
            break;
        case 4:
            value = static_cast<std::uint64_t>(sign_extend(value, 8));
            break;
        case 5:
            value = static_cast<std::uint64_t>(sign_extend(value, 16));
            break;
        case 6:
            value = static_cast<std::uint64_t>(sign_extend(value, 32));
            break;
        default:
            break;
    }
    return value << left;
}

void add_to(A64State& s, std::uint32_t i, std::uint64_t a, std::uint64_t b, unsigned carry,
            bool all_known, bool rd_may_be_sp) {
    std::uint32_t flags;
    std::uint64_t result = add(a, b, carry, i >> 31, flags);
    bool sets_flags = i >> 29 & 1;
    if (sets_flags) {
        s.nzcv = flags;
        s.flags_known = all_known;
    }
    if (rd_may_be_sp && !sets_flags)
        s.write_sp(i & 31, result, all_known, i >> 31);
    else
        s.write(i & 31, result, all_known, i >> 31);
}

bool one_source(std::uint32_t i, A64State& s) {
    bool wide = i >> 31, all_known = true;
    unsigned width = wide ? 64 : 32;
    std::uint64_t a = s.read(field(i, 5, 5), all_known), result = 0;
    if (!wide) a = static_cast<std::uint32_t>(a);
    switch (field(i, 10, 6)) {
        case 0:  // rbit
            for (unsigned bit = 0; bit < width; bit++)
                if (a >> bit & 1) result |= std::uint64_t{1} << (width - 1 - bit);
            break;
        case 1:  // rev16
            result = (a & 0x00ff00ff00ff00ff) << 8 | (a >> 8 & 0x00ff00ff00ff00ff);
            break;
        case 2:  // rev32, or rev of 32 bits
            result = std::uint64_t{__builtin_bswap32(static_cast<std::uint32_t>(a >> 32))} << 32 |
                     __builtin_bswap32(static_cast<std::uint32_t>(a));
            break;
        case 3:
            if (!wide) return false;
            result = __builtin_bswap64(a);
            break;
        case 5:  // cls: leading bits equal to the sign, the sign itself not counted
            a = sign_extend(a, width) < 0 ? ~a & ones(width) : a;
            [[fallthrough]];
        case 4: {  // clz
            unsigned zeros = a ? static_cast<unsigned>(__builtin_clzll(a)) - (64 - width) : width;
            result = field(i, 10, 6) == 5 ? zeros - 1 : zeros;
            break;
        }
        default:
            return false;
    }
    s.write(i & 31, result, all_known, wide);
    return true;
}

bool two_sources(std::uint32_t i, A64State& s) {
    bool wide = i >> 31, all_known = true;
    unsigned width = wide ? 64 : 32;
    std::uint64_t a = s.read(field(i, 5, 5), all_known), b = s.read(field(i, 16, 5), all_known);
    if (!wide) {
        a = static_cast<std::uint32_t>(a);
        b = static_cast<std::uint32_t>(b);
    }
    std::uint64_t result = 0;
    unsigned operation = field(i, 10, 6);
    switch (operation) {
        case 2:
            result = b ? a / b : 0;
            break;
        case 3: {
            std::int64_t n = sign_extend(a, width), d = sign_extend(b, width);
            result = d == 0 ? 0 : d == -1 ? 0 - a : static_cast<std::uint64_t>(n / d);
            break;
        }
        case 8:
        case 9:
        case 10:
        case 11:
            result = shift(a, operation - 8, static_cast<unsigned>(b & (width - 1)), wide);
            break;
        default:
            if ((operation & 0x38) != 0x10) return false;
            all_known = false;  // crc32
    }
    s.write(i & 31, result, all_known, wide);
    return true;
}

bool three_sources(std::uint32_t i, A64State& s) {
    bool wide = i >> 31, all_known = true, subtract = i >> 15 & 1;
    std::uint64_t a = s.read(field(i, 5, 5), all_known), b = s.read(field(i, 16, 5), all_known);
    std::uint64_t c = s.read(field(i, 10, 5), all_known), product;
    switch (field(i, 21, 3)) {
        case 0:
            product = a * b;
            break;
        case 1:
            product = static_cast<std::uint64_t>(sign_extend(a, 32) * sign_extend(b, 32));
            break;
        case 2:
            s.write(i & 31,
                    static_cast<std::uint64_t>(static_cast<__int128>(static_cast<std::int64_t>(a)) *
                                                   static_cast<std::int64_t>(b) >>
                                               64),
                    all_known);
            return wide && !subtract;
        case 5:
            product = std::uint64_t{static_cast<std::uint32_t>(a)} * static_cast<std::uint32_t>(b);
            break;
        case 6:
            s.write(i & 31, static_cast<std::uint64_t>(static_cast<unsigned __int128>(a) * b >> 64),
                    all_known);
            return wide && !subtract;
        default:
            return false;
    }
    if (!wide && field(i, 21, 3) != 0) return false;
    s.write(i & 31, subtract ? c - product : c + product, all_known, wide);
    return true;
}

Step registers(std::uint32_t i, A64State& s) {
    bool wide = i >> 31, all_known = true;
    unsigned rn = field(i, 5, 5), rm = field(i, 16, 5), opc = field(i, 29, 2);
    bool subtract = opc & 2, known_class = true;
    if ((i & 0x1f000000) == 0x0a000000) {  // and, orr, eor, ands of a shifted register
        if (!wide && (i >> 15 & 1)) return Step::stop;
        std::uint64_t a = s.read(rn, all_known);
        std::uint64_t b = shift(s.read(rm, all_known), field(i, 22, 2), field(i, 10, 6), wide);
        if (i >> 21 & 1) b = ~b;
        std::uint64_t result = opc == 1 ? a | b : opc == 2 ? a ^ b : a & b;
        if (!wide) result = static_cast<std::uint32_t>(result);
        if (opc == 3) {
            s.nzcv = logic_flags(result, wide);
            s.flags_known = all_known;
        }
        s.write(i & 31, result, all_known, wide);
    } else if ((i & 0x1f200000) == 0x0b000000) {  // add, sub of a shifted register
        if (field(i, 22, 2) == 3 || (!wide && (i >> 15 & 1))) return Step::stop;
        std::uint64_t a = s.read(rn, all_known);
        std::uint64_t b = shift(s.read(rm, all_known), field(i, 22, 2), field(i, 10, 6), wide);
        add_to(s, i, a, subtract ? ~b : b, subtract, all_known, false);
    } else if ((i & 0x1fe00000) == 0x0b200000) {  // add, sub of an extended register
        if (field(i, 10, 3) > 4) return Step::stop;
        std::uint64_t a = s.read_sp(rn, all_known);
        std::uint64_t b = extend(s.read(rm, all_known), field(i, 13, 3), field(i, 10, 3));
        add_to(s, i, a, subtract ? ~b : b, subtract, all_known, true);
    } else if ((i & 0x1fe0fc00) == 0x1a000000) {  // adc, sbc
        all_known &= s.flags_known;
        std::uint64_t a = s.read(rn, all_known), b = s.read(rm, all_known);
        add_to(s, i, a, subtract ? ~b : b, s.nzcv >> 1 & 1, all_known, false);
    } else if ((i & 0x3fe00410) == 0x3a400000) {  // ccmn, ccmp
        bool flags_known = s.flags_known || field(i, 12, 4) >= 14;
        std::uint64_t a = s.read(rn, all_known), b = i >> 11 & 1 ? rm : s.read(rm, all_known);
        bool compares = holds(field(i, 12, 4), s.nzcv);
        s.flags_known = flags_known && (!compares || all_known);
        if (compares)
            add(a, subtract ? ~b : b, subtract, wide, s.nzcv);
        else
            s.nzcv = i & 15;
    } else if ((i & 0x3fe00800) == 0x1a800000) {  // csel, csinc, csinv, csneg
        bool flags_known = s.flags_known || field(i, 12, 4) >= 14;
        bool first = holds(field(i, 12, 4), s.nzcv);
        std::uint64_t result = s.read(first ? rn : rm, all_known);
        if (!first && (i >> 30 & 1)) result = ~result;
        if (!first && (i >> 10 & 1)) result += 1;
        s.write(i & 31, result, all_known && flags_known, wide);
    } else if ((i & 0x7fff0000) == 0x5ac00000)
        known_class = one_source(i, s);
    else if ((i & 0x7fe00000) == 0x1ac00000)
        known_class = two_sources(i, s);
    else if ((i & 0x7f000000) == 0x1b000000)
        known_class = three_sources(i, s);
    else
        known_class = false;
    if (!known_class) return Step::stop;
    s.pc += 4;
    return Step::done;
}

}  // namespace

Step step_integer(std::uint32_t i, A64State& s) {
    switch (field(i, 25, 4)) {
        case 8:
        case 9:
            return immediate(i, s);
        case 10:
        case 11:
            return branch(i, s);
        case 5:
        case 13:
            return registers(i, s);
        default:
            return Step::stop;
    }
}

}  // namespace revisit::machine
