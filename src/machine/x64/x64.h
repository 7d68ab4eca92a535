// x86_64: the registers of a thread, and its instructions, decoded.
//
// Instructions are decoded into one small struct (x64/decode.cpp; x64/decode_vector.cpp by a table):
// the operation, two operands of which one may be in memory, an immediate. x64/lift.cpp turns that into
// micro-operations, x64/ahead.h has what the interpreter needs to know of the machine. Integer values
// that no other machine computes are in x64/own.h. Vector and mask registers in all their widths are
// x64/vectors.h's: string functions search by comparing vectors, so packed integers are computed
// (x64/packed.cpp), and scalar and packed numbers with a fraction (x64/floats.h). What is left out
// (estimates of a root, x87, cyphers) makes its result unknown; a system call and everything that is
// not known here ends the look-ahead. Flags are followed one by one, for many instructions leave some
// undefined. The decoder is ours: it takes 30 ns per instruction of libc where Zydis 4.0 takes 105, and
// 165 with operands; both find the same lengths, and ours leaves out 0.16 % of libc and 0.004 % of
// libstdc++. Source. Intel 64 and IA-32 Architectures Software Developer's Manual, volume 2. Lengths
// and memory operands are compared with capstone over real objects in tests/machine_x64_test.cpp,
// results with the processor, a step at a time, by tests/watched/x64_steps.cpp.
#pragma once

#include <cstdint>
#include <span>

#include "machine/compute.h"

namespace revisit::machine {

struct X64Vector {  // of 16, 32 or 64 bytes; those that an instruction does not name are kept beside
                    // them
    std::uint64_t word[8] = {};
    bool operator==(const X64Vector&) const = default;
};

struct X64State {
    std::uint64_t r[kSlots] = {};  // rax rcx rdx rbx rsp rbp rsi rdi r8 …; from 16 on the interpreter's
    std::uint64_t known = 0;       // a bit for each
    std::uint64_t pc = 0;
    std::uint64_t fs_base = 0;
    std::uint8_t flags = 0, flags_known = 0;  // bits of those below
    bool backwards = false;                   // strings
    std::uint32_t mxcsr = 0x1f80;             // how floats are computed; 0 = not known
    bool has_bmi = true;                      // tzcnt and lzcnt are not taken for bsf and bsr
    std::uint8_t k_known = 0;
    std::uint8_t v_known[33] = {};  // a bit for every 16 bytes
    X64Vector v[33];                // the last is the interpreter's
    std::uint64_t k[8] = {};        // masks

    bool is_known(unsigned i) const { return known >> i & 1; }
    // Floats are rounded to nearest and nothing traps. Numbers next to zero are as they are, or all of
    // them zero, as -ffast-math has it. The low bits record what has happened.
    bool has_plain_floats() const { return (mxcsr & 0xffc0) == 0x1f80 || (mxcsr & 0xffc0) == 0x9fc0; }
    bool flushes_floats() const { return mxcsr & 0x8000; }
};

// With the stack pointer.
inline std::span<const std::uint64_t> general_registers(const X64State& state) {
    return {state.r, 16};
}

// What `sub` says of an operation. Mnemonics are the manual's, by the numbers of their encoding; a
// group has that of its first, or of what its members share.
enum class X64Alu : std::uint8_t { add, bit_or, adc, sbb, bit_and, sub, bit_xor, cmp };
enum class X64Wide : std::uint8_t { mul = 4, imul, div, idiv };
enum class X64Shift : std::uint8_t { rol, ror, rcl, rcr, shl, shr, sal, sar };
enum class X64DoubleShift : std::uint8_t { shld, shrd };
enum class X64BitTest : std::uint8_t { bt, bts, btr, btc };
enum class X64BitCount : std::uint8_t { popcnt, tzcnt, lzcnt, bsf, bsr };
enum class X64Flag : std::uint8_t { clc, stc, cmc, cld, std };
enum class X64Count : std::uint8_t { loopne, loope, loop, jrcxz };
enum class X64Repeat : std::uint8_t { once, while_equal, while_not };  // moves: any but once
enum class X64Loses : std::uint8_t { nothing, flags, ax };
enum class X64Mask : std::uint8_t { kand = 0x41, kandn, knot = 0x44, kor, kxnor, kxor, kadd = 0x4a };
enum class X64MaskMove : std::uint8_t { to_mask, to_memory, from_general, to_general };
enum class X64Narrow : std::uint8_t { cut, signed_, unsigned_ };  // what does not fit

struct X64Instruction {
    enum class Op : std::uint8_t {
        unknown,
        nop,
        alu,  // sub: X64Alu
        test,
        mov,
        lea,
        movzx,  // from `from` bytes
        movsx,
        push,
        pop,
        call,
        call_indirect,
        jmp,
        jmp_indirect,
        jcc,  // sub: condition
        ret,
        leave,
        inc,
        dec,
        not_,
        neg,
        multiply_wide,  // sub: X64Wide
        imul,           // reg = rm * (immediate or reg)
        shift,          // sub: X64Shift
        setcc,          // sub: condition
        cmovcc,         // sub: condition
        xchg,
        xadd,
        cmpxchg,
        bit_test,   // sub: X64BitTest
        bit_count,  // sub: X64BitCount
        bswap,
        cbw,           // cwde, cdqe
        cwd,           // cdq, cqo
        bmi,           // sub: X64Bmi
        double_shift,  // sub: X64DoubleShift
        crc32,
        movbe,
        cmpxchg8b,  // and cmpxchg16b
        flag_set,   // sub: X64Flag
        sahf,       // from ah
        lahf,
        jump_if_count,  // sub: X64Count
        no_values,      // general registers, bits of `immediate`, are not followed; sub: X64Loses
        xtest,
        floating,  // x87: its memory operand is known, values are not; sub: X64Loses
        ldmxcsr,   // of vectors: it is loaded
        stmxcsr,
        movs,  // one element; sub: X64Repeat
        stos,
        lods,
        scas,
        cmps,
        vector_load,
        vector_store,
        vector_move,        // between registers
        packed,             // sub: X64Packed
        scalar,             // sub: X64Packed
        scalar_move,        // the low part of rm into reg
        scalar_compare,     // into the flags
        scalar_convert,     // from `from` bytes
        integer_to_scalar,  // from a register or memory of `from` bytes
        scalar_to_integer,  // cut off, into a register
        general_to_vector,
        vector_to_general,  // the low bytes
        vector_insert,      // an element from a register or memory
        vector_extract,     // an element into a register or memory
        vector_halves,      // sub: 0 the element of `from` bytes at the immediate into rm, 1 rm in its
                            // place
        vector_spread,      // a general register into all elements
        vector_signs,       // the top bits of elements into a general register
        vector_compare,  // elements into a mask; sub: X64Packed, or 8 * signed + predicate by immediate
        float_compare,   // the same of floats; one where `bytes` is an element
        vector_blend,    // elements by the mask
        vector_narrow,   // elements of `from` bytes into smaller ones; sub: X64Narrow
        fused,           // a * b + c; sub: opcode; from: an element's bytes where it is of one
        gather,          // rm: the indices, of `from` bytes; first: the mask, where sub is set
        scatter,
        ptest,
        vzeroupper,      // sub 1: vzeroall
        vector_of_mask,  // all ones where the mask is set
        kmov,            // sub: X64MaskMove
        mask_logic,      // sub: X64Mask, or of two halves
        kortest,         // sub 1: ktest
        kshift,          // sub: 0 right, 1 left
        vector_other,    // the vector register in `reg` becomes unknown
        vector_to_mask,  // … the mask
        vector_to_flags,
        vector_to_opaque,  // a general register becomes unknown
    };
    static constexpr std::uint8_t kNone = 16, kPc = 17;

    std::uint8_t length = 0;  // 0 = not known
    Op op = Op::unknown;
    std::uint8_t sub = 0;    // see above
    std::uint8_t bytes = 4;  // of the operands
    std::uint8_t from = 0;   // of the source, where that is another
    std::uint8_t reg = 0, rm = 0;
    std::uint8_t first = 0;  // of a vector instruction's two sources; the rest of its result is of it
    bool reg_is_high = false, rm_is_high = false;  // ah, ch, dh, bh
    bool to_reg = false;                           // reg is the destination, else rm
    bool has_memory = false, has_immediate = false;
    bool reads = false, writes = false;  // its memory operand
    bool clears_above = false;           // the rest of a vector register; else it stays
    bool zeroes = false;                 // elements that the mask leaves out; else they stay
    bool broadcasts = false;             // one element of memory to all
    std::uint8_t mask = 0;               // 0 = none
    std::uint8_t element = 0;            // bytes
    std::uint8_t memory_bytes = 0;
    std::uint8_t base = kNone, index = kNone, scale = 1, segment = 0;  // 1 fs, 2 gs
    std::int64_t displacement = 0, immediate = 0;

    template <class Sub>
    bool is(Sub which) const {
        return sub == static_cast<std::uint8_t>(which);
    }
    template <class Sub>
    void set(Sub which) {
        sub = static_cast<std::uint8_t>(which);
    }
};

enum class X64Bmi : std::uint8_t {
    andn,
    blsr,
    blsmsk,
    blsi,
    bzhi,
    bextr,
    pdep,
    pext,
    shlx,
    shrx,
    sarx,
    rorx,
    adcx,
    adox,
    mulx,
};

// What vector instructions do, in groups: see x64/packed.cpp.
enum class X64Packed : std::uint8_t {
    pand,  // with every word
    pandn,
    por,
    pxor,
    padd,   // with every element
    padds,  // saturating
    paddus,
    psub,
    psubs,
    psubus,
    pmins,
    pmaxs,
    pminu,
    pmaxu,
    pcmpeq,
    pcmpgt,
    vptestm,  // a & b is not 0; into masks only
    vptestnm,
    pavg,
    pmull,
    pmulh,
    pmulhu,
    pmuldq,
    pmuludq,
    pabs,
    vpsllv,
    vpsrlv,
    vpsrav,
    psll,  // all by one count
    psrl,
    psra,
    pblend,
    pblendv,
    punpckl,  // with every 16 bytes
    punpckh,
    packss,
    packus,
    pshufb,
    shufps,
    palignr,
    pmaddwd,
    psadbw,
    pshufd,  // … of one operand
    pshuflw,
    pshufhw,
    pslldq,
    psrldq,
    movddup,   // movddup
    movsldup,  // movsldup
    movshdup,
    vpbroadcast,  // across
    pmovzx,
    pmovsx,
    movlps,  // of rm into the low half, the other stays
    movhps,
    movhlps,
    vpermq,
    vperm2i128,
    vpermd,
    vpternlog,
    vpermi2,
    vpermt2,
    valign,
    vpermil,    // by a register
    vpermilpd,  // by an immediate
    vshuff32x4,
    insertps,
    addps,  // and so on, as scalars
    mulps,
    subps,
    minps,
    divps,
    maxps,
    cmpps,
    sqrtps,
    roundps,
    cvtdq2ps,  // from here on the elements that are read are of another kind
    cvtudq2pd,
    cvtqq2pd,
    cvtuqq2pd,
    cvtps2pd,
    cvtpd2ps,
    cvtps2dq,
    cvttps2dq,
    cvttpd2dq,
};

// `bytes` that can be read at `code`, up to 15.
X64Instruction decode_x64(const std::uint8_t* code, unsigned bytes);

}  // namespace revisit::machine
