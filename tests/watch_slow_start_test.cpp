// How long a program is slow after a stop, told from stretches made with a delay that is known.
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <random>
#include <string>

#include "watch/clock/slow_start.h"

namespace revisit::watch {
namespace {

constexpr UsualSlowStart kUsual{25000, 30000};

// Stretches of 60 to 300 microseconds. So much of each is lost, and rates differ by 4 % anyway.
Measured made(unsigned count, double per_nanosecond, double lost, unsigned seed) {
    std::mt19937 random(seed);
    std::uniform_real_distribution<double> length(60000, 300000);
    std::normal_distribution<double> differs(1, 0.04);
    Measured out;
    for (unsigned i = 0; i < count; i++) {
        const double time = length(random);
        out.stretches.push_back({double(i), (time - lost) * per_nanosecond * differs(random), time});
    }
    return out;
}

TEST(WatchSlowStart, stretches_of_many_lengths_tell_it) {
    for (const double lost : {0.0, 10000.0, 47000.0})
        for (unsigned seed = 1; seed <= 20; seed++) {
            // A fast loop and a slow one lose the same.
            const std::map<std::string, Measured> loops{{"fast", made(12, 3, lost, seed)},
                                                        {"slow", made(12, 0.2, lost, seed + 100)}};
            const SlowStart found = slow_start_of(loops, kUsual);
            EXPECT_NEAR(found.nanoseconds, lost, 9000) << lost << " " << seed;
            EXPECT_LT(found.error, 6000) << lost << " " << seed;
        }
}

TEST(WatchSlowStart, its_error_is_as_large_as_it_is_off) {
    for (const unsigned count : {3u, 6u, 15u}) {
        unsigned covered = 0, runs = 200;
        for (unsigned seed = 1; seed <= runs; seed++) {
            const double lost = 15000 + 60000.0 * seed / runs;
            const SlowStart found = slow_start_of({{"loop", made(count, 1, lost, seed)}}, kUsual);
            covered += std::abs(found.nanoseconds - lost) <= 1.96 * found.error;
        }
        EXPECT_GE(covered, 0.9 * runs) << count << " stretches";
    }
}

TEST(WatchSlowStart, without_stretches_of_several_lengths_it_is_what_is_usual) {
    Measured same;
    for (unsigned i = 0; i < 6; i++) same.stretches.push_back({double(i), 100000, 120000});
    for (const auto& loops : {std::map<std::string, Measured>{}, {{"loop", same}}}) {
        const SlowStart found = slow_start_of(loops, kUsual);
        // It cannot be under nothing, so the mean is beyond the middle.
        EXPECT_GE(found.nanoseconds, kUsual.nanoseconds);
        EXPECT_LE(found.nanoseconds, kUsual.nanoseconds + kUsual.spread / 2);
        EXPECT_GT(found.error, kUsual.spread / 2);
    }
    const SlowStart known = slow_start_of({}, {20000, 2000});
    EXPECT_NEAR(known.nanoseconds, 20000, 200);
    EXPECT_NEAR(known.error, 2000, 200);
}

TEST(WatchSlowStart, a_stretch_in_which_something_else_went_on_changes_little) {
    auto loop = made(15, 1, 30000, 3);
    const double before = slow_start_of({{"loop", loop}}, kUsual).nanoseconds;
    loop.stretches[4].accesses /= 5;
    EXPECT_NEAR(slow_start_of({{"loop", loop}}, kUsual).nanoseconds, before, 4000);
}

}  // namespace
}  // namespace revisit::watch
