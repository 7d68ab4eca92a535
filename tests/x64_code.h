// Code for x86_64, compiled on any machine: for the tests of what interprets it.
#pragma once

#include <elf.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <vector>

namespace revisit::machine {

struct X64Code {
    std::vector<std::uint8_t> text;  // empty = there is no such compiler here
    std::map<std::string, std::uint64_t> functions;
};

// The code of an object that a compiler, or clang, makes of C code without data.
inline X64Code compile_for_x64(const std::string& source, const std::string& options,
                               const std::string& compiler = "clang-19 --target=x86_64-linux-gnu") {
    X64Code out;
    std::string name = (std::filesystem::temp_directory_path() / "revisit-x64-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) return out;
    std::filesystem::path directory = name;
    std::ofstream(directory / "code.c") << source;
    std::string command = compiler + " -ffreestanding -fno-pic -fno-jump-tables " + options +
                          " -c -o " + (directory / "code.o").string() + " " +
                          (directory / "code.c").string() + " 2>/dev/null";
    if (std::system(command.c_str()) == 0) {
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
    }
    std::filesystem::remove_all(directory);
    return out;
}

}  // namespace revisit::machine
