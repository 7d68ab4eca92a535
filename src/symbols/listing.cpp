#include "symbols/listing.h"

#include <capstone/capstone.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <memory>

#include "core/elf_file.h"
#include "core/try.h"

namespace revisit {
namespace {

constexpr std::uint64_t kNear = 256;       // bytes between sites of one stretch
constexpr std::uint64_t kAfter = 16;       // bytes shown after the last one
constexpr std::uint64_t kLongest = 16384;  // bytes of one stretch

struct CodeFile {
    ElfFile file;
    std::uint16_t machine = 0;
    std::vector<Elf64_Phdr> segments;
};

Result<CodeFile> open_code(const std::string& path) {
    CodeFile out{ElfFile(path), 0, {}};
    const Elf64_Ehdr& header = out.file.header();
    if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_ident[EI_DATA] != ELFDATA2LSB ||
        header.e_phentsize != sizeof(Elf64_Phdr))
        return fail(path, "", "expected a 64-bit ELF file");
    out.machine = header.e_machine;
    if (out.machine != EM_AARCH64 && out.machine != EM_X86_64)
        return fail(path, "", "expected code for x86-64 or arm64");
    out.segments = out.file.segments();
    if (out.segments.size() != header.e_phnum) return fail(path, "", "the program headers are cut off");
    return out;
}

// Bytes from `begin` to `end`, as far as the executable segment goes.
std::vector<std::uint8_t> code_between(CodeFile& code, std::uint64_t begin, std::uint64_t end) {
    std::vector<std::uint8_t> bytes;
    for (const Elf64_Phdr& segment : code.segments) {
        if (segment.p_type != PT_LOAD || (segment.p_flags & PF_X) == 0) continue;
        if (begin < segment.p_vaddr || begin - segment.p_vaddr >= segment.p_filesz) continue;
        bytes.resize(std::min(end - begin, segment.p_filesz - (begin - segment.p_vaddr)));
        bytes.resize(
            code.file.read(segment.p_offset + (begin - segment.p_vaddr), bytes.data(), bytes.size()));
        return bytes;
    }
    return bytes;
}

}  // namespace

Result<std::vector<Instruction>> listing_of(const std::string& module,
                                            std::vector<std::uint64_t> sites) {
    std::vector<Instruction> out;
    CodeFile code = TRY(open_code(module));
    csh decoder = 0;
    const bool arm = code.machine == EM_AARCH64;
    if (cs_open(arm ? CS_ARCH_ARM64 : CS_ARCH_X86, arm ? CS_MODE_LITTLE_ENDIAN : CS_MODE_64,
                &decoder) != CS_ERR_OK)
        return fail("the disassembler does not know this machine");
    std::unique_ptr<cs_insn, void (*)(cs_insn*)> at(cs_malloc(decoder),
                                                    [](cs_insn* one) { cs_free(one, 1); });
    std::ranges::sort(sites);
    for (std::size_t i = 0; i < sites.size();) {
        const std::uint64_t begin = sites[i];
        std::uint64_t last = begin;
        while (i < sites.size() && sites[i] - last <= kNear && sites[i] - begin < kLongest)
            last = sites[i++];
        const std::vector<std::uint8_t> bytes = code_between(code, begin, last + kAfter);
        const std::uint8_t* from = bytes.data();
        std::size_t left = bytes.size();
        std::uint64_t address = begin;
        while (left > 0 && cs_disasm_iter(decoder, &from, &left, &address, at.get()))
            out.push_back({at->address, at->op_str[0] == 0
                                            ? std::string(at->mnemonic)
                                            : fmt::format("{} {}", at->mnemonic, at->op_str)});
    }
    at.reset();
    cs_close(&decoder);
    return out;
}

}  // namespace revisit
