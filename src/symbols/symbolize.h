// Places in ELF files as people know them: function, file and line, what was inlined into what, and the
// symbols of data. Debug information may lie in a separate file, found by build id or debug link; a
// stripped file still gives its offset and whatever its dynamic symbols name.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "revisit/profile.h"

struct Dwfl_Module;

namespace revisit {

class TypeFinder;

struct CodeSymbol {
    std::uint64_t address = 0;  // as objdump and addr2line print it
    Frame frame;
    std::vector<Frame> inlined;  // outermost last
    Frame loop;                  // where the innermost loop around it begins; line 0 = none known
};

struct DataSymbol {
    std::uint64_t file_address = 0;  // virtual address in the file
    std::uint64_t bytes = 0;
    std::string name;
};

// One ELF file with its debug information, opened once.
class SymbolFile {
 public:
    explicit SymbolFile(const std::string& path);
    ~SymbolFile();
    SymbolFile(const SymbolFile&) = delete;

    bool is_elf() const;
    bool has_lines() const;  // whether it has debug information
    std::string build_id() const;
    CodeSymbol code_at(std::uint64_t file_offset);
    std::vector<DataSymbol> data_symbols();  // sorted by address
    // Whether the function there has its return address in a register at that instruction (arm64).
    bool returns_by_register(std::uint64_t file_offset);
    // Virtual address in the file of what is mapped from `file_offset`.
    std::uint64_t address_of(std::uint64_t file_offset) const;
    Dwfl_Module* module() const;  // null: not to be read

 private:
    struct Inside;
    std::unique_ptr<Inside> inside_;
};

// Files by path, opened when first asked for, and the types that they have.
class Symbolizer {
 public:
    Symbolizer();
    ~Symbolizer();
    Symbolizer(const Symbolizer&) = delete;

    SymbolFile& file(const std::string& path);
    TypeFinder& types() { return *types_; }

 private:
    std::map<std::string, std::unique_ptr<SymbolFile>> files_;
    std::unique_ptr<TypeFinder> types_;  // of the files: ends before them
};

}  // namespace revisit
