// What the aarch64 look-ahead takes for a load or store, and where it goes, against capstone: over
// every instruction of the C library and of this program.
#include <gtest/gtest.h>

#include "machine/a64/a64.h"

#if defined(__aarch64__) && REVISIT_HAVE_CAPSTONE
#include <capstone/capstone.h>
#include <link.h>

#include <cstring>
#include <string>

namespace revisit::machine {
namespace {

unsigned number_of(arm64_reg reg) {
    if (reg == ARM64_REG_SP) return 31;
    if (reg == ARM64_REG_X29) return 29;
    if (reg == ARM64_REG_X30) return 30;
    if (reg >= ARM64_REG_X0 && reg <= ARM64_REG_X28) return reg - ARM64_REG_X0;
    if (reg >= ARM64_REG_W0 && reg <= ARM64_REG_W30) return reg - ARM64_REG_W0;
    return 99;
}

// What an instruction touches, by executing it.
struct MemoryOperation {
    enum class Kind { none, load, store, both, unknown } kind = Kind::unknown;
    std::uint64_t address = 0;
};
struct NoMemory {
    std::uint32_t instruction;
    bool fetch(std::uint64_t, std::uint32_t& to) const {
        to = instruction;
        return true;
    }
    Loaded load(std::uint64_t, unsigned, std::uint64_t& value) const {
        value = 0;
        return Loaded::value;
    }
    bool store(std::uint64_t, unsigned, std::uint64_t, bool) const { return true; }
};
MemoryOperation decode_memory(std::uint32_t instruction, A64State state) {
    Lifting lifted;
    A64::lift(state.pc, instruction, lifted);
    bool loads = false, stores = false;
    for (unsigned k = 0; k < lifted.count; k++) {
        stores |= lifted.micro[k].is_store();
        loads |= lifted.micro[k].is_memory() && !lifted.micro[k].is_store();
    }
    NoMemory memory{instruction};
    A64Ahead<NoMemory> ahead(state, memory, nullptr);
    Step step = ahead.step();
    using Kind = MemoryOperation::Kind;
    if (step == Step::stop) return {Kind::unknown, 0};
    if (step == Step::done) return {Kind::none, 0};
    return {loads && stores ? Kind::both : stores ? Kind::store : Kind::load, ahead.touched().address};
}

struct Compared {
    std::size_t all = 0, memory = 0, refused = 0;
    std::string wrong;
};

void compare(csh handle, cs_insn* found, std::uint32_t instruction, Compared& done) {
    const auto* at = reinterpret_cast<const std::uint8_t*>(&instruction);
    std::size_t left = 4;
    std::uint64_t address = 0x4000;
    if (!cs_disasm_iter(handle, &at, &left, &address, found)) return;
    done.all++;
    const cs_arm64& detail = found->detail->arm64;
    const cs_arm64_op* operand = nullptr;
    for (unsigned k = 0; k < detail.op_count; k++)
        if (detail.operands[k].type == ARM64_OP_MEM) operand = &detail.operands[k];
    A64State state;
    for (unsigned r = 0; r < 32; r++) state.x[r] = std::uint64_t{0x1000000} * (r + 1);
    state.known = ~0u;
    state.pc = 0x4000;
    auto fail = [&](const char* why) {
        if (done.wrong.empty())
            done.wrong = std::string(found->mnemonic) + " " + found->op_str + ": " + why;
    };
    bool prefetches = std::strncmp(found->mnemonic, "prf", 3) == 0;
    if (!is_memory_class(instruction)) {
        if (operand != nullptr && !prefetches) fail("touches memory");
        return;
    }
    MemoryOperation op = decode_memory(instruction, state);
    if (op.kind == MemoryOperation::Kind::unknown) {
        // Scalable ones are always refused, and how many there are depends on the C library: they must
        // be loads and stores all the same.
        if (!is_scalable_memory(instruction))
            done.refused++;
        else if (!prefetches && std::strncmp(found->mnemonic, "ld", 2) != 0 &&
                 std::strncmp(found->mnemonic, "st", 2) != 0)
            fail("is no access of scalable vectors");
        return;
    }
    done.memory++;
    if (prefetches != (op.kind == MemoryOperation::Kind::none)) fail("prefetch or not");
    if (prefetches) return;
    bool stores = std::strncmp(found->mnemonic, "st", 2) == 0;
    if (stores && op.kind == MemoryOperation::Kind::load) fail("is a store");
    if (std::strncmp(found->mnemonic, "ld", 2) == 0 && op.kind == MemoryOperation::Kind::store)
        fail("is a load");
    if (operand == nullptr) {  // relative to pc
        if (detail.op_count < 2 || op.address != static_cast<std::uint64_t>(detail.operands[1].imm))
            fail("literal's address");
        return;
    }
    unsigned base = number_of(operand->mem.base);
    if (base == 99) return fail("base");
    std::uint64_t expected =
        state.x[base] + static_cast<std::uint64_t>(std::int64_t{operand->mem.disp});
    if (operand->mem.index != ARM64_REG_INVALID) {
        unsigned index = number_of(operand->mem.index);
        expected += (index == 31 ? 0 : state.x[index]) << operand->shift.value;
    }
    if (op.address != expected) fail("address");
}

TEST(WatchA64, decodes_loads_and_stores_as_capstone_does) {
    csh handle;
    ASSERT_EQ(cs_open(CS_ARCH_ARM64, CS_MODE_ARM, &handle), CS_ERR_OK);
    cs_option(handle, CS_OPT_DETAIL, CS_OPT_ON);
    struct Walk {
        csh handle;
        cs_insn* found;
        Compared done;
    } walk{handle, cs_malloc(handle), {}};
    dl_iterate_phdr(
        [](dl_phdr_info* module, std::size_t, void* to) {
            auto& walk = *static_cast<Walk*>(to);
            bool is_libc = std::strstr(module->dlpi_name, "libc.so") != nullptr;
            if (!is_libc && module->dlpi_name[0] != 0) return 0;
            for (unsigned k = 0; k < module->dlpi_phnum; k++) {
                const auto& part = module->dlpi_phdr[k];
                if (part.p_type != PT_LOAD || !(part.p_flags & PF_X)) continue;
                const auto* code =
                    reinterpret_cast<const std::uint32_t*>(module->dlpi_addr + part.p_vaddr);
                std::size_t count = part.p_memsz / 4;
                if (!is_libc && count > 400000) count = 400000;  // a tenth of a second
                for (std::size_t i = 0; i < count; i++)
                    compare(walk.handle, walk.found, code[i], walk.done);
            }
            return 0;
        },
        &walk);
    EXPECT_EQ(walk.done.wrong, "");
    EXPECT_GT(walk.done.memory, 50000u);
    EXPECT_LT(walk.done.refused, walk.done.memory / 500);
    cs_free(walk.found, 1);
    cs_close(&handle);
}

}  // namespace
}  // namespace revisit::machine
#endif
