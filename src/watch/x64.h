// Looking ahead on x86_64: what a64.h is for aarch64.
//
// Instructions are decoded into one small struct (x64_decode.cpp): the operation, two operands of which
// one may be in memory, an immediate. x64_ahead.h executes it. General registers and flags are
// followed, vector registers through plain moves (that is how compilers copy structures), bitwise
// operations and scalar floating point (x64_floats.h): any other vector instruction makes its result
// unknown. A search through strings, x87, a system call and
// everything that is not known here ends the look-ahead. Flags are followed one by one, for many
// instructions leave some undefined. Source. Intel 64 and IA-32 Architectures Software Developer's
// Manual, volume 2. Lengths and memory operands are compared with capstone over real objects in
// tests/watch_x64_test.cpp. Not verified on hardware: it was written on an aarch64 machine, where its
// tests run it on registers and memory of their own.
#pragma once

#include <string.h>

#include <cstdint>

#include "watch/a64.h"

namespace revisit::watch {

struct X64State {
    std::uint64_t r[16] = {};  // rax rcx rdx rbx rsp rbp rsi rdi r8 …
    std::uint32_t known = 0;
    std::uint32_t v_known = 0;
    std::uint64_t pc = 0;
    std::uint64_t fs_base = 0;
    std::uint8_t flags = 0, flags_known = 0;  // bits of those below
    bool backwards = false;                   // strings
    bool plain_floats = true;                 // rounded to nearest, nothing flushed to zero
    VectorValue v[32];                        // the low 16 bytes

    bool is_known(unsigned i) const { return known >> i & 1; }
};

// In all that is known of both.
inline bool same_registers(const X64State& a, const X64State& b) {
    for (unsigned i = 0; i < 16; i++)
        if (a.is_known(i) && b.is_known(i) && a.r[i] != b.r[i]) return false;
    return true;
}

// Flags.
inline constexpr std::uint8_t kCarry = 1, kParity = 2, kZero = 4, kSign = 8, kOverflow = 16,
                              kAllFlags = 31;

struct X64Instruction {
    enum class Op : std::uint8_t {
        unknown,
        nop,
        alu,  // sub: add or adc sbb and sub xor cmp
        test,
        mov,
        lea,
        zero_extend,  // from `from` bytes
        sign_extend,
        push,
        pop,
        call,
        call_indirect,
        jump,
        jump_indirect,
        jump_if,  // sub: condition
        ret,
        leave,
        increment,
        decrement,
        invert,
        negate,
        multiply_wide,  // sub: 4 mul, 5 imul, 6 div, 7 idiv
        multiply,       // reg = rm * (immediate or reg)
        shift,          // sub: rol ror rcl rcr shl shr sal sar
        set,
        move_if,
        exchange,
        exchange_add,
        compare_exchange,
        bit_test,   // sub: 0 bt, 1 bts, 2 btr, 3 btc
        bit_count,  // sub: 0 popcnt, 1 tzcnt, 2 lzcnt, 3 bsf, 4 bsr
        byte_swap,
        extend_a,     // cbw and so on
        extend_d,     // cwd and so on
        string_move,  // one element; sub 1: repeated
        string_store,
        opaque,  // its general result and flags are not followed, its memory operand is
        vector_load,
        vector_store,
        vector_move,        // between registers
        vector_zero,        // xor with itself
        vector_logic,       // sub: and, and not, or, xor
        scalar,             // sub: add mul - - sub min div max
        scalar_move,        // the low part of rm into reg
        scalar_compare,     // into the flags
        scalar_convert,     // from `from` bytes
        integer_to_scalar,  // from a register or memory of `from` bytes
        scalar_to_integer,  // cut off, into a register
        general_to_vector,
        vector_to_general,  // the low bytes
        vector_other,       // the vector register in `reg` becomes unknown
        vector_to_mask,     // a mask register, which is not followed
        vector_to_flags,
        vector_to_opaque,  // a general register becomes unknown
        vector_writes,     // an unknown value into memory
    };
    static constexpr std::uint8_t kNone = 16, kPc = 17;

    std::uint8_t length = 0;  // 0 = not known
    Op op = Op::unknown;
    std::uint8_t sub = 0;
    std::uint8_t bytes = 4;  // of the operands
    std::uint8_t from = 0;   // of the source, where that is another
    std::uint8_t reg = 0, rm = 0;
    std::uint8_t first = 0;  // of a vector instruction's two sources; the rest of its result is of it
    bool reg_is_high = false, rm_is_high = false;  // ah, ch, dh, bh
    bool to_reg = false;                           // reg is the destination, else rm
    bool has_memory = false, has_immediate = false;
    bool reads = false, writes = false;  // its memory operand
    std::uint8_t memory_bytes = 0;
    std::uint8_t base = kNone, index = kNone, scale = 1, segment = 0;  // 1 fs, 2 gs
    std::int64_t displacement = 0, immediate = 0;
};

// `bytes` that can be read at `code`, up to 15.
X64Instruction decode_x64(const std::uint8_t* code, unsigned bytes);

// Instructions decoded before, by address, beside the bytes they were made from.
class X64Table {
 public:
    const X64Instruction& at(std::uint64_t pc, const std::uint8_t (&code)[15], unsigned bytes) {
        Entry& entry = entries_[pc % kEntries];
        if (entry.bytes != bytes || memcmp(entry.code, code, bytes) != 0) {
            entry.bytes = static_cast<std::uint8_t>(bytes);
            memcpy(entry.code, code, sizeof code);
            entry.instruction = decode_x64(code, bytes);
        }
        return entry.instruction;
    }

 private:
    static constexpr unsigned kEntries = 2048;
    struct Entry {
        std::uint8_t bytes = 0, code[15] = {};
        X64Instruction instruction;
    };
    Entry entries_[kEntries];
};

}  // namespace revisit::watch
