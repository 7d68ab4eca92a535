// Stretches of loops that count in memory: registers alone do not tell one time round from another.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "machine/progress.h"
#include "machine/x64/ahead.h"
#include "x64_code.h"

namespace revisit::machine {
namespace {

struct StretchMemory : X64Memory<256 << 10> {
    bool is_lost = false;

    Loaded load(std::uint64_t address, unsigned bytes, std::uint64_t& value) {
        const Loaded loaded = X64Memory::load(address, bytes, value);
        return is_lost && loaded == Loaded::value ? Loaded::unknown : loaded;
    }
    bool store(std::uint64_t address, unsigned bytes, std::uint64_t value, bool) {
        return X64Memory::store(address, bytes, value);
    }
    void lose(std::uint64_t, std::uint64_t) { is_lost = true; }
};
using Ahead = X64Ahead<StretchMemory>;

constexpr const char* kSource = R"(
typedef unsigned long u64;
u64 sums(u64 n, u64* m) {
    volatile u64* done = m; u64* a = m + 8; u64 sum = 0;
    for (u64 i = 0; i < n; i++) { u64 x = *done; sum ^= a[i] ^ a[x & 4095]; *done = x + 1; }
    return sum;
}
)";

struct Moment {
    X64State state;
    StretchMemory memory;
    std::uint64_t accesses = 0;
};

class MachineX64Stretch : public testing::Test {
 protected:
    void SetUp() override {
        code_ = compile_for_x64(kSource, "-O2 -fno-vectorize -fno-unroll-loops");
        if (code_.text.empty()) GTEST_SKIP() << "clang-19 is not here";
    }
    Moment start(const char* function, std::uint64_t n) const {
        Moment out;
        out.memory.code = &code_.text;
        for (std::uint64_t at = 64; at < StretchMemory::kBytes; at += 8)
            out.memory.store(StretchMemory::kData + at, 8, at * 0x9e3779b97f4a7c15, true);
        out.state.known = 0xffff;
        out.state.flags_known = kAllFlags;
        out.state.r[7] = n;
        out.state.r[6] = StretchMemory::kData;
        out.state.r[4] = StretchMemory::kData + StretchMemory::kBytes - 1032;
        out.state.pc = StretchMemory::kCode + code_.functions.at(function);
        return out;
    }
    static void run(Moment& now, std::uint64_t instructions) {
        Ahead ahead(now.state, now.memory);
        ahead.run(instructions, [&] {
            now.accesses += blocks_of(ahead.touched(), 3);
            return true;
        });
    }

    X64Code code_;
};

TEST_F(MachineX64Stretch, progress_does_not_take_what_memory_holds_now_for_what_was_read_before) {
    unsigned counted = 0;
    for (std::uint64_t first = 1000; first < 1016; first++) {  // before each access of an iteration
        Moment from = start("sums", 30000);
        run(from, first);
        Moment to = from;
        run(to, 24000);
        ReplayEnd<X64State> begin;
        X64State state = from.state;
        StretchMemory memory = to.memory;  // all there is by then
        ASSERT_TRUE(find_progress_begin(Ahead(state, memory), state, memory, begin, 3));
        memory = to.memory;
        state = to.state;
        const ReplayCount count = count_by_progress(Ahead(state, memory), state, begin, 3);
        counted += count.accesses != 0;
        if (count.accesses != 0) {
            EXPECT_NEAR(static_cast<double>(count.accesses),
                        static_cast<double>(to.accesses - from.accesses), 8)
                << first;
        }
    }
    EXPECT_EQ(counted, 16u);
}

}  // namespace
}  // namespace revisit::machine
