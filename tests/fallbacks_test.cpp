// What stands in for libstdc++ where the standard library is another one: always compiled, and compared
// with what it stands in for.
#include <gtest/gtest.h>

#include <random>
#include <set>

#include "core/parse_floating.h"
#include "engines/rank_tree.h"

namespace revisit {
namespace {

TEST(Fallbacks, rank_tree_is_a_set_in_order) {
    for (unsigned seed = 0; seed < 20; ++seed) {
        std::mt19937 random(seed);
        FenwickRankTree tree;
        std::set<std::uint64_t> keys;
        std::uint64_t next = 0;
        // From few keys to some thousand and back, so that room is made with most of them erased.
        for (int step = 0; step < 3000; ++step) {
            const bool grows = step / 1000 != 2;
            if (keys.empty() || random() % 4 < (grows ? 3u : 1u)) {
                next += 1 + random() % 3;
                tree.insert(next);
                keys.insert(next);
            } else {
                auto erased = keys.lower_bound(random() % (next + 1));
                if (erased == keys.end()) erased = keys.begin();
                tree.erase(*erased);
                keys.erase(erased);
            }
            ASSERT_EQ(tree.size(), keys.size());
            const std::uint64_t asked = random() % (next + 2);
            ASSERT_EQ(tree.order_of_key(asked),
                      static_cast<std::size_t>(std::distance(keys.begin(), keys.lower_bound(asked))));
        }
        tree.erase(next + 1);  // is not in it
        EXPECT_EQ(tree.size(), keys.size());
    }
}

#ifdef __cpp_lib_to_chars
void expect_same(const std::string& text) {
    const char *const begin = text.data(), *const end = begin + text.size();
    double expected = -1, found = -1;
    const auto by_library = std::from_chars(begin, end, expected);
    const auto by_strtod = parse_by_strtod(begin, end, found);
    EXPECT_EQ(by_strtod.ec, by_library.ec) << text;
    EXPECT_EQ(by_strtod.ptr - begin, by_library.ptr - begin) << text;
    if (std::isnan(expected))
        EXPECT_TRUE(std::isnan(found)) << text;
    else
        EXPECT_EQ(found, expected) << text;
}

TEST(Fallbacks, numbers_are_read_as_the_library_reads_them) {
    for (const char* text : {"",
                             "0",
                             "-0",
                             "1",
                             "-1.5",
                             "+1",
                             " 1",
                             ".5",
                             "5.",
                             ".",
                             "-",
                             "-.",
                             "1e5",
                             "1e+5",
                             "1E-5",
                             "1e",
                             "1e+",
                             "0x10",
                             "1,5",
                             "1.5x",
                             "inf",
                             "-inf",
                             "INF",
                             "infinity",
                             "nan",
                             "-nan",
                             "in",
                             "1e400",
                             "-1e400",
                             "1e-400",
                             "4.9e-324",
                             "2.2250738585072014e-308",
                             "1.7976931348623157e308",
                             "0.1",
                             "123456789012345678901234567890",
                             "1e5e5",
                             "1.2.3",
                             "--1",
                             "e5",
                             "%"})
        expect_same(text);
    std::mt19937 random(1);
    const std::string_view letters = "0123456789.+-eEx infa";
    for (int i = 0; i < 20000; ++i) {
        std::string text;
        for (unsigned left = random() % 10; left > 0; --left)
            text += letters[random() % letters.size()];
        expect_same(text);
    }
}
#endif

}  // namespace
}  // namespace revisit
