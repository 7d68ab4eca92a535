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

TEST(Functions, rust_names_are_those_of_its_programmers) {
    const std::pair<const char*, const char*> kNames[] = {
        {"_RNvC6_123foo3bar", "123foo::bar"},
        {"_RNvNtCslNYArtu3iFV_5alloc5alloc5alloc", "alloc::alloc::alloc"},
        {"_RNvXs13_NtNtCsgEmfK2I1SDS_4core3cmp5implsyNtB8_3Ord3cmp", "<u64 as core::cmp::Ord>::cmp"},
        {"_RNCNCNgCs6DXkGYLi8lr_2cc5spawn00B5_", "cc::spawn::{closure#0}::{closure#0}"},
        {"_RNCINkXs25_NgCsbmNqQUJIY6D_4core5sliceINyB9_4IterhENuNgNoBb_"
         "4iter8iterator8Iterator9rposition"
         "NCNgNpB9_6memchr7memrchrs_0E0Bb_",
         "<core::slice::Iter<u8> as core::iter::iterator::Iterator>::rposition::<core::slice::memchr::"
         "memrchr::{closure#1}>::{closure#0}"},
        {"_RINbNbCskIICzLVDPPb_5alloc5alloc8box_freeDINbNiB4_5boxed5FnBoxuEp6OutputuEL_ECs1iopQbuBiw2_"
         "3std",
         "alloc::alloc::box_free::<dyn alloc::boxed::FnBox<(), Output = ()>>"},
        {"_RINvCs1_1a1bAhj3_TmERSeE", "a::b::<[u8; 3], (u32,), &[str]>"},
        {"_ZN1r4main17h086b0cfd890a8ea9E", "r::main"},
        {"_ZN9hashbrown3raw21RawTable$LT$T$C$A$GT$4find28_$u7b$$u7b$closure$u7d$$u7d$"
         "17h90de60c5a24944a8E",
         "hashbrown::raw::RawTable<T,A>::find::{{closure}}"},
        {"_ZN66_$LT$alloc..vec..Vec$LT$T$GT$$u20$as$u20$core..ops..drop..Drop$GT$"
         "4drop17h0123456789abcdefE",
         "<alloc::vec::Vec<T> as core::ops::drop::Drop>::drop"},
    };
    for (const auto& [symbol, name] : kNames) EXPECT_EQ(demangled(symbol), name) << symbol;
    // Names of C, cut symbols, references to themselves and ahead.
    for (const char* other : {"_R", "_Read", "_RNvC6_123foo", "_RNvC6_123foo3barr", "_RB_", "_RNvB_1a",
                              "_RINvC1a1bB5_E", "_RNvC99_a3bar", "_R1NvC1a1b", "_RINvC1a1bKB_E"})
        EXPECT_EQ(demangled(other), other);
    const std::string deep = "_RINvC1a1b" + std::string(100000, 'R') + "uE";
    EXPECT_EQ(demangled(deep.c_str()), deep);
    std::string doubled = "_RINvC1a1b";  // each names the one before it twice
    doubled += "TuuE";
    for (int i = 0; i < 40; i++) doubled += "TB8_B8_E";
    EXPECT_LT(demangled((doubled + "E").c_str()).size(), 20000u);
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
