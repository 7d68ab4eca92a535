// What decoding integer and vector instructions of x86_64 has in common: see x64.h.
#pragma once

#include "machine/x64/x64.h"

namespace revisit::machine::x64 {

using Op = X64Instruction::Op;

// The bytes of one instruction, read in order.
struct Reader {
    const std::uint8_t* code;
    unsigned bytes, at = 0;
    bool short_of = false;

    std::uint8_t byte() {
        if (at >= bytes) {
            short_of = true;
            return 0;
        }
        return code[at++];
    }
    std::int64_t number(unsigned size) {
        if (size > bytes - at) {
            short_of = true;
            return 0;
        }
        std::uint64_t value = 0;
        for (unsigned i = 0; i < size; i++) value |= std::uint64_t{code[at++]} << 8 * i;
        return sign_extend(value, 8 * size);
    }
};

struct Prefixes {
    bool operand16 = false, address32 = false, lock = false;
    std::uint8_t repeat = 0;  // f2, f3
    std::uint8_t segment = 0;
    unsigned rex = 0;
    bool has_rex = false;
    // VEX, and EVEX, which has all of it
    bool vex = false, evex = false;
    unsigned map = 1, pp = 0, vvvv = 0;
    bool is_256 = false, is_512 = false;
    bool zeroes = false, broadcasts = false;
    unsigned mask = 0, more_reg = 0, more_rm = 0;  // 16 for the upper half of the registers

    bool w() const { return rex & 8; }
    unsigned r() const { return rex & 4 ? 8 : 0; }
    unsigned x() const { return rex & 2 ? 8 : 0; }
    unsigned b() const { return rex & 1 ? 8 : 0; }
    // That of the old encoding which chooses an operation, as VEX numbers them.
    unsigned last() const { return repeat == 0xf3 ? 2 : repeat == 0xf2 ? 3 : operand16 ? 1 : 0; }
};

inline void mod_rm(Reader& in, const Prefixes& p, X64Instruction& i) {
    unsigned modrm = in.byte(), mod = modrm >> 6, rm = modrm & 7;
    i.reg = static_cast<std::uint8_t>((modrm >> 3 & 7) | p.r());
    if (mod == 3) {
        i.rm = static_cast<std::uint8_t>(rm | p.b());
        return;
    }
    i.has_memory = true;
    i.segment = p.segment;
    if (rm == 4) {
        unsigned sib = in.byte(), index = (sib >> 3 & 7) | p.x(), base = sib & 7;
        if (index != 4) i.index = static_cast<std::uint8_t>(index);
        i.scale = static_cast<std::uint8_t>(1u << (sib >> 6));
        if (base == 5 && mod == 0)
            i.displacement = in.number(4);
        else
            i.base = static_cast<std::uint8_t>(base | p.b());
    } else if (rm == 5 && mod == 0) {
        i.base = X64Instruction::kPc;
        i.displacement = in.number(4);
    } else
        i.base = static_cast<std::uint8_t>(rm | p.b());
    if (mod == 1) i.displacement = in.number(1);
    if (mod == 2) i.displacement = in.number(4);
}

// Registers 4 to 7 of a byte operand without REX are ah, ch, dh, bh.
inline void byte_registers(const Prefixes& p, X64Instruction& i, bool reg, bool rm) {
    if (p.has_rex) return;
    if (reg && i.reg >= 4 && i.reg < 8) {
        i.reg -= 4;
        i.reg_is_high = true;
    }
    if (rm && !i.has_memory && i.rm >= 4 && i.rm < 8) {
        i.rm -= 4;
        i.rm_is_high = true;
    }
}

inline void touches(X64Instruction& i, unsigned bytes, bool reads, bool writes) {
    if (!i.has_memory || !(reads || writes)) return;
    i.memory_bytes = static_cast<std::uint8_t>(bytes);
    i.reads = reads;
    i.writes = writes;
}

inline void immediate(Reader& in, X64Instruction& i, unsigned bytes) {
    i.immediate = in.number(bytes);
    i.has_immediate = true;
}

// Vector instructions, of any encoding: pp is 0 none, 1 66, 2 f3, 3 f2. Unknown if not one of them.
void vector(Reader& in, const Prefixes& p, X64Instruction& i, unsigned op, unsigned pp);
// After 62.
void evex(Reader& in, Prefixes& p, X64Instruction& i);
// Those on mask registers alone, and vzeroupper. False = not one of them.
bool mask_instruction(Reader& in, const Prefixes& p, X64Instruction& i, unsigned op);

}  // namespace revisit::machine::x64
