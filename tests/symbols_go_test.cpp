#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "symbols/go_table.h"

namespace revisit {
namespace {

void put_number(std::vector<std::uint8_t>& to, std::uint64_t value, unsigned bytes) {
    for (unsigned i = 0; i < bytes; i++) to.push_back(static_cast<std::uint8_t>(value >> 8 * i));
}

// Two functions of Go 1.19 on a processor with instructions of four bytes: main.one at 0x1000 with
// lines 7 (two instructions) and 5 (two), main.two at 0x1010 with line 300.
std::vector<std::uint8_t> small_table() {
    const std::string names("\0main.one\0main.two\0", 19), files("a.go\0b.go\0", 10);
    const std::vector<std::uint8_t> deltas = {
        0,                    // no function's are at 0
        2,    4,    0,        // file 0
        16,   2,    3, 2, 0,  // lines 7, then 5
        4,    1,    0,        // file 1
        0xda, 0x04, 1, 0,     // line 300
    };
    constexpr std::uint64_t kHeaderBytes = 8 + 8 * 8;
    const std::uint64_t at_names = kHeaderBytes, at_units = at_names + names.size();
    const std::uint64_t at_files = at_units + 8, at_deltas = at_files + files.size();
    const std::uint64_t at_functions = at_deltas + deltas.size();
    std::vector<std::uint8_t> table;
    put_number(table, 0xfffffff0, 4);
    put_number(table, 0, 2);
    put_number(table, 4, 1);
    put_number(table, 8, 1);
    for (std::uint64_t word : {std::uint64_t{2}, std::uint64_t{2}, std::uint64_t{0x1000}, at_names,
                               at_units, at_files, at_deltas, at_functions})
        put_number(table, word, 8);
    table.insert(table.end(), names.begin(), names.end());
    put_number(table, 0, 4);  // the unit's files
    put_number(table, 5, 4);
    table.insert(table.end(), files.begin(), files.end());
    table.insert(table.end(), deltas.begin(), deltas.end());
    constexpr std::uint64_t kList = 2 * 8 + 4, kAbout = 40;
    put_number(table, 0, 4);
    put_number(table, kList, 4);
    put_number(table, 0x10, 4);
    put_number(table, kList + kAbout, 4);
    put_number(table, 0x14, 4);
    auto describe = [&](std::uint64_t entry, std::uint64_t name, std::uint64_t file,
                        std::uint64_t line) {
        put_number(table, entry, 4);
        put_number(table, name, 4);
        for (int i = 0; i < 3; i++) put_number(table, 0, 4);
        put_number(table, file, 4);
        put_number(table, line, 4);
        for (int i = 0; i < 3; i++) put_number(table, 0, 4);
    };
    describe(0, 1, 1, 4);
    describe(0x10, 10, 9, 12);
    return table;
}

TEST(GoTable, functions_and_lines_are_found_in_a_stripped_program) {
    const std::vector<std::uint8_t> bytes = small_table();
    const GoTable table(bytes, 0);
    ASSERT_TRUE(table.is_there());
    const std::vector<FunctionSymbol> functions = table.functions();
    ASSERT_EQ(functions.size(), 2u);
    EXPECT_STREQ(functions[0].name, "main.one");
    EXPECT_EQ(functions[0].start, 0x1000u);
    EXPECT_EQ(functions[0].bytes, 0x10u);
    EXPECT_STREQ(functions[1].name, "main.two");
    EXPECT_EQ(table.line_at(0x1000).line, 7u);
    EXPECT_EQ(table.line_at(0x1004).line, 7u);
    EXPECT_EQ(table.line_at(0x100c).line, 5u);
    EXPECT_EQ(table.line_at(0x100c).file, "a.go");
    EXPECT_EQ(table.line_at(0x1010).line, 300u);
    EXPECT_EQ(table.line_at(0x1010).file, "b.go");
    EXPECT_EQ(table.line_at(0x0fff).line, 0u);
    EXPECT_EQ(table.line_at(0x1014).line, 0u);
}

TEST(GoTable, cut_and_broken_tables_say_nothing_wrong) {
    const std::vector<std::uint8_t> whole = small_table();
    for (std::size_t size = 0; size <= whole.size(); size++) {
        // A copy of its own size, so that a look beyond its end is one beyond the block.
        const std::vector<std::uint8_t> cut(whole.begin(),
                                            whole.begin() + static_cast<std::ptrdiff_t>(size));
        const GoTable table(cut, 0);
        for (const FunctionSymbol& one : table.functions())
            EXPECT_EQ(std::string(one.name).substr(0, 5), "main.");
        table.line_at(0x100c);
    }
    for (std::size_t i = 0; i < whole.size(); i++) {
        std::vector<std::uint8_t> broken = whole;
        broken[i] ^= 0xff;
        const GoTable table(broken, 0);
        (void)table.functions();
        table.line_at(0x100c);
        table.line_at(0x1010);
    }
}

}  // namespace
}  // namespace revisit
