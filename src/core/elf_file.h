// The headers of an ELF file, and what lies where they say.
#pragma once

#include <elf.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <string>
#include <vector>

namespace revisit {

class ElfFile {
 public:
    explicit ElfFile(const std::string& path) : file_(path, std::ios::binary) {
        file_.read(reinterpret_cast<char*>(&header_), sizeof header_);
        constexpr std::streamsize kUpToMachine = EI_NIDENT + 4;
        if (file_.gcount() < kUpToMachine || std::memcmp(header_.e_ident, ELFMAG, SELFMAG) != 0)
            header_ = {};
    }

    // All zero where it is no ELF file. Its class and machine are in place for 32 bits, too.
    const Elf64_Ehdr& header() const { return header_; }
    bool is_elf() const { return header_.e_ident[EI_MAG0] != 0; }

    // Empty where there are none, where they are of 32 bits, and where the file ends before.
    std::vector<Elf64_Phdr> segments() {
        return table<Elf64_Phdr>(header_.e_phoff, header_.e_phnum, header_.e_phentsize);
    }
    std::vector<Elf64_Shdr> sections() {
        return table<Elf64_Shdr>(header_.e_shoff, header_.e_shnum, header_.e_shentsize);
    }

    // How many bytes from `at` on there are, up to `bytes`.
    std::size_t read(std::uint64_t at, void* to, std::size_t bytes) {
        file_.clear();
        file_.seekg(static_cast<std::streamoff>(at));
        file_.read(static_cast<char*>(to), static_cast<std::streamsize>(bytes));
        return file_.gcount() > 0 ? static_cast<std::size_t>(file_.gcount()) : 0;
    }
    std::string text(std::uint64_t at, std::size_t bytes) {
        std::string out(bytes, '\0');
        out.resize(read(at, out.data(), bytes));
        return out;
    }

 private:
    template <class Row>
    std::vector<Row> table(std::uint64_t at, unsigned count, unsigned bytes) {
        std::vector<Row> out(bytes == sizeof(Row) ? count : 0);
        if (read(at, out.data(), out.size() * sizeof(Row)) != out.size() * sizeof(Row)) out.clear();
        return out;
    }

    std::ifstream file_;
    Elf64_Ehdr header_{};
};

}  // namespace revisit
