// What an instruction of x86_64 reads and writes besides memory: for x64/loops.h, which must know all
// of it to leave out iterations.
#pragma once

#include "machine/x64/x64.h"

namespace revisit::machine::x64 {

struct Effects {
    bool understood = false;
    std::uint32_t reads = 0, writes = 0;  // general registers, a bit each
    std::uint32_t addresses = 0;          // those it must know to go on
    std::uint32_t vectors = 0;            // vector registers written
    bool reads_flags = false, writes_flags = false;
    bool writes_unknown = false;  // what it writes comes of more than this tells: vectors, the clock
};

inline Effects effects_of(const X64Instruction& i) {
    using Op = X64Instruction::Op;
    Effects out;
    auto bit = [](unsigned r) { return r < 16 ? 1u << r : 0u; };
    std::uint32_t rm = i.has_memory ? 0 : bit(i.rm), reg = bit(i.reg), index = bit(i.index);
    std::uint32_t operand = i.has_memory ? bit(i.base) | index : 0;
    constexpr std::uint32_t kA = 1, kC = 2, kD = 4, kStack = 16, kFrame = 32, kSource = 64,
                            kTarget = 128;
    out.addresses = operand;
    out.understood = true;
    auto reads_writes = [&](std::uint32_t reads, std::uint32_t writes) {
        out.reads = reads;
        out.writes = writes;
        if (i.bytes < 4) out.reads |= writes;  // the rest stays
    };
    std::uint32_t other = i.has_immediate ? 0 : reg;
    switch (i.op) {
        case Op::nop:
            out.addresses = 0;
            return out;
        case Op::jump:
            return out;
        case Op::alu: {
            bool same = rm == reg && !i.has_immediate && i.reg_is_high == i.rm_is_high;
            reads_writes(rm | other, i.sub == 7 ? 0 : i.to_reg ? reg : rm);
            if (same && i.bytes >= 4 && i.sub >= 5) out.reads = 0;
            out.reads_flags = i.sub == 2 || i.sub == 3;
            out.writes_flags = true;
            return out;
        }
        case Op::test:
            out.reads = rm | other;
            out.writes_flags = true;
            return out;
        case Op::mov:
            i.to_reg ? reads_writes(rm, reg) : reads_writes(other, rm);
            return out;
        case Op::lea:
            out.addresses = 0;
            reads_writes(operand, reg);
            return out;
        case Op::zero_extend:
        case Op::sign_extend:
            reads_writes(rm, reg);
            return out;
        case Op::push:
            out.reads = i.has_immediate ? 0 : rm;
            out.addresses |= kStack;
            return out;
        case Op::pop:
            out.addresses |= kStack;
            out.writes = rm;
            return out;
        case Op::call:
        case Op::call_indirect:
        case Op::ret:
            out.addresses |= kStack;
            out.reads = i.op == Op::call_indirect ? rm : 0;
            return out;
        case Op::jump_indirect:
            out.reads = rm;
            return out;
        case Op::leave:
            out.addresses = kFrame;
            out.writes = kFrame | kStack;
            return out;
        case Op::jump_if:
            out.reads_flags = true;
            return out;
        case Op::jump_if_count:
            out.understood = i.sub >= 2;
            out.reads = kC;
            return out;
        case Op::increment:
        case Op::decrement:
        case Op::negate:
        case Op::invert:
            reads_writes(rm, rm);
            out.writes_flags = i.op != Op::invert;
            return out;
        case Op::multiply:
            reads_writes(rm | other, reg);
            out.writes_flags = true;
            return out;
        case Op::multiply_wide:
            reads_writes(rm | kA | (i.sub >= 6 && i.bytes > 1 ? kD : 0), kA | (i.bytes > 1 ? kD : 0));
            out.writes_flags = true;
            return out;
        case Op::shift:
        case Op::double_shift:
            reads_writes(rm | (i.op == Op::double_shift ? reg : 0) | (i.has_immediate ? 0 : kC), rm);
            out.writes_flags = true;
            out.reads_flags = i.op == Op::shift && (i.sub == 2 || i.sub == 3);
            return out;
        case Op::set:
            reads_writes(0, rm);
            out.reads_flags = true;
            return out;
        case Op::move_if:
            reads_writes(rm | reg, reg);
            out.reads_flags = true;
            return out;
        case Op::exchange:
            reads_writes(rm | reg, rm | reg);
            out.understood = !i.has_memory;
            return out;
        case Op::bit_test:
            reads_writes(rm | other, i.sub == 0 ? 0 : rm);
            out.writes_flags = true;
            return out;
        case Op::bit_count:
            reads_writes(rm | reg, reg);
            out.writes_flags = true;
            return out;
        case Op::byte_swap:
            reads_writes(rm, rm);
            return out;
        case Op::extend_a:
            reads_writes(kA, kA);
            return out;
        case Op::extend_d:
            reads_writes(kA, kD);
            return out;
        case Op::bmi: {
            auto what = static_cast<X64Bmi>(i.sub);
            std::uint32_t first = bit(i.first);
            reads_writes(rm | first, reg);
            if (what == X64Bmi::multiply) {
                out.reads = rm | kD;
                out.writes = reg | first;
            }
            out.reads_flags = what == X64Bmi::add_carry || what == X64Bmi::add_overflow;
            out.writes_flags = true;  // or not: then nothing is known of them
            return out;
        }
        case Op::checksum:
            reads_writes(rm | reg, reg);
            return out;
        case Op::swap_move:
            i.to_reg ? reads_writes(0, reg) : reads_writes(reg, 0);
            return out;
        case Op::opaque:
            reads_writes(0, i.to_reg ? reg : rm);
            out.writes_flags = out.writes_unknown = true;
            return out;
        case Op::no_values:
            out.writes = static_cast<std::uint32_t>(i.immediate) & 0xffff;
            out.writes_flags = i.sub != 0;
            out.writes_unknown = true;
            return out;
        case Op::floating:
            out.understood = i.sub != 3;
            out.writes = i.sub == 2 ? kA : 0;
            out.writes_flags = i.sub == 1;
            out.writes_unknown = true;
            return out;
        case Op::string_move:
        case Op::string_store:
        case Op::string_load:
            out.addresses = (i.op == Op::string_store ? 0 : kSource) |
                            (i.op == Op::string_load ? 0 : kTarget) | (i.sub ? kC : 0);
            out.writes = i.op == Op::string_load ? kA : 0;
            return out;
        case Op::vector_load:
        case Op::packed:
        case Op::scalar:
        case Op::scalar_move:
        case Op::scalar_convert:
        case Op::integer_to_scalar:
        case Op::general_to_vector:
        case Op::vector_insert:
        case Op::vector_spread:
        case Op::vector_of_mask:
        case Op::vector_other:
            out.vectors = 1u << (i.reg & 31);
            break;
        case Op::vector_move:
            out.vectors = 1u << ((i.to_reg ? i.reg : i.rm) & 31);
            break;
        case Op::vector_halves:
            out.vectors = i.has_memory && i.sub == 0 ? 0 : 1u << ((i.sub ? i.reg : i.rm) & 31);
            break;
        case Op::vector_clear:
            out.vectors = ~0u;
            break;
        case Op::vector_to_general:
        case Op::vector_extract:
            out.writes = rm;
            break;
        case Op::vector_signs:
        case Op::scalar_to_integer:
        case Op::vector_to_opaque:
            out.writes = reg;
            out.writes_flags = i.op == Op::vector_to_opaque;
            break;
        case Op::scalar_compare:
        case Op::vector_test:
        case Op::mask_test:
        case Op::vector_to_flags:
            out.writes_flags = true;
            break;
        case Op::mask_move:
            out.writes = i.sub == 3 ? reg : 0;
            break;
        case Op::vector_store:
        case Op::vector_writes:
        case Op::vector_compare:
        case Op::mask_logic:
        case Op::mask_shift:
        case Op::vector_to_mask:
            break;
        default:
            out.understood = false;
    }
    out.writes_unknown = true;
    // What a mask leaves out is not touched, and masks are not followed.
    if (i.mask != 0 && i.has_memory && !i.broadcasts) out.understood = false;
    return out;
}

}  // namespace revisit::machine::x64
