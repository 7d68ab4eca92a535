// The aarch64 look-ahead against the processor: a program is stepped through, and before every step the
// interpreter says what it will do.
#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>
#include <vector>

#include "machine/a64/a64.h"
#include "machine/side_buffer.h"
#include "watch/samples/reservoir.h"
#include "watch/samples/window.h"

#if defined(__aarch64__)
#include <asm/ptrace.h>
#include <elf.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <string>
#endif

namespace revisit::machine {
using namespace watch;
namespace {

#if defined(__aarch64__)

// Another process's memory, and what was stored to it.
struct TracedMemory {
    pid_t pid;
    std::map<std::uint64_t, std::uint8_t> stored;

    bool read(std::uint64_t address, void* to, std::size_t bytes) const {
        iovec here{to, bytes}, there{reinterpret_cast<void*>(address), bytes};
        return process_vm_readv(pid, &here, 1, &there, 1, 0) == static_cast<ssize_t>(bytes);
    }
    bool fetch(std::uint64_t pc, std::uint32_t& instruction) { return read(pc, &instruction, 4); }
    Loaded load(std::uint64_t address, unsigned bytes, std::uint64_t& value) {
        value = 0;
        return read(address, &value, bytes) ? Loaded::value : Loaded::fault;
    }
    bool store(std::uint64_t address, unsigned bytes, std::uint64_t value, bool known) {
        for (unsigned k = 0; k < bytes && known; k++)
            stored[address + k] = static_cast<std::uint8_t>(value >> 8 * k);
        return true;
    }
};

// Integers, strings, floating point, formatted output, allocation, sorting: what programs are made of.
[[gnu::noinline]] double workload(int rounds) {
    double sum = 0;
    for (int i = 1; i <= rounds; i++) {
        char text[200];
        std::snprintf(text, sizeof text, "%d %g %s %lx %08.3f", i, i / 7.0, "text", i * 77777L,
                      std::sqrt(i));
        std::string copy = text;
        copy += std::to_string(i * 1.5);
        sum += static_cast<double>(copy.find('.')) + std::strtod("3.25e2", nullptr);
        double values[24];
        for (int k = 0; k < 24; k++) values[k] = std::fmod(k * 7.7 * i, 5.0);
        std::qsort(values, 24, sizeof *values, [](const void* a, const void* b) {
            double x = *static_cast<const double*>(a), y = *static_cast<const double*>(b);
            return (x > y) - (x < y);
        });
        std::map<int, int> tree;
        for (int k = 0; k < 10; k++) tree[k * 7919 % 101] += k;
        char moved[300] = {};
        std::memmove(moved + i % 17, text, 100);
        sum += values[3] + tree.begin()->second + static_cast<double>(std::strlen(moved + 20)) +
               static_cast<double>(static_cast<unsigned>(i * 12345) % 97 * i / 3);
        if (std::strcmp(text, moved) > 0) sum += 1;
    }
    return sum;
}

struct Stepped {
    QuickTable* quick = nullptr;
    std::size_t steps = 0, refused = 0, accesses = 0;
    std::map<std::uint32_t, int> refused_instructions;
};

void read_registers(pid_t pid, A64State& s) {
    user_pt_regs general;
    iovec into{&general, sizeof general};
    ASSERT_EQ(ptrace(PTRACE_GETREGSET, pid, NT_PRSTATUS, &into), 0);
    std::memcpy(s.x, general.regs, sizeof general.regs);
    s.x[31] = general.sp;
    s.pc = general.pc;
    s.nzcv = general.pstate >> 28 & 15;
    user_fpsimd_state vectors;
    into = {&vectors, sizeof vectors};
    ASSERT_EQ(ptrace(PTRACE_GETREGSET, pid, NT_FPREGSET, &into), 0);
    std::memcpy(s.v, vectors.vregs, sizeof s.v);
    s.known = s.v_known = ~0u;
    s.flags_known = true;
}

void step_and_compare(pid_t pid, VectorUnit* vectors, std::size_t most, Stepped& done) {
    std::uint64_t thread_pointer = 0;
    iovec into{&thread_pointer, sizeof thread_pointer};
    ASSERT_EQ(ptrace(PTRACE_GETREGSET, pid, NT_ARM_TLS, &into), 0);
    A64State before, after;
    read_registers(pid, after);
    for (; done.steps < most; done.steps++) {
        before = after;
        before.thread_pointer = thread_pointer;
        A64State foreseen = before;
        TracedMemory memory{pid, {}};
        A64Ahead<TracedMemory> ahead(foreseen, memory, vectors, done.quick);
        std::uint32_t instruction = 0;
        ASSERT_TRUE(memory.fetch(before.pc, instruction));
        Step step = ahead.step();
        ASSERT_EQ(ptrace(PTRACE_SINGLESTEP, pid, 0, 0), 0);
        int status = 0;
        ASSERT_EQ(waitpid(pid, &status, 0), pid);
        if (WIFEXITED(status)) return;
        ASSERT_TRUE(WIFSTOPPED(status) && WSTOPSIG(status) == SIGTRAP);
        read_registers(pid, after);
        if (step == Step::stop) {
            done.refused++;
            done.refused_instructions[instruction]++;
            continue;
        }
        done.accesses += step == Step::access;
        std::string what =
            "instruction " + std::to_string(instruction) + " at step " + std::to_string(done.steps);
        ASSERT_EQ(foreseen.pc, after.pc) << what;
        for (unsigned r = 0; r < 32; r++)
            if (foreseen.is_known(r))
                ASSERT_EQ(foreseen.x[r], after.x[r]) << what << ", register " << r;
        if (foreseen.flags_known) ASSERT_EQ(foreseen.nzcv, after.nzcv) << what;
        for (unsigned r = 0; r < 32; r++)
            if (foreseen.v_known >> r & 1)
                ASSERT_EQ(foreseen.v[r], after.v[r]) << what << ", vector " << r;
        for (auto [address, byte] : memory.stored) {
            std::uint8_t real = 0;
            ASSERT_TRUE(memory.read(address, &real, 1));
            ASSERT_EQ(byte, real) << what << ", memory";
        }
    }
}

Stepped step_workload(VectorUnit* vectors, std::size_t most, QuickTable* quick = nullptr) {
    Stepped done;
    done.quick = quick;
    pid_t pid = fork();
    if (pid == 0) {
        ptrace(PTRACE_TRACEME, 0, 0, 0);
        raise(SIGSTOP);
        _exit(workload(1000) > 0 ? 0 : 1);
    }
    int status = 0;
    waitpid(pid, &status, 0);
    step_and_compare(pid, vectors, most, done);
    kill(pid, SIGKILL);
    waitpid(pid, &status, 0);
    return done;
}

TEST(WatchA64, foresees_what_the_processor_does) {
    void* code = mmap(nullptr, VectorUnit::kCodeBytes, PROT_READ | PROT_WRITE | PROT_EXEC,
                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (code == MAP_FAILED) GTEST_SKIP() << "memory may not be written and executed here";
    VectorUnit vectors(code);
    Stepped done = step_workload(&vectors, 25000);
    if (done.steps == 0) GTEST_SKIP() << "a child may not be traced here";
    EXPECT_GT(done.accesses, done.steps / 8);
    EXPECT_LT(done.refused, done.steps / 200) << done.refused_instructions.begin()->first;
}

TEST(WatchA64, without_vectors_what_it_says_is_right_too) {
    static QuickTable quick;
    Stepped done = step_workload(nullptr, 8000, &quick);
    if (done.steps == 0) GTEST_SKIP() << "a child may not be traced here";
    EXPECT_LT(done.refused, done.steps / 50);
}

#endif

// Memory that is a function of the address, and what was stored to it.
struct MadeUpMemory {
    std::uint32_t instruction = 0;
    std::map<std::uint64_t, std::pair<std::uint64_t, bool>> stored;

    bool fetch(std::uint64_t, std::uint32_t& to) {
        to = instruction;
        return true;
    }
    Loaded load(std::uint64_t address, unsigned bytes, std::uint64_t& value) {
        value = (address * 0x9e3779b97f4a7c15 >> 7) & (~std::uint64_t{0} >> (64 - 8 * bytes));
        return address % 11 == 0 ? Loaded::unknown : Loaded::value;
    }
    bool store(std::uint64_t address, unsigned, std::uint64_t value, bool known) {
        stored[address] = {value, known};
        return true;
    }
};

// What was lifted before does what is lifted anew: the same registers, flags, addresses and stores, on
// random instructions (bits flipped in common ones) and random registers, known and unknown.
TEST(WatchA64, instructions_lifted_before_do_what_those_lifted_anew_do) {
    static constexpr std::uint32_t kSeeds[] = {
        0x91000421, 0xf1000421, 0x7100043f, 0x8b020020, 0xcb020c20, 0xeb02003f, 0xaa0203e0, 0x8a020020,
        0x4a021020, 0x92401c20, 0x321d7020, 0xd2824680, 0x12800000, 0xd37df020, 0x93407c20, 0x13017c20,
        0x9a820020, 0x1a9f17e0, 0x10000040, 0x90000040, 0x14000010, 0x94000010, 0x54000041, 0xb4000040,
        0x35000040, 0x36080040, 0xd65f03c0, 0xd63f0020, 0xf9400020, 0xb9400420, 0x39400020, 0x39800020,
        0xf8408420, 0xf8408c20, 0xf85f8020, 0xf8627820, 0xb8625820, 0xb862d820, 0xf9000020, 0x39000020,
        0xf8008420, 0xa9400820, 0xa8c10820, 0xa9bf0820, 0xa9000820, 0x69400820, 0x3dc00020, 0xad400820,
        0x9b027c20, 0x9ac20820, 0xfa421020, 0xd53bd040, 0xf8a20020};
    std::mt19937_64 random(3);
    static QuickTable table(true);
    std::size_t quick_ones = 0;
    for (int round = 0; round < 60000; round++) {
        std::uint32_t instruction = kSeeds[random() % std::size(kSeeds)];
        for (auto flips = random() % 6; flips > 0; flips--) instruction ^= 1u << random() % 32;
        A64State state;
        for (std::uint64_t& x : state.x)
            x = random() % 3 ? random() : random() % 4 ? random() % 100 : std::uint64_t(-1);
        state.known = random() % 2 ? ~0u : static_cast<std::uint32_t>(random() | random());
        state.v_known = static_cast<std::uint32_t>(random());
        state.pc = random() % 4096 * 4;
        state.nzcv = random() % 16;
        state.flags_known = random() % 4 != 0;
        A64State general_state = state, quick_state = state;
        MadeUpMemory general_memory{instruction, {}}, quick_memory{instruction, {}};
        A64Ahead<MadeUpMemory> general(general_state, general_memory, nullptr);
        A64Ahead<MadeUpMemory> quick(quick_state, quick_memory, nullptr, &table);
        Step expected = general.step(), got = quick.step();
        quick_ones += got != Step::stop;
        ASSERT_EQ(got, expected) << std::hex << instruction;
        if (expected == Step::stop) continue;
        ASSERT_EQ(quick_state.pc, general_state.pc) << std::hex << instruction;
        ASSERT_EQ(quick_state.known, general_state.known) << std::hex << instruction;
        ASSERT_EQ(quick_state.v_known, general_state.v_known) << std::hex << instruction;
        ASSERT_EQ(quick_state.flags_known, general_state.flags_known) << std::hex << instruction;
        if (quick_state.flags_known)
            ASSERT_EQ(quick_state.nzcv, general_state.nzcv) << std::hex << instruction;
        for (unsigned r = 0; r < 32; r++)
            if (quick_state.is_known(r))
                ASSERT_EQ(quick_state.x[r], general_state.x[r]) << std::hex << instruction << " x" << r;
        if (expected == Step::access) {
            ASSERT_EQ(quick.touched().address, general.touched().address) << std::hex << instruction;
            ASSERT_EQ(quick.touched().bytes, general.touched().bytes) << std::hex << instruction;
            ASSERT_EQ(quick.touched().pieces, general.touched().pieces) << std::hex << instruction;
            ASSERT_EQ(quick.touched().writes, general.touched().writes) << std::hex << instruction;
        }
        ASSERT_EQ(quick_memory.stored.size(), general_memory.stored.size()) << std::hex << instruction;
        for (auto [address, value] : general_memory.stored)
            if (value.second)
                ASSERT_EQ(quick_memory.stored.at(address), value) << std::hex << instruction;
    }
    EXPECT_GT(quick_ones, 20000u);
}

// Against counting by hand.
TEST(WatchWindow, counts_every_use_and_leaves_the_open_ones) {
    static Window window;
    std::mt19937 random(11);
    for (int round = 0; round < 60; round++) {
        unsigned length = 1 + random() % 700, uses = 1 + random() % length, blocks = 1 + random() % 200;
        std::uint64_t scale = round % 2 ? 1 : 0x10001;
        window.start(uses, length);
        std::vector<std::uint64_t> met(1);
        std::map<unsigned, unsigned> time, reuse;
        std::vector<bool> open(length + 1);
        for (unsigned i = 1; i <= length; i++) {
            std::uint64_t block = random() % blocks * scale;
            Window::Reuse got = window.meet(block);
            unsigned before = i - 1;
            std::set<std::uint64_t> between;
            while (before > 0 && met[before] != block) between.insert(met[before--]);
            met.push_back(block);
            open[i] = i <= uses;
            ASSERT_EQ(got.time, before ? i - before : 0);
            if (before == 0) continue;
            ASSERT_EQ(got.distinct, between.size());
            open[before] = false;
            if (before > uses) continue;
            time[i - before]++;
            reuse[static_cast<unsigned>(between.size())]++;
        }
        std::map<unsigned, unsigned> got_time, got_reuse;
        window.time().for_each([&](unsigned value, unsigned times) { got_time[value] = times; });
        window.reuse().for_each([&](unsigned value, unsigned times) { got_reuse[value] = times; });
        EXPECT_EQ(got_time, time);
        EXPECT_EQ(got_reuse, reuse);
        unsigned k = 0;
        for (unsigned i = 1; i <= length; i++)
            if (open[i]) ASSERT_EQ(window.open_use(k++), i);
        EXPECT_EQ(window.open(), k);
        EXPECT_EQ(window.uses(), uses);
    }
}

TEST(WatchSideBuffer, reads_back_what_was_stored_over_the_memory) {
    static SideBuffer buffer;
    std::mt19937 random(7);
    for (int round = 0; round < 20; round++) {
        buffer.forget();
        std::map<std::uint64_t, std::pair<std::uint8_t, bool>> naive;
        for (int i = 0; i < 300; i++) {
            std::uint64_t address = 4096 + random() % 600, value = random() * 0x100000001ull;
            unsigned bytes = 1u << random() % 4;
            bool known = random() % 4 != 0;
            ASSERT_TRUE(buffer.store(address, bytes, value, known));
            for (unsigned k = 0; k < bytes; k++)
                naive[address + k] = {static_cast<std::uint8_t>(value >> 8 * k), known};
        }
        for (std::uint64_t at = 4096; at < 4096 + 608; at += 8) {
            std::uint64_t word = 0x1111111111111111;
            std::uint8_t unknown = buffer.overlay(at, word);
            for (unsigned k = 0; k < 8; k++) {
                auto found = naive.find(at + k);
                bool is_unknown = found != naive.end() && !found->second.second;
                ASSERT_EQ(unknown >> k & 1, is_unknown);
                if (!is_unknown)
                    ASSERT_EQ(word >> 8 * k & 255, found == naive.end() ? 0x11 : found->second.first);
            }
        }
    }
}

// Every sample's weight, one over its chance of being seen, sums up to one a sample in the long run,
// whatever the registers and however long reuses take.
TEST(WatchReservoir, weights_stand_for_all_samples) {
    for (unsigned watchpoints = 1; watchpoints <= kMostWatchpoints; watchpoints++) {
        Random random(watchpoints * 17);
        double sum[2] = {};
        constexpr int kRuns = 4000, kSamples = 40;
        for (int run = 0; run < kRuns; run++) {
            Reservoir reservoir(watchpoints);
            struct Waiting {
                int until = -1;
                int kind = 0;
                double chance = 0;
            } waiting[kMostWatchpoints];
            for (int i = 0; i < kSamples + 30; i++) {
                for (unsigned w = 0; w < watchpoints; w++)
                    if (reservoir.held(w) && waiting[w].until <= i) {
                        sum[waiting[w].kind] += 1 / (waiting[w].chance * reservoir.kept(w));
                        reservoir.release(w);
                    }
                if (i >= kSamples) continue;
                int kind = i % 2;  // short reuses and long ones
                Reservoir::Choice choice = reservoir.choose(random, i / 10 % 2 ? 3 : 1);
                if (choice.watchpoint < 0) continue;
                auto w = static_cast<unsigned>(choice.watchpoint);
                reservoir.set(w);
                waiting[w] = {i + (kind ? 25 : 2), kind, choice.probability};
            }
        }
        for (double kind : sum) EXPECT_NEAR(kind / (kRuns * kSamples / 2), 1, 0.06) << watchpoints;
    }
}

// A phase of many samples and one of few that stand for ten times as much: the few are watched, too.
TEST(WatchReservoir, a_sample_that_stands_for_more_gets_the_watchpoints_more_often) {
    auto late = [](double mass) {
        Random random(5);
        int late = 0;
        constexpr int kRuns = 2000, kMany = 400, kFew = 10;
        for (int run = 0; run < kRuns; run++) {
            Reservoir reservoir(1);
            bool is_late = false;
            for (int i = 0; i < kMany + kFew; i++) {
                if (reservoir.choose(random, i < kMany ? 1 : mass).watchpoint < 0) continue;
                reservoir.set(0);
                is_late = i >= kMany;
            }
            late += is_late;
        }
        return late / double{kRuns};
    };
    EXPECT_LT(late(1), 0.6);
    EXPECT_GT(late(10), 0.8);
}

}  // namespace
}  // namespace revisit::machine
