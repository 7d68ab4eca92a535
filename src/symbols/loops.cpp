#include "symbols/loops.h"

#include <capstone/capstone.h>
#include <elf.h>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>

namespace revisit {
namespace {

std::optional<std::uint64_t> branch_target(const cs_insn& at, std::uint16_t machine) {
    std::span groups(at.detail->groups, at.detail->groups_count);
    if (std::ranges::find(groups, CS_GRP_JUMP) == groups.end()) return std::nullopt;
    // The target is the last operand: cbz and tbz name a register and a bit before it.
    if (machine == EM_AARCH64) {
        const cs_arm64& how = at.detail->arm64;
        if (how.op_count == 0 || how.operands[how.op_count - 1].type != ARM64_OP_IMM)
            return std::nullopt;
        return static_cast<std::uint64_t>(how.operands[how.op_count - 1].imm);
    }
    const cs_x86& how = at.detail->x86;
    if (how.op_count == 0 || how.operands[how.op_count - 1].type != X86_OP_IMM) return std::nullopt;
    return static_cast<std::uint64_t>(how.operands[how.op_count - 1].imm);
}

}  // namespace

std::vector<CodeLoop> loops_in(std::span<const std::uint8_t> code, std::uint64_t address,
                               std::uint16_t machine) {
    std::vector<CodeLoop> loops;
    csh decoder = 0;
    if (machine != EM_AARCH64 && machine != EM_X86_64) return loops;
    if (cs_open(machine == EM_AARCH64 ? CS_ARCH_ARM64 : CS_ARCH_X86,
                machine == EM_AARCH64 ? CS_MODE_LITTLE_ENDIAN : CS_MODE_64, &decoder) != CS_ERR_OK)
        return loops;
    cs_option(decoder, CS_OPT_DETAIL, CS_OPT_ON);
    std::unique_ptr<cs_insn, void (*)(cs_insn*)> at(cs_malloc(decoder),
                                                    [](cs_insn* one) { cs_free(one, 1); });
    std::map<std::uint64_t, std::uint64_t> last_branch;  // of each head
    const std::uint64_t begin = address;
    const std::uint8_t* from = code.data();
    std::size_t left = code.size();
    while (left > 0) {
        if (!cs_disasm_iter(decoder, &from, &left, &address, at.get())) {
            // Data among the code, or something newer than the decoder.
            std::size_t step = std::min<std::size_t>(machine == EM_AARCH64 ? 4 : 1, left);
            from += step, left -= step, address += step;
            continue;
        }
        if (auto target = branch_target(*at, machine);
            target && begin <= *target && *target <= at->address)
            last_branch[*target] = at->address;
    }
    at.reset();
    cs_close(&decoder);
    for (auto [head, branch] : last_branch) loops.push_back({head, branch});
    std::ranges::stable_sort(loops, {}, [](const CodeLoop& loop) { return loop.branch - loop.head; });
    return loops;
}

const CodeLoop* innermost(const std::vector<CodeLoop>& loops, std::uint64_t address) {
    for (const CodeLoop& loop : loops)
        if (loop.head <= address && address <= loop.branch) return &loop;
    return nullptr;
}

}  // namespace revisit
