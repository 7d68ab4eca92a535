// Ranges of functions against a walk through all symbols, on tables with nests, overlaps and labels.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <random>
#include <sstream>
#include <string>
#include <tuple>

#include "symbols/functions.h"
#include "symbols/symbolize.h"

namespace revisit {
namespace {

const FunctionSymbol* naive(const std::vector<FunctionSymbol>& all, std::uint64_t address) {
    const FunctionSymbol* best = nullptr;
    std::uint64_t reached = 0;
    for (const FunctionSymbol& s : all) {
        if (s.bytes == 0 || s.start > address) continue;
        reached = std::max(reached, s.start + s.bytes);
        if (address - s.start >= s.bytes) continue;
        auto order = [](const FunctionSymbol& f) { return std::tuple(f.start, ~f.bytes, f.rank); };
        if (!best || order(s) >= order(*best)) best = &s;
    }
    if (best) return best;
    for (const FunctionSymbol& s : all)
        if (s.bytes == 0 && s.start <= address && s.start >= reached &&
            (!best || std::tuple(s.start, s.rank) >= std::tuple(best->start, best->rank)))
            best = &s;
    return best && address < best->end_of_section ? best : nullptr;
}

TEST(FunctionIndex, as_a_walk_through_all_symbols) {
    std::mt19937 random(1);
    for (int round = 0; round < 300; round++) {
        std::vector<FunctionSymbol> symbols(random() % 40);
        for (FunctionSymbol& s : symbols) {
            s.start = random() % 200;
            s.bytes = random() % 4 ? random() % (round % 2 ? 60 : 8) : 0;
            s.rank = random() % 3;
            s.end_of_section = s.start < 100 ? 100 : 200;
        }
        FunctionIndex index(symbols);
        for (std::uint64_t address = 0; address < 300; address++) {
            const FunctionSymbol *seen = index.at(address), *expected = naive(symbols, address);
            ASSERT_EQ(seen != nullptr, expected != nullptr) << round << " " << address;
            if (!seen) continue;
            EXPECT_EQ(std::tuple(seen->start, seen->bytes, seen->rank),
                      std::tuple(expected->start, expected->bytes, expected->rank))
                << round << " " << address;
        }
    }
}

TEST(FunctionIndex, ends_that_overflow_and_no_symbols) {
    EXPECT_EQ(FunctionIndex().at(5), nullptr);
    FunctionIndex index({{100, ~std::uint64_t{0}, 0, 0, "wrong"}, {200, 10, 0, 0, "inner"}});
    EXPECT_EQ(index.at(99), nullptr);
    EXPECT_STREQ(index.at(150)->name, "wrong");
    EXPECT_STREQ(index.at(205)->name, "inner");
    EXPECT_STREQ(index.at(210)->name, "wrong");
}

TEST(Demangled, only_what_is_mangled) {
    for (const char* name : {"a", "b", "x", "i", "d", "f", "main", "St", "_start", ""})
        EXPECT_EQ(demangled(name), name);
    EXPECT_EQ(demangled("_Z3addii"), "add(int, int)");
    EXPECT_EQ(demangled("_ZNK3Row4sizeEv"), "Row::size() const");
    EXPECT_EQ(demangled("_Zbroken"), "_Zbroken");
}

#if defined(__aarch64__)

std::uint64_t file_offset(std::uint64_t address) {
    std::ifstream maps("/proc/self/maps");
    for (std::string line; std::getline(maps, line);) {
        std::uint64_t low = 0, high = 0, offset = 0;
        char dash = 0;
        std::string rights;
        std::istringstream(line) >> std::hex >> low >> dash >> high >> rights >> offset;
        if (low <= address && address < high) return address - low + offset;
    }
    return 0;
}

std::uint64_t returns_to = 0;

[[gnu::noinline]] void leaf() {
    returns_to = reinterpret_cast<std::uint64_t>(__builtin_return_address(0));
}
[[gnu::noinline]] std::uint64_t calls_leaf() {
    leaf();
    return returns_to;
}

// A sample in a leaf, an atomic operation of the compiler's library say, finds its caller so.
TEST(SymbolFile, return_address_is_in_the_register_until_a_function_saves_it) {
    Symbolizer symbols;
    SymbolFile& self = symbols.file("/proc/self/exe");
    EXPECT_TRUE(self.returns_by_register(file_offset(reinterpret_cast<std::uint64_t>(&leaf))));
    EXPECT_TRUE(self.returns_by_register(file_offset(reinterpret_cast<std::uint64_t>(&calls_leaf))));
    EXPECT_FALSE(self.returns_by_register(file_offset(calls_leaf())));
}

#endif

}  // namespace
}  // namespace revisit
