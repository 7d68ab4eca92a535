// Which function an address is in.
//
// dwfl_module_addrinfo goes through the whole symbol table for every question. Gcc's compiler has 31
// thousand symbols, and its profile asks for many places: with one sampled every 50 us `revisit
// profile` took 3.4 s, and takes 0.7 s by this. The table is read once and cut into ranges that do not
// overlap, each with the function that begins last before it; a question is a binary search. Symbols
// without a size (labels of assembly) count only where no other reaches, up to the next one or the end
// of their section.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace revisit {

struct FunctionSymbol {
    std::uint64_t start = 0, bytes = 0;  // 0: not known
    std::uint64_t end_of_section = 0;
    unsigned rank = 0;  // the better one of two for the same bytes: local, weak, global
    const char* name = "";
};

// "_Z3addii" → "add(int, int)"; what is not mangled stays as it is.
std::string demangled(const char* name);

class FunctionIndex {
 public:
    FunctionIndex() = default;
    explicit FunctionIndex(std::vector<FunctionSymbol> symbols);

    const FunctionSymbol* at(std::uint64_t address) const;

 private:
    struct Range {
        std::uint64_t low, high;
        std::uint32_t symbol;
    };
    void cut_sized();
    void fill_gaps();

    std::vector<FunctionSymbol> symbols_;
    std::vector<Range> ranges_;  // sorted, apart
};

}  // namespace revisit
