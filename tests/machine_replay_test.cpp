// Replays: accesses counted afterwards, by interpreting from one state to a later one, against a naive
// count of the same run.
//
// The programs are functions of this file, compiled like any other, interpreted on a copy of memory
// that the test keeps: "running" is interpreting instruction by instruction, and a replay is then asked
// to count what lies between two moments of the run, with memory as it is at the second.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "machine/a64/a64.h"
#include "machine/loops.h"
#include "machine/replay_count.h"
#include "machine/touch_count.h"
#include "play_code.h"

// Not without the optimiser: where all is in memory, registers agree all the time.
#if defined(__aarch64__) && defined(__OPTIMIZE__)

namespace revisit::machine {
namespace {

// … as a look-ahead sees it that may leave out what is stored: that is not known any more.
struct AheadMemory : PlayMemory {
    std::map<std::uint64_t, std::uint64_t> lost;

    UNCHECKED Loaded load(std::uint64_t address, unsigned bytes, std::uint64_t& value) {
        PlayMemory::load(address, bytes, value);
        for (auto [low, high] : lost)
            if (address < high && low < address + bytes) return Loaded::unknown;
        return Loaded::value;
    }
    bool store(std::uint64_t address, unsigned bytes, std::uint64_t value, bool known) {
        if (!known) lose(address, address + bytes);
        return PlayMemory::store(address, bytes, value, known);
    }
    void lose(std::uint64_t low, std::uint64_t high) {
        std::uint64_t& end = lost[low];
        end = std::max(end, high);
    }
};

constexpr int kSize = 400;
double a[kSize * 4], b[kSize * 4], c[kSize * 4];
int order[kSize];
volatile int counter;

PLAIN void dot(long n) {  // one loop, and one around it
    for (long j = 0; j < 40; j++) {
        double sum = 0;
        for (long i = 0; i < n; i++) sum += a[i] * b[i];
        c[j] = sum;
    }
}
PLAIN void move_particles(long n) {
    for (int step = 0; step < 40; step++) {
        for (long i = 0; i < n; i++) a[4 * i] += a[4 * i + 3] * 0.5;
        __asm__ volatile("" ::: "memory");  // gcc 14 would exchange the loops, and all steps be one
    }
}
PLAIN void smooth(long n) {  // short and long loops by turns
    for (int step = 0; step < 16; step++) {
        for (long i = 1; i < n - 1; i++) b[i] = (a[i - 1] + a[i + 1]) * 0.5;
        for (int i = 0; i < 6; i++) c[i] += b[i];
        for (long i = n - 2; i > 0; i--) a[i] = b[i];
    }
}
PLAIN void gather(long n) {  // where it goes depends on data, how far does not
    double sum = 0;
    for (int step = 0; step < 40; step++)
        for (unsigned i = 0; i < static_cast<unsigned>(n); i++) sum += a[order[i]];
    c[0] = sum;
}
PLAIN void choose(long n) {  // branches depend on data
    int found = 0;
    for (int step = 0; step < 40; step++)
        for (int i = 0; i < n; i++)
            if (order[i] % 3 == step % 3) order[i] += 3, found++;
    order[0] = found;
}
PLAIN void count_in_memory(long n) {  // the registers are the same every time round
    counter = 0;
    while (counter < n) counter = counter + 1;
}
PLAIN void unaligned(long n) {  // in one block or in two, by turns
    auto* bytes = reinterpret_cast<char*>(a) + 5;
    for (int step = 0; step < 40; step++) {
        std::uint64_t sum = 0, one;
        for (long i = 0; i < n; i++) {
            std::memcpy(&one, bytes + 12 * i, sizeof one);
            sum ^= one;
        }
        std::memcpy(reinterpret_cast<char*>(c) + 3 + step, &sum, sizeof sum);
    }
}
PLAIN void triangle(long n) {
    for (short i = 0; i < n / 2; i++)
        for (unsigned char k = 0; k < i; k++) c[k] += a[i];
}

int* decides = order + 90;
PLAIN void overwrite(long n) {  // what is read again and again is written on the way
    for (int step = 0; step < 40; step++) {
        *decides = 0;
        for (long i = 0; i < n; i++) {
            order[i] = step + 1;
            if (*decides) c[i & 7] += 1;
        }
    }
}
PLAIN void decide(long n) {  // what was stored decides
    for (int step = 0; step < 40; step++) {
        for (long i = 0; i < n; i++) order[i] = static_cast<int>(i) * step;
        for (long i = 0; i < n; i++)
            if (order[i] & 2) c[i & 3] += 1;
    }
}

// What a replay from one to the other finds; the memory is that of the later one, but for the stack.
template <class Loops>
ReplayCount replay(const Moment& from, const Moment& to, Loops& loops, QuickTable* quick,
                   std::uint64_t interpret = 1u << 30) {
    ReplayEnd<A64State> end;
    PlayMemory ahead_memory = to.memory;
    A64State ahead_state = to.state;
    if (!find_replay_end(A64Ahead<PlayMemory>(ahead_state, ahead_memory, nullptr, quick), ahead_state,
                         end))
        return {};
    PlayMemory memory = to.memory;
    A64State state = from.state;
    auto* stack_bytes = reinterpret_cast<const std::uint8_t*>(stack);
    for (std::size_t i = 0; i < sizeof stack; i++) {  // it is kept
        auto at = reinterpret_cast<std::uint64_t>(stack_bytes + i);
        auto found = from.memory.stored.find(at);
        if (found != from.memory.stored.end())
            memory.stored[at] = found->second;
        else
            memory.stored.erase(at);
    }
    return count_replay(A64Ahead<PlayMemory>(state, memory, nullptr, quick), state, memory, loops, end,
                        3, interpret, 1u << 30);
}

struct Program {
    const char* name;
    void (*function)(long);
    bool can_be_wrong;  // what it branches on is overwritten: a replay may tell nothing
    unsigned least_saved;
};

const Program kPrograms[] = {
    {"dot", dot, false, 3},           {"move_particles", move_particles, false, 6},
    {"smooth", smooth, false, 1},     {"gather", gather, false, 6},
    {"choose", choose, true, 0},      {"count_in_memory", count_in_memory, true, 0},
    {"triangle", triangle, false, 0}, {"unaligned", unaligned, false, 3},
};
const Program kMisleading[] = {
    // a replay may even tell something else
    {"overwrite", overwrite, true, 0},
    {"decide", decide, true, 0},
};

class WatchReplay : public testing::TestWithParam<Program> {};
class WatchTouch : public testing::TestWithParam<Program> {};

TEST_P(WatchReplay, CountsWhatWasRun) {
    const Program& program = GetParam();
    std::mt19937_64 random(7);
    for (int i = 0; i < kSize; i++) order[i] = static_cast<int>(random() % kSize);
    auto quick = std::make_unique<QuickTable>();
    auto loops = std::make_unique<Loops<A64>>();
    NoLoops to_their_end;
    std::uint64_t plain = 0, skipping = 0;
    unsigned told = 0;
    for (int round = 0; round < 12; round++) {
        long n = round == 0 ? kSize - 2 : 100 + static_cast<long>(random() % (kSize - 102));
        std::uint64_t all = 0;
        play(program.function, n, {}, all);
        // A replay goes on as long again, and then some.
        std::uint64_t last = all > 6000 ? all / 3 : 0;
        if (last == 0) continue;
        std::vector<std::uint64_t> picked = {random() % last, random() % last};
        std::ranges::sort(picked);
        std::vector<Moment> moments = play(program.function, n, picked, all);
        ASSERT_EQ(moments.size(), 2u);
        std::uint64_t truth = moments[1].accesses - moments[0].accesses;
        ReplayCount naive = replay(moments[0], moments[1], to_their_end, nullptr);
        ReplayCount counted = replay(moments[0], moments[1], *loops, quick.get());
        if (truth == 0) continue;
        if (program.can_be_wrong && counted.accesses == 0) continue;  // nothing, or the truth
        if (!program.can_be_wrong) {
            EXPECT_EQ(naive.accesses, truth) << n << " from " << picked[0];
            EXPECT_EQ(counted.before, naive.before) << n << " from " << picked[0];
            EXPECT_LE(counted.before, truth);
        }
        EXPECT_EQ(counted.accesses, truth) << n << " from " << picked[0];
        told++;
        skipping += counted.interpreted;
        plain += 4 * truth;
    }
    RecordProperty("interpreted", static_cast<int>(skipping));
    RecordProperty("accesses times four", static_cast<int>(plain));
    EXPECT_LT(skipping * program.least_saved, plain + 1);
    EXPECT_GE(told, program.can_be_wrong ? 0u : 6u);
}

// From any moment of a run, the next touch of the block that was touched last, or of one that is near:
// looking ahead through loops must find it as far away as it is, or not at all.
TEST_P(WatchTouch, CountsToTheNext) {
    const Program& program = GetParam();
    std::mt19937_64 random(11);
    for (int i = 0; i < kSize; i++) order[i] = static_cast<int>(random() % kSize);
    auto quick = std::make_unique<QuickTable>();
    auto loops = std::make_unique<Loops<A64>>();
    unsigned asked = 0, told = 0;
    for (int round = 0; round < 24; round++) {
        long n = round == 0 ? kSize - 2 : 100 + static_cast<long>(random() % (kSize - 102));
        std::uint64_t all = 0;
        play(program.function, n, {}, all);
        std::vector<Moment> moments = play(program.function, n, {random() % all}, all);
        if (moments.empty()) continue;
        Moment now = moments[0];
        A64Ahead<PlayMemory> naive(now.state, now.memory, nullptr);
        unsigned shift = round % 4 == 3 ? 6 : 3;
        while (now.state.pc != kReturned && naive.step() != Step::access) continue;
        if (now.state.pc == kReturned) continue;
        std::uint64_t wanted = (naive.touched().address >> shift) + random() % 3;
        std::uint64_t distance = 0, truth = 0;
        Moment begin = now;
        while (now.state.pc != kReturned && truth == 0) {
            if (naive.step() != Step::access) continue;
            const Touched& op = naive.touched();
            for (unsigned k = 0; k < op.pieces && truth == 0; k++) {
                std::uint64_t low = op.address + std::uint64_t{k} * op.bytes, high = low + op.bytes - 1;
                for (std::uint64_t block = low >> shift; block <= high >> shift; block++) {
                    distance++;
                    if (block == wanted && truth == 0) truth = distance;
                }
            }
        }
        AheadMemory memory;
        memory.stored = begin.memory.stored;
        A64Ahead<AheadMemory> ahead(begin.state, memory, nullptr, quick.get());
        std::uint64_t told_to = 0,
                      found = count_to_touch(ahead, begin.state, memory, *loops, NextTouch{wanted},
                                             shift, 1500, 20000,
                                             [&](std::uint64_t address, std::uint64_t counted) {
                                                 told_to = counted;
                                                 EXPECT_EQ(address >> shift, wanted);
                                             })
                                  .distance;
        EXPECT_EQ(told_to, found);
        asked += truth != 0;
        if (found == 0) continue;
        told++;
        EXPECT_EQ(found, truth) << n << ", blocks of " << (1 << shift);
    }
    RecordProperty("asked", static_cast<int>(asked));
    RecordProperty("told", static_cast<int>(told));
    if (!program.can_be_wrong) {
        EXPECT_GT(told, 0u);
    }
}

// So many accesses on, through loops: the next ones are those that interpreting all of them comes to,
// and all touches of a block on the way are met.
TEST_P(WatchTouch, PassesAccesses) {
    const Program& program = GetParam();
    std::mt19937_64 random(13);
    for (int i = 0; i < kSize; i++) order[i] = static_cast<int>(random() % kSize);
    auto quick = std::make_unique<QuickTable>();
    auto loops = std::make_unique<Loops<A64>>();
    std::uint64_t left_out = 0;
    for (int round = 0; round < 8; round++) {
        long n = round == 0 ? kSize - 2 : 100 + static_cast<long>(random() % (kSize - 102));
        std::uint64_t all = 0;
        play(program.function, n, {}, all);
        std::vector<Moment> moments = play(program.function, n, {random() % all}, all);
        if (moments.empty()) continue;
        Moment now = moments[0];
        Moment begin = now;
        unsigned shift = round % 4 == 3 ? 6 : 3;
        A64Ahead<PlayMemory> naive(now.state, now.memory, nullptr);
        while (now.state.pc != kReturned && naive.step() != Step::access) continue;
        if (now.state.pc == kReturned) continue;
        std::uint64_t wanted = (naive.touched().address >> shift) + random() % 3;
        auto touches = [&](const Touched& op) {
            return op.address >> shift <= wanted &&
                   wanted <= (op.address + std::uint64_t{op.pieces} * op.bytes - 1) >> shift;
        };
        AheadMemory memory;
        memory.stored = begin.memory.stored;
        A64Ahead<AheadMemory> ahead(begin.state, memory, nullptr, quick.get());
        std::uint64_t met = 0, expected = 0, blocks = blocks_of(naive.touched(), shift);
        Passed passed = pass(ahead, begin.state, memory, *loops, wanted, shift, 1 + random() % all,
                             1 + random() % 20000, [&] { met += touches(ahead.touched()); });
        if (passed.ended || passed.accesses == 0) continue;
        left_out += passed.left_out;
        expected = touches(naive.touched());
        while (blocks < passed.accesses && now.state.pc != kReturned) {
            if (naive.step() != Step::access) continue;
            blocks += blocks_of(naive.touched(), shift);
            expected += touches(naive.touched());
        }
        ASSERT_EQ(blocks, passed.accesses) << n;
        EXPECT_EQ(met, expected) << n;
        std::vector<std::uint64_t> next, truth;
        while (truth.size() < 20 && now.state.pc != kReturned)
            if (naive.step() == Step::access) truth.push_back(naive.touched().address);
        // What a skipped loop stored is unknown: it may end sooner.
        ahead.run(1000, [&] {
            next.push_back(ahead.touched().address);
            return next.size() < truth.size();
        });
        truth.resize(std::min(truth.size(), next.size()));
        next.resize(truth.size());
        EXPECT_EQ(next, truth) << n;
    }
    RecordProperty("left out", static_cast<int>(left_out));
    // Where a gather touches is not affine: it may touch the block in any iteration.
    if (!program.can_be_wrong && program.least_saved > 1 && std::string(program.name) != "gather") {
        EXPECT_GT(left_out, 0u);
    }
}

std::string name_of(const testing::TestParamInfo<Program>& one) {
    return one.param.name;
}
INSTANTIATE_TEST_SUITE_P(Programs, WatchReplay, testing::ValuesIn(kPrograms), name_of);
INSTANTIATE_TEST_SUITE_P(Programs, WatchTouch, testing::ValuesIn(kPrograms), name_of);
INSTANTIATE_TEST_SUITE_P(Misleading, WatchTouch, testing::ValuesIn(kMisleading), name_of);

// Lines that an access of any size, place and step touches, one iteration after the other.
TEST(Affine, CountsTheBlocksOfAllIterations) {
    std::mt19937_64 random(7);
    for (int round = 0; round < 20000; round++) {
        auto shift = static_cast<unsigned>(3 + random() % 5),
             pieces = static_cast<unsigned>(1 + random() % 3);
        unsigned bytes =
            random() % 4 == 0 ? static_cast<unsigned>(1 + random() % 70) : 1u << random() % 7;
        std::uint64_t address = (1u << 20) + random() % 1000, iterations = random() % 200, naive = 0;
        Form where{true, static_cast<std::int64_t>(random() % 300) - 150};
        if (round % 3 == 0) where.slope = where.slope / 8 * 8;
        for (std::uint64_t k = 1; k <= iterations; k++)
            naive += blocks_of(
                {address + k * static_cast<std::uint64_t>(where.slope), pieces, bytes, false}, shift);
        ASSERT_EQ(blocks_over(address, pieces, bytes, where, iterations, shift), naive)
            << bytes << " bytes, slope " << where.slope << ", shift " << shift;
    }
}

}  // namespace
}  // namespace revisit::machine

#endif
