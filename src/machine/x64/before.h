// Which instruction of x86_64 has just touched a word.
//
// Problem. A watchpoint traps after the access, with the address of the next instruction; instructions
// have no fixed length, so where the one before begins cannot be read off. Idea. Decode from every one
// of the last bytes: wherever one starts, decoding falls in step with the code after a few
// instructions, so most starts agree on the last one. Of those that end where they must, the one with
// most votes wins that can have touched the word: a memory operand whose address is still computable
// must lie there. Nothing fits after a jump, call or return through memory: then any byte of the
// instruction before is named, which is in the right line. Cost. One decoding per byte, 96 of them.
#pragma once

#include "machine/ahead.h"
#include "machine/x64/x64.h"

namespace revisit::machine {

namespace x64 {

enum class Touches : std::uint8_t { no, maybe, yes };

// `s` is the state after `i`, which ends at s.pc.
inline Touches touches_word(const X64Instruction& i, const X64State& s, std::uint64_t word) {
    using Op = X64Instruction::Op;
    auto overlaps = [&](std::uint64_t address, unsigned bytes) {
        return address < word + 8 && word < address + bytes ? Touches::yes : Touches::no;
    };
    if (i.op >= Op::movs && i.op <= Op::cmps) {
        std::uint64_t back = s.backwards ? 0 - std::uint64_t{i.bytes} : i.bytes;
        Touches to = i.op != Op::lods ? overlaps(s.r[7] - back, i.bytes) : Touches::no;
        bool has_source = i.op != Op::stos && i.op != Op::scas;
        return to == Touches::yes || !has_source ? to : overlaps(s.r[6] - back, i.bytes);
    }
    Touches stack = Touches::no;
    if (i.op == Op::push) stack = overlaps(s.r[4], 8);
    if (i.op == Op::pop || i.op == Op::leave) stack = overlaps(s.r[4] - 8, 8);
    if (stack == Touches::yes || !i.has_memory || !(i.reads || i.writes)) return stack;
    if (i.op == Op::gather || i.op == Op::scatter) return Touches::maybe;  // by a vector of indices
    auto is_changed = [&](unsigned r) {
        bool general =
            i.op < Op::vector_load || i.op == Op::vector_to_opaque || i.op == Op::scalar_to_integer;
        return general && r < 16 &&
               ((i.to_reg && i.reg == r) || i.op == Op::xchg || i.op == Op::xadd ||
                i.op == Op::cmpxchg || i.op == Op::multiply_wide || i.op == Op::bmi ||
                i.op == Op::cmpxchg8b);
    };
    if (is_changed(i.base) || is_changed(i.index) || i.segment == 2 ||
        (i.op == Op::push && i.base == 4))
        return Touches::maybe;
    auto address = static_cast<std::uint64_t>(i.displacement);
    if (i.base == X64Instruction::kPc)
        address += s.pc;
    else if (i.base != X64Instruction::kNone)
        address += s.r[i.base];
    if (i.index != X64Instruction::kNone) address += s.r[i.index] * i.scale;
    if (i.segment == 1) address += s.fs_base;
    return overlaps(address, i.memory_bytes);
}

}  // namespace x64

template <class Memory>
std::uint64_t x64_instruction_before(Memory& memory, const X64State& s, std::uint64_t word) {
    std::uint8_t here[15];  // one that is repeated stays where it is
    X64Instruction repeated = decode_x64(here, memory.fetch(s.pc, here));
    if (repeated.op >= X64Instruction::Op::movs && repeated.op <= X64Instruction::Op::cmps &&
        !repeated.is(X64Repeat::once) && x64::touches_word(repeated, s, word) == x64::Touches::yes)
        return s.pc;
    constexpr unsigned kBytes = 96;
    std::uint8_t code[kBytes];
    unsigned first = kBytes;  // of the bytes that can be read
    for (std::uint64_t value; first >= 8; first -= 8) {
        if (memory.load(s.pc - (kBytes - first) - 8, 8, value) != Loaded::value) break;
        for (unsigned k = 0; k < 8; k++)
            code[first - 8 + k] = static_cast<std::uint8_t>(value >> 8 * k);
    }
    std::uint8_t last[kBytes], votes[kBytes] = {};  // the instruction at the end, from every start
    constexpr std::uint8_t kNone = 255;
    for (unsigned at = kBytes; at-- > first;) {
        unsigned left = kBytes - at, end = at + decode_x64(code + at, left < 15 ? left : 15).length;
        last[at] = end == at || end > kBytes ? kNone
                   : end == kBytes           ? static_cast<std::uint8_t>(at)
                                             : last[end];
        if (last[at] != kNone) votes[last[at]]++;
    }
    unsigned best = kNone, best_votes = 0;
    for (unsigned at = first > kBytes - 15 ? first : kBytes - 15; at < kBytes; at++) {
        if (votes[at] == 0) continue;
        X64Instruction i = decode_x64(code + at, kBytes - at);
        x64::Touches touches = x64::touches_word(i, s, word);
        if (touches == x64::Touches::no) continue;
        unsigned weight = votes[at] * (touches == x64::Touches::yes ? 4u : 1u);
        if (weight > best_votes) {
            best = at;
            best_votes = weight;
        }
    }
    return best == kNone ? s.pc - 1 : s.pc - (kBytes - best);
}

}  // namespace revisit::machine
