// Instructions of x86_64: their length, operation and operands. See x64.h.
#include "machine/x64/decode.h"

namespace revisit::machine {
namespace x64 {
namespace {

// x87: what is touched, and whether flags or ax change. Bytes by opcode and the three bits beside it;
// those that write are negative.
void floating(Reader& in, const Prefixes& p, X64Instruction& i, unsigned op) {
    static constexpr signed char kBytes[8][8] = {
        {4, 4, 4, 4, 4, 4, 4, 4}, {4, 0, -4, -4, 28, 2, -28, -2},
        {4, 4, 4, 4, 4, 4, 4, 4}, {4, -4, -4, -4, 0, 10, 0, -10},
        {8, 8, 8, 8, 8, 8, 8, 8}, {8, -8, -8, -8, 108, 0, -108, -2},
        {2, 2, 2, 2, 2, 2, 2, 2}, {2, -2, -2, -2, 10, 8, -10, -8}};
    unsigned modrm = in.at < in.bytes ? in.code[in.at] : 0;
    mod_rm(in, p, i);
    if (!i.has_memory) {
        bool compares = (op == 0xdb || op == 0xdf) && modrm >= 0xe8 && modrm < 0xf8;
        i.set(compares                      ? X64Loses::flags
              : op == 0xdf && modrm == 0xe0 ? X64Loses::ax
                                            : X64Loses::nothing);
        i.op = Op::floating;
        return;
    }
    signed char bytes = kBytes[op & 7][i.reg & 7];
    if (bytes == 0) return;
    i.op = Op::floating;
    touches(i, static_cast<unsigned>(bytes < 0 ? -bytes : bytes), bytes > 0, bytes < 0);
}

// What most opcodes say of their operands.
enum Form : unsigned {
    kModRm = 1,
    kByte = 2,        // operands of one byte where the opcode is even
    kOneByte = 4,     // … always
    kWide = 8,        // … of eight bytes
    kGroup = 16,      // the operation is where a register usually is
    kRegister = 32,   // the register is in the opcode
    kCondition = 64,  // … the condition
    kToReg = 128,
    kReads = 256,
    kWrites = 512,
    kImmediate = 1024,  // as large as the operands, up to four bytes
    kShort = 2048,      // of one byte
    kTarget = 4096,     // a distance, of four bytes, or one
    kNot16 = 8192,
    kRow = 16384,      // the operation is in the upper bits of the opcode
    kChecked = 32768,  // more of it is said below
};
struct Sub {
    std::uint8_t number = 0;
    constexpr Sub() = default;
    template <class Which>
    constexpr Sub(Which which) : number(static_cast<std::uint8_t>(which)) {}
};
struct Rule {
    unsigned first, last;
    Op op;
    unsigned form = 0;
    Sub sub = {};
    std::uint8_t from = 0;  // bytes of the source
};

constexpr Rule kOneByteRules[] = {
    {0x00, 0x01, Op::alu, kRow | kByte | kModRm | kReads | kWrites},  // and up to 3d
    {0x02, 0x03, Op::alu, kRow | kByte | kModRm | kToReg | kReads},
    {0x04, 0x05, Op::alu, kRow | kByte | kImmediate},
    {0x50, 0x57, Op::push, kRegister | kWide | kNot16},
    {0x58, 0x5f, Op::pop, kRegister | kWide | kNot16},
    {0x63, 0x63, Op::movsx, kModRm | kToReg | kReads, {}, 4},
    {0x68, 0x68, Op::push, kWide | kNot16 | kImmediate},
    {0x69, 0x69, Op::imul, kModRm | kToReg | kReads | kImmediate},
    {0x6a, 0x6a, Op::push, kWide | kNot16 | kShort},
    {0x6b, 0x6b, Op::imul, kModRm | kToReg | kReads | kShort},
    {0x70, 0x7f, Op::jcc, kCondition | kTarget | kShort},
    {0x80, 0x81, Op::alu, kByte | kGroup | kReads | kWrites | kImmediate},
    {0x83, 0x83, Op::alu, kGroup | kReads | kWrites | kShort},
    {0x84, 0x85, Op::test, kByte | kModRm | kReads},
    {0x86, 0x87, Op::xchg, kByte | kModRm | kReads | kWrites},
    {0x88, 0x89, Op::mov, kByte | kModRm | kWrites},
    {0x8a, 0x8b, Op::mov, kByte | kModRm | kToReg | kReads},
    {0x8d, 0x8d, Op::lea, kModRm | kChecked},
    {0x90, 0x97, Op::xchg, kRegister | kChecked},
    {0x98, 0x98, Op::cbw},
    {0x99, 0x99, Op::cwd},
    {0x9b, 0x9b, Op::nop},  // fwait
    {0xa4, 0xa7, Op::unknown, kByte | kChecked},
    {0xa8, 0xa9, Op::test, kByte | kImmediate},
    {0xaa, 0xaf, Op::unknown, kByte | kChecked},
    {0xb0, 0xb7, Op::mov, kRegister | kOneByte | kImmediate},
    {0xb8, 0xbf, Op::mov, kRegister | kChecked},  // and up to eight bytes
    {0xc0, 0xc1, Op::shift, kByte | kGroup | kReads | kWrites | kShort},
    {0xc6, 0xc7, Op::mov, kByte | kGroup | kWrites | kImmediate | kChecked},
    {0xc9, 0xc9, Op::leave, kWide},
    {0xd0, 0xd3, Op::shift, kByte | kGroup | kReads | kWrites | kChecked},
    {0xe0, 0xe3, Op::jump_if_count, kCondition | kTarget | kShort},
    {0xe8, 0xe8, Op::call, kTarget | kChecked},
    {0xe9, 0xe9, Op::jmp, kTarget | kChecked},
    {0xeb, 0xeb, Op::jmp, kTarget | kShort},
    {0xf6, 0xf7, Op::multiply_wide, kByte | kGroup | kReads | kChecked},
    {0xfe, 0xff, Op::inc, kByte | kGroup | kReads | kWrites | kChecked},
};
// After 0f.
constexpr Rule kTwoByteRules[] = {
    {0x0d, 0x0d, Op::nop, kModRm},
    {0x18, 0x18, Op::nop, kModRm},
    {0x1e, 0x1f, Op::nop, kModRm},  // endbr64 is one of these
    {0x40, 0x4f, Op::cmovcc, kModRm | kToReg | kReads | kCondition},
    {0x80, 0x8f, Op::jcc, kCondition | kTarget},
    {0x90, 0x9f, Op::setcc, kOneByte | kModRm | kWrites | kCondition},
    {0xa4, 0xa4, Op::double_shift, kModRm | kReads | kWrites | kShort},
    {0xa5, 0xa5, Op::double_shift, kModRm | kReads | kWrites},
    {0xac, 0xac, Op::double_shift, kModRm | kReads | kWrites | kShort, X64DoubleShift::shrd},
    {0xad, 0xad, Op::double_shift, kModRm | kReads | kWrites, X64DoubleShift::shrd},
    {0xaf, 0xaf, Op::imul, kModRm | kToReg | kReads},
    {0xb0, 0xb1, Op::cmpxchg, kByte | kModRm | kReads | kWrites},
    {0xb6, 0xb6, Op::movzx, kModRm | kToReg | kReads, {}, 1},
    {0xb7, 0xb7, Op::movzx, kModRm | kToReg | kReads, {}, 2},
    {0xb8, 0xb8, Op::bit_count, kModRm | kToReg | kReads | kChecked},
    {0xbc, 0xbc, Op::bit_count, kModRm | kToReg | kReads | kChecked, X64BitCount::bsf},
    {0xbd, 0xbd, Op::bit_count, kModRm | kToReg | kReads | kChecked, X64BitCount::bsr},
    {0xbe, 0xbe, Op::movsx, kModRm | kToReg | kReads, {}, 1},
    {0xbf, 0xbf, Op::movsx, kModRm | kToReg | kReads, {}, 2},
    {0xc0, 0xc1, Op::xadd, kByte | kModRm | kReads | kWrites},
    {0xc3, 0xc3, Op::mov, kModRm | kWrites | kChecked},  // movnti
    {0xc8, 0xcf, Op::bswap, kRegister | kChecked},
};

struct RuleIndex {
    const Rule* of[256] = {};
    template <std::size_t kCount>
    consteval RuleIndex(const Rule (&rules)[kCount]) {
        for (const Rule& rule : rules)
            for (unsigned op = rule.first; op <= rule.last; op++) of[op] = &rule;
    }
};
constexpr RuleIndex kOneByteIndex(kOneByteRules), kTwoByteIndex(kTwoByteRules);

unsigned size_of(const Prefixes& p) {
    return p.w() ? 8 : p.operand16 ? 2 : 4;
}

// False where there is more to do.
bool by_rule(const Rule* rule, Reader& in, const Prefixes& p, X64Instruction& i, unsigned op) {
    if (rule == nullptr) return false;
    if (rule->form & kNot16 && p.operand16) return true;
    unsigned form = rule->form, size = size_of(p);
    bool is_byte = form & kOneByte || (form & kByte && !(op & 1));
    i.op = rule->op;
    i.sub = rule->sub.number;
    i.from = rule->from;
    i.bytes = static_cast<std::uint8_t>(is_byte ? 1 : form & kWide ? 8 : size);
    i.to_reg = form & kToReg;
    if (form & (kModRm | kGroup)) {
        mod_rm(in, p, i);
        if (form & kGroup) i.sub = i.reg & 7;
    } else if (form & kRegister)
        i.rm = static_cast<std::uint8_t>((op & 7) | p.b());
    if (form & (kCondition | kRow)) i.sub = static_cast<std::uint8_t>(form & kRow ? op >> 3 : op & 15);
    if (is_byte || i.from == 1) byte_registers(p, i, is_byte && !(form & kGroup), true);
    bool compares = i.op == Op::alu && i.is(X64Alu::cmp);
    touches(i, i.from ? i.from : i.bytes, form & kReads, form & kWrites && !compares);
    if (form & (kImmediate | kShort | kTarget)) {
        unsigned number = form & kShort || is_byte ? 1 : size == 2 && !(form & kTarget) ? 2 : 4;
        i.immediate = in.number(number);
        i.has_immediate = !(form & kTarget);
    }
    return !(form & kChecked);
}

// Opcodes of one byte.
void one_byte(Reader& in, const Prefixes& p, X64Instruction& i, unsigned op) {
    unsigned size = size_of(p);
    bool is_alu = op < 0x40 && (op & 7) < 6;
    if (by_rule(kOneByteIndex.of[is_alu ? op & 7 : op], in, p, i, op)) return;
    switch (op) {
        case 0x8d:
            if (!i.has_memory) i.op = Op::unknown;
            return;
        case 0x90:
            if (!p.b()) i.op = Op::nop;  // else with r8
            return;
        case 0x9e:
        case 0x9f:
            i.op = op == 0x9e ? Op::sahf : Op::lahf;
            return;
        case 0xc2:
        case 0xc3:
            i.op = Op::ret;
            i.bytes = 8;
            if (op == 0xc2) i.immediate = in.number(2) & 0xffff;
            return;
        case 0xc6:
        case 0xc7:
            if (i.sub != 0) i.op = Op::unknown;
            return;
        case 0xd0:
        case 0xd1:
            i.immediate = 1;
            i.has_immediate = true;
            return;
        case 0xe8:
        case 0xe9:
            if (size == 2) i.op = Op::unknown;  // processors differ
            return;
        case 0xf5:
        case 0xf8:
        case 0xf9:
        case 0xfc:
        case 0xfd:
            i.op = Op::flag_set;
            i.set(op == 0xf5   ? X64Flag::cmc
                  : op == 0xf8 ? X64Flag::clc
                  : op == 0xf9 ? X64Flag::stc
                  : op == 0xfc ? X64Flag::cld
                               : X64Flag::std);
            return;
        case 0xf6:
        case 0xf7:
            if (i.sub >= 4) return;
            touches(i, i.bytes, true, i.sub >= 2);
            i.op = i.sub < 2 ? Op::test : i.sub == 2 ? Op::not_ : Op::neg;
            if (i.sub < 2) immediate(in, i, i.bytes < 4 ? i.bytes : 4);
            return;
        case 0xfe:
        case 0xff:
            if (i.sub == 1) i.op = Op::dec;
            if (i.sub < 2) return;
            i.op = op == 0xfe   ? Op::unknown
                   : i.sub == 2 ? Op::call_indirect
                   : i.sub == 4 ? Op::jmp_indirect
                   : i.sub == 6 ? Op::push
                                : Op::unknown;
            i.bytes = 8;
            touches(i, 8, true, false);
            return;
        default:
            break;
    }
    if (op >= 0xa4 && op < 0xb0) {
        bool compares = (op & 2) && (op & ~1u) != 0xaa;
        if (p.address32 || p.segment || (p.repeat == 0xf2 && !compares)) return;
        i.op = op < 0xa6   ? Op::movs
               : op < 0xa8 ? Op::cmps
               : op < 0xac ? Op::stos
               : op < 0xae ? Op::lods
                           : Op::scas;
        i.set(p.repeat == 0xf3 ? X64Repeat::while_equal
              : p.repeat       ? X64Repeat::while_not
                               : X64Repeat::once);
    }
    if (op >= 0xb8 && op < 0xc0) immediate(in, i, size);
    if (op >= 0xd8 && op < 0xe0) floating(in, p, i, op);
}

// Opcodes after 0f.
void two_bytes(Reader& in, const Prefixes& p, X64Instruction& i, unsigned op) {
    unsigned size = size_of(p);
    i.bytes = static_cast<std::uint8_t>(size);
    if (by_rule(kTwoByteIndex.of[op], in, p, i, op)) return;
    switch (op) {
        case 0xa3:
        case 0xab:
        case 0xb3:
        case 0xbb:
            mod_rm(in, p, i);
            if (i.has_memory) return;  // a string of bits
            i.op = Op::bit_test;
            i.sub = static_cast<std::uint8_t>(op >> 3 & 3);
            return;
        case 0xba:
            mod_rm(in, p, i);
            if ((i.reg & 7) < 4) return;
            i.op = Op::bit_test;
            i.sub = i.reg & 3;
            touches(i, size, true, i.sub != 0);
            immediate(in, i, 1);
            return;
        case 0x01: {
            unsigned which = in.byte();
            bool is_known = which == 0xd0 || which == 0xd6 || which == 0xf9;  // xgetbv, xtest, rdtscp
            i.op = which == 0xd6 ? Op::xtest : is_known ? Op::no_values : Op::unknown;
            i.immediate = which == 0xd0 ? 5 : which == 0xd6 ? 0 : 7;
            return;
        }
        case 0x31:
        case 0xa2:  // rdtsc, cpuid
            i.op = Op::no_values;
            i.immediate = op == 0x31 ? 5 : 15;
            return;
        case 0xae: {
            mod_rm(in, p, i);
            unsigned which = i.reg & 7;
            i.op = Op::nop;  // fences, and what moves lines about
            if (!i.has_memory && p.repeat != 0) {
                i.op = which < 2 && p.repeat == 0xf3 ? Op::no_values : Op::unknown;  // rdfsbase
                i.immediate = 1 << i.rm;
            } else if (!i.has_memory)
                i.op = which >= 5 ? Op::nop : Op::unknown;
            else if (which == 2 || which == 3) {  // the control of vector floating point
                i.op = which == 2 ? Op::ldmxcsr : Op::stmxcsr;
                touches(i, 4, which == 2, which == 3);
            } else if (which < 6 || (which == 6 && !p.operand16))
                i.op = Op::unknown;
            return;
        }
        case 0xb8:
            if (p.repeat != 0xf3) i.op = Op::unknown;
            return;
        case 0xbc:
        case 0xbd:
            if (p.repeat == 0xf3) i.set(op == 0xbc ? X64BitCount::tzcnt : X64BitCount::lzcnt);
            return;
        case 0xc3:
            if (!i.has_memory || p.operand16 || p.repeat) i.op = Op::unknown;
            return;
        case 0xc7:
            mod_rm(in, p, i);
            if (i.has_memory && (i.reg & 7) == 1) {
                i.op = Op::cmpxchg8b;
                i.bytes = p.w() ? 16 : 8;
                touches(i, i.bytes, true, true);
            } else if (!i.has_memory && (i.reg & 7) >= 6) {  // random numbers
                i.op = Op::no_values;
                i.set(X64Loses::flags);
                i.immediate = 1 << i.rm;
            }
            return;
        default:
            break;
    }
    if (i.op == Op::bswap && size == 2) i.op = Op::unknown;
    if (kTwoByteIndex.of[op] == nullptr) vector(in, p, i, op, p.last());
}

// 0f 38 and 0f 3a, and all that has VEX.
void extended_three(Reader& in, const Prefixes& p, X64Instruction& i, unsigned op) {
    using B = X64Bmi;
    unsigned size = p.w() ? 8 : p.operand16 && !p.vex ? 2 : 4;
    unsigned pp = p.vex ? p.pp : p.last();
    auto general = [&](B what) {
        i.op = Op::bmi;
        i.set(what);
        i.bytes = static_cast<std::uint8_t>(size);
        i.to_reg = true;
        mod_rm(in, p, i);
        touches(i, size, true, false);
        i.first = static_cast<std::uint8_t>(p.vex ? p.vvvv : i.reg);
    };
    static constexpr struct {
        unsigned opcode, pp;
        B what;
    } kBmi[] = {{0xf2, 0, B::andn}, {0xf3, 0, B::blsr}, {0xf5, 0, B::bzhi},  {0xf5, 2, B::pext},
                {0xf5, 3, B::pdep}, {0xf6, 3, B::mulx}, {0xf7, 0, B::bextr}, {0xf7, 1, B::shlx},
                {0xf7, 2, B::sarx}, {0xf7, 3, B::shrx}};
    for (const auto& one : kBmi) {
        if (!p.vex || p.map != 2 || p.is_256 || one.opcode != op || one.pp != pp) continue;
        general(one.what);
        if (one.what != B::blsr) return;
        i.sub = static_cast<std::uint8_t>(i.sub + (i.reg & 7) - 1);
        if ((i.reg & 7) < 1 || (i.reg & 7) > 3) i.op = Op::unknown;
        i.reg = static_cast<std::uint8_t>(p.vvvv);
        return;
    }
    if (p.vex && p.map == 3 && op == 0xf0 && pp == 3) {
        general(B::rorx);
        return immediate(in, i, 1);
    }
    if (!p.vex && p.map == 2 && op == 0xf6 && (p.repeat == 0xf3 || p.operand16)) {
        if (p.operand16) size = p.w() ? 8 : 4;
        return general(p.repeat == 0xf3 ? B::adox : B::adcx);
    }
    if (!p.vex && p.map == 2 && (op == 0xf0 || op == 0xf1)) {
        bool sums = p.repeat == 0xf2;
        i.op = sums ? Op::crc32 : Op::movbe;
        i.bytes = static_cast<std::uint8_t>(sums ? (p.w() ? 8 : 4) : size);
        i.from = static_cast<std::uint8_t>(op == 0xf0 ? 1 : size);
        mod_rm(in, p, i);
        i.to_reg = sums || op == 0xf0;
        if (sums && i.from == 1) byte_registers(p, i, false, true);
        touches(i, sums ? i.from : size, i.to_reg, !i.to_reg);
        if (!sums && (p.repeat || !i.has_memory)) i.op = Op::unknown;
        return;
    }
    vector(in, p, i, op, pp);
}

}  // namespace
}  // namespace x64

X64Instruction decode_x64(const std::uint8_t* code, unsigned bytes) {
    using namespace x64;
    Reader in{code, bytes};
    Prefixes p;
    X64Instruction i;
    unsigned op = in.byte();
    for (;; op = in.byte()) {
        if (op == 0x66)
            p.operand16 = true;
        else if (op == 0x67)
            p.address32 = true;
        else if (op == 0xf2 || op == 0xf3)
            p.repeat = static_cast<std::uint8_t>(op);
        else if (op == 0xf0)
            p.lock = true;
        else if (op == 0x64 || op == 0x65)
            p.segment = op == 0x64 ? 1 : 2;
        else if (op != 0x2e && op != 0x3e && op != 0x26 && op != 0x36)
            break;
        if (in.short_of || in.at >= 14) return {};
    }
    if ((op & 0xf0) == 0x40) {
        p.rex = op & 15;
        p.has_rex = true;
        op = in.byte();
    }
    if (!p.has_rex && op == 0x62)
        evex(in, p, i);
    else if (!p.has_rex && (op == 0xc4 || op == 0xc5)) {
        unsigned first = in.byte();
        p.vex = true;
        p.rex = first & 0x80 ? 0 : 4;
        unsigned last = first;
        p.map = 1;
        if (op == 0xc4) {
            p.rex |= (first & 0x40 ? 0 : 2) | (first & 0x20 ? 0 : 1);
            p.map = first & 31;
            last = in.byte();
            if (last & 0x80) p.rex |= 8;
        }
        p.vvvv = ~(last >> 3) & 15;
        p.is_256 = last & 4;
        p.pp = last & 3;
        op = in.byte();
        if (p.map == 1 && op == 0xae && p.pp == 0 && !p.is_256) {
            two_bytes(in, p, i, op);
            if (i.op != Op::ldmxcsr && i.op != Op::stmxcsr) i.op = Op::unknown;
        } else if (!mask_instruction(in, p, i, op))
            extended_three(in, p, i, op);
    } else if (op == 0x0f) {
        op = in.byte();
        if (op == 0x38 || op == 0x3a) {
            p.map = op == 0x38 ? 2 : 3;
            op = in.byte();
            extended_three(in, p, i, op);
        } else
            two_bytes(in, p, i, op);
    } else {
        one_byte(in, p, i, op);
        if (i.op == Op::nop && p.repeat == 0xf2) i.op = Op::unknown;
    }
    if (p.address32 && (i.has_memory || i.op == Op::jump_if_count)) i.op = Op::unknown;
    if (in.short_of || i.op == Op::unknown) return {};
    i.length = static_cast<std::uint8_t>(in.at);
    return i;
}

}  // namespace revisit::machine
