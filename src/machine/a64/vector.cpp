// Floating-point and vector instructions of aarch64, executed by the processor: see a64.h.
//
// Problem. String functions and comparisons of floating-point numbers decide branches by vector
// registers, and there are a thousand such instructions. Idea. They touch nothing but registers: copy
// the operands into place, run the very instruction, copy the result back. Which registers it reads is
// over-estimated by its register fields (a field that is something else costs a load, no more); what
// matters is what it writes, and that is a vector register but for the few below.
#include "machine/a64/a64.h"

namespace revisit::machine {

VectorRoles vector_roles(std::uint32_t i) {
    VectorRoles roles;
    if ((i & 0x5f20fc00) == 0x1e200000) {  // conversions between floating point and integers
        unsigned opcode = field(i, 16, 3);
        roles.from_general = opcode == 2 || opcode == 3 || opcode == 7;
        roles.to_general = !roles.from_general;
    } else if ((i & 0x5f200000) == 0x1e000000) {  // to and from fixed point
        roles.from_general = field(i, 17, 2) == 1;
        roles.to_general = !roles.from_general;
    } else if ((i & 0x5f203c00) == 0x1e202000)  // fcmp
        roles.sets_flags = true;
    else if ((i & 0x5f200c00) == 0x1e200400)  // fccmp
        roles.sets_flags = roles.reads_flags = true;
    else if ((i & 0x5f200c00) == 0x1e200c00)  // fcsel
        roles.reads_flags = true;
    else if ((i & 0xbfe0fc00) == 0x0e003c00 || (i & 0xbfe0fc00) == 0x0e002c00)  // umov, smov
        roles.to_general = true;
    else if ((i & 0xbfe0fc00) == 0x0e000c00 || (i & 0xffe0fc00) == 0x4e001c00)  // dup, ins
        roles.from_general = true;
    return roles;
}

// The general register that stands for the instruction's own.
static constexpr unsigned kGeneral = 9;

static void write_general(A64State& s, unsigned r, std::uint64_t value, bool is_known) {
    if (r == 31) return;
    s.x[r] = value;
    s.known = is_known ? s.known | 1u << r : s.known & ~(1u << r);
}

// Code per stub: x0 = vector registers, x1 = {general register, flags}.
std::uint32_t* VectorUnit::stub(std::uint32_t instruction, std::uint32_t renamed) {
    unsigned hash = (instruction * 0x9e3779b1u) >> 23;
    static_assert(kStubs == 512);
    std::uint32_t* code = code_ + hash * kStubWords;
    if (key_[hash] == instruction) return code;
    std::uint32_t* next = code;
    auto load = [&](unsigned v) { *next++ = 0x3dc00000 | v << 10 | v; };  // ldr q, [x0, 16 v]
    load(instruction & 31);
    for (unsigned k = 0; k < 4; k++) load((field(instruction, 5, 5) + k) & 31);  // tbl reads up to four
    load(field(instruction, 16, 5));
    load(field(instruction, 10, 5));
    *next++ = 0xf9400020 | kGeneral;  // ldr x9, [x1]
    *next++ = 0xf940042a;             // ldr x10, [x1, 8]
    *next++ = 0xd51b420a;             // msr nzcv, x10
    *next++ = renamed;
    *next++ = 0xd53b420a;                                                  // mrs x10, nzcv
    *next++ = 0xf9000020 | kGeneral;                                       // str x9, [x1]
    *next++ = 0xf900042a;                                                  // str x10, [x1, 8]
    *next++ = 0x3d800000 | (instruction & 31) << 10 | (instruction & 31);  // str q, [x0, 16 rd]
    *next++ = 0xd65f03c0;                                                  // ret
    __builtin___clear_cache(reinterpret_cast<char*>(code), reinterpret_cast<char*>(next));
    key_[hash] = instruction;
    return code;
}

bool VectorUnit::step(std::uint32_t i, A64State& s) {
    [[maybe_unused]] VectorRoles roles = vector_roles(i);
    [[maybe_unused]] unsigned rd = i & 31, rn = field(i, 5, 5);
    [[maybe_unused]] bool all_known = code_ != nullptr;
#if defined(__aarch64__)
    auto known = [&](unsigned v) { return (s.v_known >> v & 1) != 0; };
    if (roles.from_general)
        all_known &= rn == 31 || s.is_known(rn);
    else
        all_known &= known(rn) && known(field(i, 16, 5)) && known(field(i, 10, 5));
    if (!roles.to_general && !roles.sets_flags) all_known &= known(rd);
    if (roles.reads_flags) all_known &= s.flags_known;
    if (all_known) {
        std::uint32_t renamed = i;
        if (roles.from_general) renamed = (renamed & ~(31u << 5)) | (rn == 31 ? 31 : kGeneral) << 5;
        if (roles.to_general) renamed = (renamed & ~31u) | kGeneral;
        std::uint64_t general[2] = {roles.from_general && rn != 31 ? s.x[rn] : 0,
                                    std::uint64_t{s.nzcv} << 28};
        VectorValue before = s.v[rd];
        std::uint32_t* code = stub(i, renamed);
        register void* x0 __asm__("x0") = s.v;
        register std::uint64_t* x1 __asm__("x1") = general;
        register std::uint32_t* x2 __asm__("x2") = code;
        __asm__ volatile("blr x2"
                         : "+r"(x0), "+r"(x1), "+r"(x2)
                         :
                         : "x9", "x10", "x30", "cc", "memory", "v0", "v1", "v2", "v3", "v4", "v5", "v6",
                           "v7", "v8", "v9", "v10", "v11", "v12", "v13", "v14", "v15", "v16", "v17",
                           "v18", "v19", "v20", "v21", "v22", "v23", "v24", "v25", "v26", "v27", "v28",
                           "v29", "v30", "v31");
        if (failed_) {
            failed_ = false;
            return false;
        }
        if (roles.to_general) {
            s.v[rd] = before;
            write_general(s, rd, general[0], true);
        }
        if (roles.sets_flags) {
            s.v[rd] = before;
            s.nzcv = static_cast<std::uint32_t>(general[1] >> 28 & 15);
            s.flags_known = true;
        }
        return true;
    }
#endif
    skip(i, s);
    return true;
}

void VectorUnit::skip(std::uint32_t i, A64State& s) {
    [[maybe_unused]] VectorRoles roles = vector_roles(i);
    unsigned rd = i & 31;
    if (roles.to_general)
        write_general(s, rd, 0, false);
    else if (roles.sets_flags)
        s.flags_known = false;
    else
        s.v_known &= ~(1u << rd);
}

}  // namespace revisit::machine
