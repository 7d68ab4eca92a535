// What prediction is made of: polynomials through points, programs interpreted.
#include <gtest/gtest.h>

#include "predict/fit/polynomial.h"
#include "predict/run/simulate.h"
#include "random_nests.h"

namespace revisit::predict {
namespace {

// --- polynomials ---

TEST(Polynomial, finds_the_simplest_form_and_prints_it) {
    Points points;
    points.variables = 3;
    std::vector<std::uint32_t> which;
    for (int n = 5; n < 12; ++n)
        for (int i = 0; i < n; ++i)
            for (int j = 0; j < 4; ++j) {
                points.x.insert(points.x.end(), {n, i, j});
                points.y.push_back(n * (n - 1) / 2 + 3 * i);
                which.push_back(static_cast<std::uint32_t>(which.size()));
            }
    const std::uint8_t order[] = {0, 1, 2};
    const auto p = fit_simplest(points, which, order, 3);
    ASSERT_TRUE(p);
    const std::string names[] = {"n", "i", "j"};
    EXPECT_EQ(p->text(names), "n^2/2 - n/2 + 3*i");
    const std::int64_t far[16] = {1'000'000, 17};
    EXPECT_EQ(p->integer(far), 999'999LL * 500'000 + 51);
    EXPECT_TRUE(p->determined_at(far));
}

TEST(Polynomial, refuses_what_points_do_not_determine) {
    Points points;
    points.variables = 1;
    std::vector<std::uint32_t> which;
    for (int n = 5; n < 8; ++n) {
        points.x.push_back(n);
        points.y.push_back(n * n);
        which.push_back(static_cast<std::uint32_t>(which.size()));
    }
    const std::uint8_t order[] = {0};
    EXPECT_FALSE(fit_simplest(points, which, order, 3));
}

// --- the machine ---

TEST(Machine, strides_change_nothing_but_the_time) {
    for (std::uint64_t seed = 1; seed <= 160; ++seed) {
        const auto program = RandomNest(seed, seed % 2 ? Oddity::plain : Oddity::wild).program();
        const Parameters sizes{{"n", 5 + static_cast<std::int64_t>(seed % 23)}, {"m", 17}};
        RunOptions options;
        options.max_accesses = 400'000;
        const auto fast = interpret(program, sizes, options);
        options.stride = false;
        const auto slow = interpret(program, sizes, options);
        ASSERT_EQ(fast.has_value(), slow.has_value()) << "seed " << seed;
        if (!fast || !fast->complete || !slow->complete) continue;
        ASSERT_EQ(fast->count, slow->count) << "seed " << seed;
        EXPECT_EQ(fast->block_counts, slow->block_counts) << "seed " << seed;
        for (std::size_t i = 0; i < fast->accesses.size(); ++i) {
            const auto &a = fast->accesses[i], &b = slow->accesses[i];
            ASSERT_TRUE(a.address == b.address && a.reference == b.reference && a.run == b.run &&
                        a.iteration == b.iteration && a.size == b.size)
                << "seed " << seed << " access " << i;
        }
        ASSERT_EQ(fast->runs.size(), slow->runs.size());
        for (std::size_t i = 0; i < fast->runs.size(); ++i) {
            const auto &a = fast->runs[i], &b = slow->runs[i];
            ASSERT_TRUE(a.iterations == b.iterations && a.first == b.first && a.step == b.step)
                << "seed " << seed << " run " << i;
        }
        for (std::size_t i = 0; i < fast->references.size(); ++i)
            EXPECT_EQ(fast->references[i].indices, slow->references[i].indices);
    }
}

}  // namespace
}  // namespace revisit::predict
