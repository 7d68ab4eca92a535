// The stack behind labelled reuse against a list.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

#include "predict/fit/partition.h"
#include "predict/fit/rows.h"

namespace revisit::predict {
namespace {

TEST(PredictRows, distances_as_from_a_list) {
    std::mt19937_64 random(5);
    for (int round = 0; round < 60; round++) {
        const std::size_t accesses = 1 + random() % 700, blocks = 1 + random() % (round % 2 ? 300 : 20);
        DistanceStack stack(accesses);
        std::vector<std::pair<std::uint64_t, std::int64_t>> list;  // block, access; the latest first
        for (std::size_t i = 0; i < accesses; i++) {
            const std::uint64_t block = (random() % blocks) << (round % 40);
            const auto found =
                std::ranges::find(list, block, &std::pair<std::uint64_t, std::int64_t>::first);
            const auto answer = stack.access(block);
            if (found == list.end()) {
                ASSERT_EQ(answer.distance, -1);
                ASSERT_EQ(answer.previous, -1);
            } else {
                ASSERT_EQ(answer.distance, found - list.begin());
                ASSERT_EQ(answer.previous, found->second);
                list.erase(found);
            }
            list.insert(list.begin(), {block, static_cast<std::int64_t>(i)});
            ASSERT_EQ(stack.distinct(), list.size());
        }
    }
}

}  // namespace
// Groups of rows must be those of a map over whole keys, in order of appearance, whatever the ranges:
// twenty columns of 33 values need more digits than a number has.
TEST(PredictRows, partition_groups_rows_as_a_map_of_their_columns_does) {
    std::mt19937 random(5);
    for (const std::size_t columns : {0, 1, 3, 20})
        for (const int values : {1, 2, 33, 256}) {
            const std::size_t rows = 3000;
            Partition partition(rows);
            std::vector<std::vector<std::int8_t>> keys(rows);
            for (std::size_t c = 0; c < columns; ++c) {
                std::vector<std::int8_t> column(rows);
                for (std::size_t row = 0; row < rows; ++row) {
                    // Most rows repeat an earlier one, so that groups have several.
                    const bool repeat = row > 0 && row % 4 != 0;
                    const auto like = row / 4 * 4 % 600;
                    column[row] =
                        repeat && like < row
                            ? column[like]
                            : static_cast<std::int8_t>(static_cast<int>(random() % values) - 128);
                    keys[row].push_back(column[row]);
                }
                partition.refine(column);
            }
            std::map<std::vector<std::int8_t>, std::uint64_t> group;
            std::vector<std::uint64_t> expected;
            for (const auto& key : keys)
                expected.push_back(group.try_emplace(key, group.size()).first->second);
            EXPECT_EQ(partition.finish(), group.size());
            EXPECT_EQ(partition.group_of(), expected) << columns << " columns of " << values;
        }
}

}  // namespace revisit::predict
