// The aarch64 look-ahead against the processor: a program is stepped through, and before every step the
// interpreter says what it will do.
#include <gtest/gtest.h>

#include <map>
#include <random>

#include "watch/a64_ahead.h"
#include "watch/reservoir.h"
#include "watch/side_buffer.h"

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

namespace revisit::watch {
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
        A64Ahead<TracedMemory> ahead(foreseen, memory, vectors);
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

Stepped step_workload(VectorUnit* vectors, std::size_t most) {
    Stepped done;
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
    Stepped done = step_workload(nullptr, 8000);
    if (done.steps == 0) GTEST_SKIP() << "a child may not be traced here";
    EXPECT_LT(done.refused, done.steps / 50);
}

#endif

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
                Reservoir::Choice choice = reservoir.choose(random);
                if (choice.watchpoint < 0) continue;
                auto w = static_cast<unsigned>(choice.watchpoint);
                reservoir.set(w);
                waiting[w] = {i + (kind ? 25 : 2), kind, choice.probability};
            }
        }
        for (double kind : sum) EXPECT_NEAR(kind / (kRuns * kSamples / 2), 1, 0.06) << watchpoints;
    }
}

}  // namespace
}  // namespace revisit::watch
