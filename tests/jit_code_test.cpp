// Names of code made at run time, out of perf maps and jitdump files.
#include "symbols/jit_code.h"

#include <gtest/gtest.h>

namespace revisit {
namespace {

template <class T>
void put(std::string& to, T value) {
    to.append(reinterpret_cast<const char*>(&value), sizeof value);
}

TEST(JitCode, a_perf_map_names_functions) {
    JitCode code;
    code.read_perf_map(
        "1000 40 LazyCompile:plain name\n"
        "nonsense\n"
        "2000 10 JS:*mix /srv/app.js:12:5\n"
        "3000 10 JS:~ file:///srv/b.js:7:1\n"
        "0x4000 0x20 py::work:/srv/app.py\n"
        "5000 0 empty\n"
        "ffffffffffffffff 10 wraps\n"
        "6000 10 last line without an end");
    EXPECT_EQ(code.at(0x1000), (Frame{"LazyCompile:plain name", "", 0}));
    EXPECT_EQ(code.at(0x103f).function, "LazyCompile:plain name");
    EXPECT_EQ(code.at(0x1040), Frame{});
    EXPECT_EQ(code.at(0xfff), Frame{});
    EXPECT_EQ(code.at(0x2008), (Frame{"mix", "/srv/app.js", 12}));
    EXPECT_EQ(code.at(0x3008), (Frame{"(anonymous)", "file:///srv/b.js", 7}));
    EXPECT_EQ(code.at(0x4001), (Frame{"work", "/srv/app.py", 0}));
    EXPECT_EQ(code.at(0x5000), Frame{});
    EXPECT_EQ(code.at(0x600f).function, "last line without an end");
}

TEST(JitCode, the_last_function_at_an_address_counts) {
    JitCode code;
    code.read_perf_map("1000 100 old\n1100 100 next\n1080 40 new\n1300 10 far\n10f0 300 large\n");
    EXPECT_EQ(code.at(0x1010), Frame{});  // what was there is gone as a whole
    EXPECT_EQ(code.at(0x1090).function, "new");
    EXPECT_EQ(code.at(0x1150).function, "large");
    EXPECT_EQ(code.at(0x1305).function, "large");
}

std::string record(std::uint32_t kind, const std::string& contents) {
    std::string out;
    put(out, kind);
    put(out, static_cast<std::uint32_t>(16 + contents.size()));
    put<std::uint64_t>(out, 99);
    return out + contents;
}
std::string jitdump() {
    std::string out;
    put<std::uint32_t>(out, 0x4a695444);
    put<std::uint32_t>(out, 1);
    put<std::uint32_t>(out, 40);
    out.append(28, '\0');
    std::string lines, load, move;
    put<std::uint64_t>(lines, 0x8000);
    put<std::uint64_t>(lines, 2);
    put<std::uint64_t>(lines, 0x8010);
    put<std::uint32_t>(lines, 31);
    put<std::uint32_t>(lines, 0);
    lines += std::string("/srv/f.rb") + '\0';
    put<std::uint64_t>(lines, 0x8000);
    put<std::uint32_t>(lines, 30);
    put<std::uint32_t>(lines, 0);
    lines += std::string("/srv/f.rb") + '\0';
    put<std::uint64_t>(load, 0);
    put<std::uint64_t>(load, 0x8000);
    put<std::uint64_t>(load, 0x8000);
    put<std::uint64_t>(load, 4);
    put<std::uint64_t>(load, 1);
    load += std::string("inner") + '\0' + "code";
    put<std::uint64_t>(move, 0);
    put<std::uint64_t>(move, 0x9000);
    put<std::uint64_t>(move, 0x8000);
    put<std::uint64_t>(move, 0x9000);
    put<std::uint64_t>(move, 0x20);
    return out + record(2, lines) + record(0, load) + record(7, "unknown") + record(1, move);
}

TEST(JitCode, a_jitdump_has_lines_and_moves) {
    JitCode code;
    code.read_jitdump(jitdump());
    EXPECT_EQ(code.at(0x8000), Frame{});
    EXPECT_EQ(code.at(0x9004), (Frame{"inner", "/srv/f.rb", 30}));
    EXPECT_EQ(code.at(0x9010), (Frame{"inner", "/srv/f.rb", 31}));
}

TEST(JitCode, broken_files_are_passed_over) {
    const std::string whole = jitdump();
    for (std::size_t length = 0; length < whole.size(); ++length) {
        JitCode code;
        code.read_jitdump(std::string_view(whole).substr(0, length));
        for (std::size_t at = 0; at < length; at += 5) {
            std::string changed = whole;
            changed[at] ^= static_cast<char>(0x81 + length);
            code.read_jitdump(changed);
        }
    }
}

}  // namespace
}  // namespace revisit
