// Planes cut by bins against a walk through all their points.
#include <gtest/gtest.h>

#include <bit>
#include <map>
#include <random>

#include "predict/fit/plane.h"

namespace revisit::predict {
namespace {

TEST(PredictPlane, as_a_walk_through_all_points) {
    std::mt19937 random(3);
    auto draw = [&](int low, int high) {
        return std::uniform_int_distribution<std::int64_t>(low, high)(random);
    };
    const BinOf bins[] = {[](std::uint64_t d) { return std::uint64_t(std::bit_width(d)); },
                          [](std::uint64_t d) { return d / 7; }, [](std::uint64_t) { return 0ull; },
                          [](std::uint64_t d) { return d; }};
    int cut = 0, left = 0;
    for (int round = 0; round < 4000; round++) {
        Plane plane{draw(1, 40), draw(-10, 30), draw(-3, 3), draw(0, 200), draw(-6, 6), draw(-6, 6)};
        const BinOf& bin = bins[round % 4];
        std::map<std::pair<std::int64_t, std::int64_t>, std::uint64_t> expected, seen;
        bool negative = false;
        for (std::int64_t row = 0; row < plane.rows; row++)
            for (std::int64_t point = 0; point < plane.length + row * plane.longer; point++) {
                std::int64_t d = plane.distance + row * plane.by_row + point * plane.by_point;
                negative |= d < 0;
                if (d >= 0) expected[{row, point}] = bin(static_cast<std::uint64_t>(d));
            }
        BinEdges edges(bin);
        auto pieces = cut_plane(plane, edges);
        if (!pieces) {
            EXPECT_TRUE(negative) << round;
            left++;
            continue;
        }
        cut++;
        ASSERT_FALSE(negative) << round;
        for (const PlanePiece& piece : *pieces) {
            ASSERT_GT(piece.rows, 0);
            for (std::int64_t j = 0; j < piece.rows; j++)
                for (std::int64_t point = piece.low + j * piece.low_step;
                     point <= piece.high + j * piece.high_step; point++) {
                    auto [at, is_new] =
                        seen.try_emplace({piece.first + j * piece.every, point}, bin(piece.distance));
                    ASSERT_TRUE(is_new) << "a point twice in round " << round;
                }
        }
        ASSERT_EQ(seen, expected) << round;
    }
    EXPECT_GT(cut, 1000);
    EXPECT_GT(left, 100);
}

TEST(PredictPlane, large_ones_take_as_many_pieces) {
    const BinOf bin = [](std::uint64_t d) { return std::uint64_t(std::bit_width(d)); };
    BinEdges log2(bin);
    for (std::int64_t n : {std::int64_t{1} << 12, std::int64_t{1} << 28}) {
        auto pieces = cut_plane({n, 1, 1, 5, 3, 2}, log2);  // a triangle
        ASSERT_TRUE(pieces);
        EXPECT_LT(pieces->size(), 500u);
        __int128 points = 0;
        for (const PlanePiece& p : *pieces) {
            auto width = [&](std::int64_t j) {
                return static_cast<__int128>(p.high + j * p.high_step) - (p.low + j * p.low_step) + 1;
            };
            points += (width(0) + width(p.rows - 1)) * p.rows / 2;
        }
        EXPECT_TRUE(points == static_cast<__int128>(n) * (n + 1) / 2);
    }
    EXPECT_FALSE(cut_plane({10, 10, 0, 0, 1, 97}, log2));          // slopes of 97 kinds
    EXPECT_FALSE(cut_plane({10, 10, 0, 1ll << 59, 1, 1}, log2));   // too far
    EXPECT_TRUE(cut_plane({10, -50, 1, 0, 1, 1}, log2)->empty());  // no row has a point
}

}  // namespace
}  // namespace revisit::predict
