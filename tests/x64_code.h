// Code for x86_64, compiled on any machine: for the tests of what interprets it.
#pragma once

#include <elf.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include "machine/ahead.h"

namespace revisit::machine {

struct X64Code {
    std::vector<std::uint8_t> text;  // empty = there is no such compiler here
    std::map<std::string, std::uint64_t> functions;
};

// The code of an object that a compiler, or clang, makes of C code without data. Code that a compiler
// which is here does not take is an exception: a failed test.
inline X64Code compile_for_x64(const std::string& source, const std::string& options,
                               const std::string& compiler = "clang-19 --target=x86_64-linux-gnu") {
    X64Code out;
    const std::string program = compiler.substr(0, compiler.find(' '));
    if (std::system(("command -v " + program + " >/dev/null").c_str()) != 0) return out;
    std::string name = (std::filesystem::temp_directory_path() / "revisit-x64-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) return out;
    std::filesystem::path directory = name;
    std::ofstream(directory / "code.c") << source;
    std::string command = compiler + " -ffreestanding -fno-pic -fno-jump-tables " + options +
                          " -c -o " + (directory / "code.o").string() + " " +
                          (directory / "code.c").string();
    if (std::system(command.c_str()) != 0) throw std::runtime_error(command + "\n" + source);
    std::ifstream file(directory / "code.o", std::ios::binary);
    std::vector<char> all{std::istreambuf_iterator<char>(file), {}};
    Elf64_Ehdr header;
    std::memcpy(&header, all.data(), sizeof header);
    std::vector<Elf64_Shdr> sections(header.e_shnum);
    std::memcpy(sections.data(), all.data() + header.e_shoff, sections.size() * sizeof(Elf64_Shdr));
    const char* names = all.data() + sections[header.e_shstrndx].sh_offset;
    for (const Elf64_Shdr& section : sections) {
        if (std::strcmp(names + section.sh_name, ".text") == 0)
            out.text.assign(all.data() + section.sh_offset,
                            all.data() + section.sh_offset + section.sh_size);
        if (section.sh_type != SHT_SYMTAB) continue;
        const char* strings = all.data() + sections[section.sh_link].sh_offset;
        for (std::uint64_t k = 0; k < section.sh_size; k += sizeof(Elf64_Sym)) {
            Elf64_Sym symbol;
            std::memcpy(&symbol, all.data() + section.sh_offset + k, sizeof symbol);
            out.functions[strings + symbol.st_name] = symbol.st_value;
        }
    }
    std::filesystem::remove_all(directory);
    return out;
}

// Code, and data after which everything faults.
template <std::uint64_t kSize>
struct X64Memory {
    static constexpr std::uint64_t kCode = 0x10000, kData = 0x700000000000, kBytes = kSize;
    const std::vector<std::uint8_t>* code = nullptr;
    std::vector<std::uint8_t> data = std::vector<std::uint8_t>(kBytes);

    unsigned fetch(std::uint64_t pc, std::uint8_t (&to)[15]) {
        if (pc < kCode || pc >= kCode + code->size()) return 0;
        auto bytes = static_cast<unsigned>(std::min<std::uint64_t>(15, kCode + code->size() - pc));
        std::memcpy(to, code->data() + (pc - kCode), bytes);
        return bytes;
    }
    Loaded load(std::uint64_t address, unsigned bytes, std::uint64_t& value) {
        if (address < kData || address + bytes > kData + kBytes) return Loaded::fault;
        value = 0;
        std::memcpy(&value, data.data() + (address - kData), bytes);
        return Loaded::value;
    }
    bool store(std::uint64_t address, unsigned bytes, std::uint64_t value) {
        if (address < kData || address + bytes > kData + kBytes) return false;
        std::memcpy(data.data() + (address - kData), &value, bytes);
        return true;
    }
};

}  // namespace revisit::machine
