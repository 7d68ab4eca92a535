#include "core/key_table.h"

#include <gtest/gtest.h>

#include <random>
#include <unordered_map>

namespace revisit {
namespace {

TEST(KeyTable, finds_what_an_unordered_map_finds) {
    std::mt19937_64 random(7);
    for (unsigned kind = 0; kind < 3; kind++) {
        KeyTable table;
        std::unordered_map<std::uint64_t, std::uint32_t> naive;
        for (int i = 0; i < 60000; i++) {
            // Any; pairs of small numbers, as they are used; multiples that a bad hash puts together.
            std::uint64_t key = kind == 0   ? random()
                                : kind == 1 ? (random() % 300) << 32 | random() % 300
                                            : random() % 20000 << 44;
            auto known = naive.find(key);
            ASSERT_EQ(table.find(key), known == naive.end() ? KeyTable::kNone : known->second);
            if (known != naive.end()) continue;
            naive[key] = static_cast<std::uint32_t>(i);
            table.add(key, static_cast<std::uint32_t>(i));
        }
        EXPECT_EQ(table.size(), naive.size());
        for (const auto& [key, number] : naive) ASSERT_EQ(table.find(key), number);
    }
}

TEST(KeyTable, any_key_may_be_absent_or_present) {
    KeyTable table;
    EXPECT_EQ(table.find(0), KeyTable::kNone);
    table.add(~std::uint64_t{0}, 0);
    EXPECT_EQ(table.find(0), KeyTable::kNone);
    EXPECT_EQ(table.find(~std::uint64_t{0}), 0u);
    table.add(0, 5);
    EXPECT_EQ(table.find(0), 5u);
}

}  // namespace
}  // namespace revisit
