// Scopes around each address of a program compiled here, against libdw's own search.
#include <dwarf.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "symbols/scopes.h"

namespace revisit {
namespace {

// Outwards from the innermost one, to the function.
std::vector<Dwarf_Off> naive(Dwarf_Die* unit, Dwarf_Addr address) {
    Dwarf_Die *innermost = nullptr, *chain = nullptr;
    std::vector<Dwarf_Off> out;
    int depth = 0;
    if (dwarf_getscopes(unit, address, &innermost) > 0)
        depth = dwarf_getscopes_die(&innermost[0], &chain);
    bool in_function = false;
    for (int i = 0; i < depth && !in_function; i++) {
        out.push_back(dwarf_dieoffset(&chain[i]));
        in_function = dwarf_tag(&chain[i]) == DW_TAG_subprogram;
    }
    std::free(innermost);
    std::free(chain);
    return in_function ? out : std::vector<Dwarf_Off>{};
}

TEST(Scopes, are_those_that_libdw_finds) {
    if (std::system("command -v c++ >/dev/null") != 0) GTEST_SKIP() << "no C++ compiler";
    std::string folder = (std::filesystem::temp_directory_path() / "revisit-scopes-XXXXXX").string();
    ASSERT_NE(mkdtemp(folder.data()), nullptr);
    const std::string source = folder + "/inlined.cpp", program = folder + "/inlined";
    std::ofstream(source) << "#include <algorithm>\n"
                             "#include <vector>\n"
                             "namespace deep {\n"
                             "struct Sum {\n"
                             "    long all = 0;\n"
                             "    [[gnu::always_inline]] void add(long x) { all += half(x); }\n"
                             "    [[gnu::always_inline]] static long half(long x) {\n"
                             "        if (x % 3 == 0) { long y = x / 7; return y * y; }\n"
                             "        return x / 2;\n"
                             "    }\n"
                             "};\n"
                             "}\n"
                             "int main(int count, char**) {\n"
                             "    std::vector<long> v(count + 100);\n"
                             "    for (long& x : v) x = &x - v.data();\n"
                             "    std::sort(v.begin(), v.end(),\n"
                             "              [](long a, long b) { return a % 5 < b % 5; });\n"
                             "    deep::Sum sum;\n"
                             "    for (long x : v) sum.add(x);\n"
                             "    return static_cast<int>(sum.all & 1);\n"
                             "}\n";
    ASSERT_EQ(std::system(("c++ -g -O2 " + source + " -o " + program).c_str()), 0);
    const int file = open(program.c_str(), O_RDONLY | O_CLOEXEC);
    Dwarf* dwarf = dwarf_begin(file, DWARF_C_READ);
    ASSERT_NE(dwarf, nullptr);
    Scopes scopes;
    unsigned compared = 0, nested = 0, deepest = 0;
    Dwarf_CU* next = nullptr;
    Dwarf_Die unit;
    while (dwarf_get_units(dwarf, next, &next, nullptr, nullptr, &unit, nullptr) == 0) {
        Dwarf_Addr base = 0, low = 0, high = 0;
        for (ptrdiff_t at = 0; (at = dwarf_ranges(&unit, at, &base, &low, &high)) > 0;)
            for (Dwarf_Addr address = low; address < high + 4; address++) {  // also right behind it
                std::vector<Dwarf_Off> found;
                for (Dwarf_Die& one : scopes.around(&unit, address))
                    found.push_back(dwarf_dieoffset(&one));
                ASSERT_EQ(found, naive(&unit, address)) << "at " << std::hex << address;
                compared++;
                nested += found.size() > 1;
                deepest = std::max(deepest, static_cast<unsigned>(found.size()));
            }
    }
    EXPECT_GT(compared, 400u);
    EXPECT_GT(nested, compared / 4);
    EXPECT_GE(deepest, 4u);
    dwarf_end(dwarf);
    close(file);
    std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace revisit
