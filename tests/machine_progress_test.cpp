// Accesses from how far registers have moved, against a naive count of the same run.
#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "machine/progress.h"
#include "play_code.h"

#if defined(__aarch64__) && defined(__OPTIMIZE__)

namespace revisit::machine {
namespace {

constexpr int kSize = 12000;
int at[kSize], row[kSize + 1];
double data[kSize], result[kSize];

PLAIN void gather(long n) {  // where it goes depends on data, how far does not
    double sum = 0;
    for (long i = 0; i < n; i++) sum += data[at[i]];
    result[0] = sum;
}
PLAIN void fill(long n) {  // what is read is overwritten on the way
    for (long i = 0; i < n; i++) at[i] = (at[i] * 5 + 1) % kSize;
}
PLAIN void sparse(long n) {  // rows of three to nine entries
    for (long r = 0; row[r + 1] < n; r++) {
        double sum = 0;
        for (int k = row[r]; k < row[r + 1]; k++) sum += data[at[k]];
        result[r] = sum;
    }
}
PLAIN void rows(long n) {  // the index starts again, the outer loop's moves on
    for (long r = 0; r < n / 1000; r++)
        for (long i = 0; i < 1000; i++) result[r] += data[i] * static_cast<double>(at[i]);
}
PLAIN void phases(long n) {  // one loop after the other
    for (long i = 0; i < n; i++) at[i] = at[i] % 7;
    for (long i = 0; i < n; i++) result[at[i]] += data[i];
}

struct Program {
    const char* name;
    void (*function)(long);
    unsigned least;  // counts of 20
};
const Program kPrograms[] = {{"gather", gather, 18},
                             {"fill", fill, 18},
                             {"sparse", sparse, 15},
                             {"rows", rows, 0},
                             {"phases", phases, 5}};

class MachineProgress : public testing::TestWithParam<Program> {};

TEST_P(MachineProgress, counts_what_was_run_or_nothing) {
    const Program& program = GetParam();
    std::mt19937_64 random(3);
    for (double& one : data) one = static_cast<double>(random() % 100);
    for (int& one : at) one = static_cast<int>(random() % kSize);
    for (int i = 0; i < kSize; i++) row[i + 1] = row[i] + 3 + static_cast<int>(random() % 7);
    std::uint64_t all = 0;
    play(program.function, kSize, {}, all);
    unsigned counted = 0;
    for (int round = 0; round < 20; round++) {
        const std::uint64_t from = random() % (all / 2), length = all / 20 + random() % (all / 5);
        const std::vector<Moment> moments = play(program.function, kSize, {from, from + length}, all);
        ASSERT_EQ(moments.size(), 2u);
        ReplayEnd<A64State> first;
        PlayMemory memory = moments[1].memory;
        A64State state = moments[0].state;
        ASSERT_TRUE(find_replay_end(A64Ahead<PlayMemory>(state, memory, nullptr), state, first));
        memory = moments[1].memory;
        state = moments[1].state;
        const ReplayCount count =
            count_by_progress(A64Ahead<PlayMemory>(state, memory, nullptr), state, first, 3);
        const auto truth = static_cast<double>(moments[1].accesses - moments[0].accesses);
        if (count.accesses == 0) continue;
        counted++;
        EXPECT_NEAR(static_cast<double>(count.accesses), truth, 0.05 * truth + 20) << from;
        EXPECT_GT(count.executed, truth) << "every second instruction or fewer touch memory";
        EXPECT_LT(count.executed, 20 * truth);
    }
    RecordProperty("counted", static_cast<int>(counted));
    EXPECT_GE(counted, program.least);
}

INSTANTIATE_TEST_SUITE_P(Programs, MachineProgress, testing::ValuesIn(kPrograms),
                         [](const auto& one) { return one.param.name; });

}  // namespace
}  // namespace revisit::machine

#endif
