// Affine values, against stepping through the iterations.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "machine/affine.h"

namespace revisit::machine {
namespace {

// Where two values first compare otherwise than now, one iteration after the other.
TEST(MachineAffine, comparisons_stay_as_long_as_stepping_says) {
    using Order = Comparison::Order;
    constexpr std::uint64_t kFar = 300;
    std::mt19937_64 random(7);
    auto holds = [](Order order, std::uint64_t x, std::uint64_t y, unsigned bits) {
        const unsigned rest = 64 - bits;
        const std::uint64_t left = x << rest, right = y << rest;
        switch (order) {
            case Order::equal:
                return left == right;
            case Order::below:
                return left < right;
            case Order::below_equal:
                return left <= right;
            case Order::less:
                return static_cast<std::int64_t>(left) < static_cast<std::int64_t>(right);
            case Order::less_equal:
                return static_cast<std::int64_t>(left) <= static_cast<std::int64_t>(right);
            default:
                return static_cast<std::int64_t>(left - right) < 0;
        }
    };
    unsigned exact = 0;
    for (int round = 0; round < 60000; round++) {
        const unsigned bits = 8u << random() % 4;
        auto value = [&] {  // near 0, or near where it wraps
            const std::uint64_t middle = random() % 2 << (bits - 1);
            return middle + random() % 200 - 100;
        };
        auto slope = [&] {
            return random() % 3 == 0 ? 0 : static_cast<std::int64_t>(random() % 41) - 20;
        };
        const Comparison by{{true, slope()}, {true, slope()}, value(), value(), bits};
        const auto order = static_cast<Order>(random() % 6);
        const bool now = holds(order, by.a_value, by.b_value, bits);
        std::uint64_t naive = 0;
        while (naive < kFar &&
               holds(order, by.a_value + (naive + 1) * static_cast<std::uint64_t>(by.a.slope),
                     by.b_value + (naive + 1) * static_cast<std::uint64_t>(by.b.slope), bits) == now)
            naive++;
        const std::uint64_t stays = by.stays(order);
        // It may say fewer where a value wraps first, never more.
        ASSERT_LE(std::min(stays, kFar), naive) << "round " << round << ", order " << int(order);
        exact += std::min(stays, kFar) == naive;
    }
    EXPECT_GT(exact, 40000u);
}

}  // namespace
}  // namespace revisit::machine
