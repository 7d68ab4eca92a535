// The stack behind labelled reuse against a list.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

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
}  // namespace revisit::predict
