// Iterations of x86_64 loops left out, against interpreting every one of them.
//
// The loops are C code, fixed and made up at random, compiled for x86_64 by clang and gcc at several
// levels and interpreted here, on any machine. Wherever accesses come round, an iteration is recorded
// and what can be is left out, on a copy; then all of it is interpreted, and all that the copy knows
// must be so: place, registers, flags, vectors, stack and the number of accesses. Replays are compared
// with a naive count as those of aarch64 are (watch_replay_test.cpp).
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "machine/loops.h"
#include "machine/x64/ahead.h"
#include "x64_code.h"

namespace revisit::machine {
namespace {

// Code, and data with a stack above it; everything else faults.
constexpr std::uint64_t kLoopData = 48 << 10;
struct LoopMemory : X64Memory<kLoopData + (4 << 10)> {
    static constexpr std::uint64_t kDataBytes = kLoopData, kReturned = 0xdead;
    std::vector<std::uint8_t> unknown = std::vector<std::uint8_t>(kBytes);

    Loaded load(std::uint64_t address, unsigned bytes, std::uint64_t& value) {
        const Loaded loaded = X64Memory::load(address, bytes, value);
        for (unsigned k = 0; k < bytes && loaded == Loaded::value; k++)
            if (unknown[address - kData + k]) return Loaded::unknown;
        return loaded;
    }
    bool store(std::uint64_t address, unsigned bytes, std::uint64_t value, bool known) {
        if (!X64Memory::store(address, bytes, value)) return false;
        std::memset(unknown.data() + (address - kData), !known, bytes);
        return true;
    }
    void lose(std::uint64_t low, std::uint64_t high) {
        ASSERT_TRUE(low >= kData && low <= high && high <= kData + kBytes);
        std::memset(unknown.data() + (low - kData), 1, high - low);
    }
};

struct Moment {
    X64State state;
    LoopMemory memory;
    std::uint64_t accesses = 0;
};

Moment start(const X64Code& code, const std::string& function, std::uint64_t n,
             std::mt19937_64& random) {
    Moment out;
    out.memory.code = &code.text;
    for (std::uint64_t at = 0; at < LoopMemory::kDataBytes; at += 8) {
        double value = static_cast<double>(random() % 1000) / 8;
        std::uint64_t small = random() % 400;
        if (at >= 1024 && at < 8192)  // small numbers first, then those with a fraction
            std::memcpy(out.memory.data.data() + at, &small, 8);
        else
            std::memcpy(out.memory.data.data() + at, &value, 8);
    }
    out.state.known = 0xffff;
    out.state.flags_known = kAllFlags;
    for (std::uint8_t& known : out.state.v_known) known = 15;
    out.state.k_known = 255;
    out.state.r[7] = n;
    out.state.r[6] = LoopMemory::kData;
    out.state.r[4] = LoopMemory::kData + LoopMemory::kBytes - 1032;
    out.state.pc = LoopMemory::kCode + code.functions.at(function);
    out.memory.store(out.state.r[4], 8, LoopMemory::kReturned, true);
    return out;
}

// m: 1024 bytes for anything, 7 KiB of small numbers, then doubles.
constexpr const char* kLoops = R"(
typedef unsigned long u64; typedef long i64; typedef unsigned u32; typedef unsigned char u8; typedef unsigned short u16;
#define D(k) ((double*)(m + 1024 + (k) * 800))
#define S(k) ((i64*)(m + 128 + (k) * 400))
u64 dot(u64 n, u64* m) {
    double* a = D(0), *b = D(1), *c = D(2);
    for (i64 j = 0; j < 40; j++) { double s = 0; for (u64 i = 0; i < n; i++) s += a[i] * b[i]; c[j] = s; }
    return 1;
}
u64 particles(u64 n, u64* m) {
    double* a = D(0), h = a[0];
    for (int t = 0; t < 40; t++) for (u64 i = 0; i < n; i++) a[4 * i] += a[4 * i + 3] * h;
    return 1;
}
u64 smooth(u64 n, u64* m) {
    double* a = D(0), *b = D(1), *c = D(2), h = a[0];
    for (int t = 0; t < 16; t++) {
        for (i64 i = 1; i < (i64)n - 1; i++) b[i] = (a[i - 1] + a[i + 1]) * h;
        for (int i = 0; i < 6; i++) c[i] += b[i];
        for (int i = (int)n - 2; i > 0; i--) a[i] = b[i];
    }
    return 1;
}
u64 gather(u64 n, u64* m) {
    double* a = D(0), s = 0; i64* order = S(0); u32* to = (u32*)D(2);
    for (int t = 0; t < 40; t++) for (u32 i = 0; i < (u32)n; i++) { s += a[order[i]]; to[i] += (u32)t; }
    D(1)[0] = s;
    return 1;
}
u64 matrix(u64 n, u64* m) {
    double* a = D(0), *b = D(1), *c = D(2); int size = 20 + (int)(n % 8);
    for (int i = 0; i < size; i++) for (int j = 0; j < size; j++) {
        double s = 0;
        for (int k = 0; k < size; k++) s += a[i * size + k] * b[k * size + j];
        c[i * size + j] = s;
    }
    return 1;
}
u64 triangle(u64 n, u64* m) {
    double* a = D(0), *c = D(1);
    for (short i = 0; i < (short)(n / 2); i++) for (u8 k = 0; k < (u8)i; k++) c[k] += a[i];
    return 1;
}
static __attribute__((noinline)) void one(double* a, u64 i, double h) { a[i] = a[i] * h; a[i + 1] += h; }
u64 called(u64 n, u64* m) {
    double* a = D(0), h = a[7];
    for (int t = 0; t < 20; t++) for (u64 i = 0; i < n; i++) one(a, i, h);
    return 1;
}
u64 fields(u64 n, u64* m) {
    struct { u8 tag; u16 small; u32 key; double x, y; }* p = (void*)D(0);
    u32 sum = 0; u64 all = 0;
    for (u64 t = 0; t < 30; t++) for (u32 i = 0; i != (u32)n; ++i) {
        sum += p[i].key + p[i].small; all ^= p[i].tag; p[i].x += p[i].y; if (i == n) break;
    }
    return sum + all;
}
u64 down(u64 n, u64* m) {
    int* a = (int*)D(0); u64 s = 0;
    for (int t = 0; t < 30; t++) {
        for (int i = (int)n; i >= 0; i -= 3) a[i] = i * 7;
        for (u64 i = n; i--;) s += (u64)a[i];
    }
    return s;
}
u64 choose(u64 n, u64* m) {
    i64* order = S(0); u64 found = 0;
    for (int t = 0; t < 30; t++) for (u64 i = 0; i < n; i++) if (order[i] % 3 == t % 3) order[i] += 3, found++;
    return found;
}
u64 in_memory(u64 n, u64* m) {
    volatile int* counter = (volatile int*)m; *counter = 0;
    while (*counter < 20 * (int)n) *counter = *counter + 1;
    return 1;
}
u64 bound_in_memory(u64 n, u64* m) {
    volatile u64* bound = m + 5; *bound = n; int* a = (int*)D(0);
    for (int t = 0; t < 30; t++) for (u64 i = 0; i < *bound; i++) a[i] += t;
    return 1;
}
u64 overwrites_its_bound(u64 n, u64* m) {
    volatile u64* v = S(0); v[n / 2] = n;
    for (int t = 0; t < 30; t++) { v[n / 2] = n; for (u64 i = 0; i < v[n / 2]; i++) v[i] = n - n / 4; }
    return 1;
}
u64 strings(u64 n, u64* m) {
    for (int t = 0; t < 8; t++) {
        void* to = D(1); const void* from = D(0); u64 count = n + (u64)t;
        __asm__ volatile("rep movsq" : "+D"(to), "+S"(from), "+c"(count) :: "memory");
        to = D(2); count = 2 * n;
        __asm__ volatile("rep stosl" : "+D"(to), "+c"(count) : "a"(t) : "memory");
        to = (u8*)D(1) + t; from = (u8*)D(0) + t % 3; count = 9 * n + (u64)t;
        __asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(count) :: "memory");
        to = (u8*)D(2) + t % 4 * 3; from = (u8*)to - 1 - t; count = 3 * n;
        __asm__ volatile("rep movsw" : "+D"(to), "+S"(from), "+c"(count) :: "memory");
        for (u64 k = 0; k < n / 4; k++) {
            to = (u8*)D(1) + 16 * k; count = 12 + (u64)(t & 1);
            __asm__ volatile("rep stosb" : "+D"(to), "+c"(count) : "a"(t) : "memory");
        }
    }
    return 1;
}
u64 narrow(u64 n, u64* m) {
    u8* b = (u8*)D(0); u16* w = (u16*)D(1); u32 hash = 1;
    for (u16 t = 0; t < 20; t++) { for (u16 i = 65000; i != (u16)(65000 + n); i++) w[(u16)(i - 65000)] = i;
        for (u8 i = 3; i < (u8)n; i++) b[i] = (u8)(hash += 0x9e3779b9u); }
    return hash;
}
)";

struct Checked {
    unsigned recorded = 0, skipped = 0;
    std::uint64_t instructions = 0, left_out = 0;
};

// Runs it all; wherever accesses come round, what a copy that leaves iterations out knows must be so.
void check_all(const X64Code& code, const std::string& function, std::uint64_t n, std::uint64_t seed,
               const std::string& what, Checked& checked) {
    std::mt19937_64 random(seed);
    Moment now = start(code, function, n, random);
    auto loops = std::make_unique<Loops<X64>>();
    loops->start();
    bool words = n % 2;
    X64Ahead<LoopMemory> ahead(now.state, now.memory, nullptr, words);
    ReplayEnd<X64State> nowhere;
    constexpr std::uint64_t kMost = 3000000;
    std::uint64_t done = 0;
    auto step = [&](X64Ahead<LoopMemory>& one, std::uint64_t& accesses) {
        bool ends = false;
        Step step = one.run(1, [&] {
            accesses += blocks_of(one.touched(), 3);
            return ends = true;
        });
        return step != Step::stop;
    };
    while (now.state.pc != LoopMemory::kReturned && done < kMost) {
        std::uint64_t before = now.accesses;
        if (!step(ahead, now.accesses)) break;  // constants in memory, which is not there
        done++;
        if (now.accesses == before || !loops->comes_round(ahead.at())) continue;
        Moment copy = now;
        X64Ahead<LoopMemory> copy_ahead(copy.state, copy.memory, nullptr, words);
        SkippedLoop skipped = loops->skip(copy_ahead, copy.state, copy.memory, nowhere, 3, [&] {
            copy.accesses += blocks_of(copy_ahead.touched(), 3);
            return true;
        });
        copy.accesses += skipped.accesses;
        checked.recorded++;
        if (skipped.left_out == 0) continue;
        checked.skipped++;
        checked.left_out += skipped.left_out;
        for (std::uint64_t k = 0; k < skipped.interpreted + skipped.left_out; k++) {
            if (!step(ahead, now.accesses)) {
                ADD_FAILURE() << what << " left out more than there is, at " << std::hex
                              << now.state.pc;
                return;
            }
            done++;
        }
        ASSERT_EQ(copy.state.pc, now.state.pc) << what;
        ASSERT_EQ(copy.accesses, now.accesses) << what;
        for (unsigned r = 0; r < 16; r++) {
            if (!copy.state.is_known(r)) continue;
            ASSERT_EQ(copy.state.r[r], now.state.r[r])
                << what << " register " << r << " at " << std::hex << now.state.pc;
        }
        ASSERT_EQ((copy.state.flags ^ now.state.flags) & copy.state.flags_known & now.state.flags_known,
                  0)
            << what << " at " << std::hex << now.state.pc;
        ASSERT_EQ(copy.state.flags_known & ~now.state.flags_known, 0) << what;
        for (unsigned v = 0; v < 32; v++)
            for (unsigned part = 0; part < 4; part++)
                if (copy.state.v_known[v] >> part & 1) {
                    ASSERT_EQ(std::memcmp(copy.state.v[v].word + 2 * part,
                                          now.state.v[v].word + 2 * part, 16),
                              0)
                        << what << " vector " << v;
                }
        for (std::uint64_t at = LoopMemory::kDataBytes; at < LoopMemory::kBytes; at++) {
            if (copy.memory.unknown[at]) continue;
            ASSERT_EQ(copy.memory.data[at], now.memory.data[at]) << what << " stack at " << at;
        }
    }
    checked.instructions += done;
}

struct Compiler {
    const char *name, *options;
};
const std::vector<Compiler>& compilers() {
    static const std::vector<Compiler> all = [] {
        std::vector<Compiler> out;
        const char* clang = "clang-19 --target=x86_64-linux-gnu";
        for (const char* options :
             {"-O1", "-O2 -fno-vectorize -fno-slp-vectorize", "-O3 -mavx2 -mbmi2"})
            out.push_back({clang, options});
#if defined(__x86_64__)
        const char* gcc = "gcc";
#else
        const char* gcc = "x86_64-linux-gnu-gcc";
#endif
        for (const char* options : {"-O1", "-O3 -funroll-loops"}) out.push_back({gcc, options});
        return out;
    }();
    return all;
}
X64Code compile_loops(const std::string& source, const Compiler& compiler) {
    bool is_gcc = std::strstr(compiler.name, "gcc") != nullptr;
    std::string options =
        std::string(compiler.options) + " -fno-builtin -fno-stack-protector -fcf-protection=none ";
    if (is_gcc) options += "-fno-tree-loop-distribute-patterns ";
    return compile_for_x64(source, options, compiler.name);
}

constexpr std::uint64_t kCalls[] = {50, 131, 250};

bool is_loop(const std::string& name) {  // not what one of them calls
    return !name.empty() && name != "one" && name.find('.') == std::string::npos;
}

TEST(WatchX64Loops, LeavesOutWhatInterpretingFinds) {
    // Which of all instructions are left out at least, per cent, by the first gcc or clang of the list.
    const std::map<std::string, unsigned> most_left_out = {
        {"dot", 80},    {"particles", 90}, {"smooth", 60}, {"gather", 90},          {"matrix", 50},
        {"called", 60}, {"fields", 80},    {"down", 30},   {"bound_in_memory", 80}, {"strings", 40}};
    unsigned compiled = 0;
    for (const Compiler& compiler : compilers()) {
        X64Code code = compile_loops(kLoops, compiler);
        if (code.text.empty()) continue;
        compiled++;
        for (const auto& [name, at] : code.functions) {
            if (!is_loop(name)) continue;
            Checked checked;
            std::string what = name + " " + compiler.name + " " + compiler.options;
            for (std::uint64_t n : kCalls) check_all(code, name, n, n, what, checked);
            if (HasFatalFailure()) return;
            bool is_simple = std::string(compiler.options) == "-O1";
            auto found = most_left_out.find(name);
            if (is_simple && found != most_left_out.end()) {
                EXPECT_GE(100 * checked.left_out, found->second * checked.instructions) << what;
            }
        }
    }
    if (compiled == 0) GTEST_SKIP() << "no compiler for x86_64";
}

// A function with two loops, one in the other, of random types, steps, conditions and bodies.
std::string random_function(unsigned number, std::mt19937_64& random) {
    auto one_of = [&](std::initializer_list<const char*> all) {
        return std::string(all.begin()[random() % all.size()]);
    };
    auto number_up_to = [&](unsigned most) { return std::to_string(1 + random() % most); };
    auto type = [&] { return one_of({"u8", "u16", "short", "int", "u32", "i64", "u64"}); };
    std::string i = type(), out = "u64 r" + std::to_string(number) + "(u64 n, u64* m) {\n";
    out += " " + type() + "* a = (void*)D(0); " + type() +
           "* b = (void*)D(1); double* d = D(2), h = d[3];\n ";
    out += type() + " sum = 1; " + type() + " other = 7; u64 k = 0; volatile u64* v = m + 9; *v = n;\n";
    out += " for (" + type() + " t = 0; t < " + number_up_to(12) + "; t++) {\n";
    std::string step = number_up_to(3);
    switch (random() % 5) {
        case 0:
            out += "  for (" + i + " i = 0; i < (" + i + ")n; i += " + step + ") {\n";
            break;
        case 1:
            out += "  for (" + i + " i = 0; i != (" + i + ")n; i++) {\n";
            break;
        case 2:
            out += "  for (int i = (int)n; i > 0; i -= " + step + ") {\n";
            break;
        case 3:
            out += "  for (u64 i = 0; i < *v; i++) {\n";
            break;
        default:
            out += "  for (i64 j = -(i64)n; j < 0; j += " + step + ") { u64 i = (u64)(j + (i64)n);\n";
    }
    for (unsigned statements = 1 + static_cast<unsigned>(random() % 4); statements > 0; statements--)
        out += "   " +
               one_of({"b[i] += a[i];",
                       "sum += a[i];",
                       "d[i] = d[i + 1] * h;",
                       "a[i] = (u8)i;",
                       "if ((i & 15) == 3) sum++;",
                       "if (i == 77) other += 3;",
                       "sum ^= (u8)other;",
                       "other += 5;",
                       "k += b[2 * i];",
                       "if (b[i] > 40) k++;",
                       "if (i > 100) k += 2;",
                       "v[1] = k;",
                       "v[1] += sum;",
                       "b[i & 63] = sum;",
                       "d[(u8)a[i] & 31] = h;",
                       "k = k * 3 + i;",
                       "sum = sum < 9 ? 20 : sum;",
                       "one(d, (u64)i, h);",
                       "if (v[2] == i) break;",
                       "k += (u64)(i << 2);",
                       "m[3 + (other & 1)]++;"}) +
               "\n";
    return out + "  }\n  " + one_of({"", "sum *= 3;", "b[t] = sum;"}) +
           "\n }\n return k + sum + (u64)other;\n}\n";
}

TEST(WatchX64Loops, LeavesOutWhatInterpretingFindsAtRandom) {
    constexpr unsigned kFunctions = 24;
    std::uint64_t seed = 5;
    if (const char* more = std::getenv("REVISIT_SEED")) seed = std::stoull(more);
    std::mt19937_64 random(seed);
    std::string source = std::string(kLoops);
    for (unsigned k = 0; k < kFunctions; k++) source += random_function(k, random);
    Checked checked;
    for (const Compiler& compiler : compilers()) {
        X64Code code = compile_loops(source, compiler);
        if (code.text.empty()) continue;
        for (unsigned k = 0; k < kFunctions; k++) {
            std::string name = "r" + std::to_string(k);
            check_all(code, name, kCalls[k % 3], k, name + " " + compiler.name + " " + compiler.options,
                      checked);
            if (HasFatalFailure()) {
                std::mt19937_64 again(seed);
                for (unsigned f = 0; f < k; f++) random_function(f, again);
                GTEST_LOG_(INFO) << random_function(k, again);
                return;
            }
        }
    }
    RecordProperty("instructions", std::to_string(checked.instructions));
    RecordProperty("left_out", std::to_string(checked.left_out));
}

TEST(WatchX64Loops, StringsByWordsAreTheSame) {
    for (const Compiler& compiler : compilers()) {
        X64Code code = compile_loops(kLoops, compiler);
        if (code.text.empty()) continue;
        Moment by[2];
        for (bool words : {false, true}) {
            std::mt19937_64 random(1);
            Moment& now = by[words] = start(code, "strings", 77, random);
            X64Ahead<LoopMemory> ahead(now.state, now.memory, nullptr, words);
            ahead.run(1u << 20, [&] { return ++now.accesses > 0; });
            EXPECT_EQ(now.state.pc, LoopMemory::kReturned);
        }
        EXPECT_EQ(by[0].memory.data, by[1].memory.data);
        EXPECT_LT(2 * by[1].accesses, by[0].accesses);
        for (unsigned r = 0; r < 16; r++) EXPECT_EQ(by[0].state.r[r], by[1].state.r[r]);
        break;
    }
}

// From any moment of a run, the next touch of the block that was touched last, or of one that is near:
// looking ahead through loops must find it as far away as it is, or not at all.
TEST(WatchX64Loops, CountsToTheNextTouch) {
    auto loops = std::make_unique<Loops<X64>>();
    unsigned told = 0, asked = 0;
    for (const Compiler& compiler : compilers()) {
        X64Code code = compile_loops(kLoops, compiler);
        if (code.text.empty()) continue;
        std::mt19937_64 random(3);
        for (const auto& [name, at] : code.functions)
            for (int round = 0; round < 4 && is_loop(name); round++) {
                Moment now = start(code, name, kCalls[random() % 3], random);
                X64Ahead<LoopMemory> naive(now.state, now.memory);
                if (naive.run(random() % 30000, [] { return true; }) != Step::done) continue;
                if (naive.run(1000, [&] { return !naive.is_last(); }) != Step::access) continue;
                unsigned shift = round == 3 ? 6 : 3;
                std::uint64_t wanted = (naive.touched().address >> shift) + random() % 3;
                Moment begin = now;
                std::uint64_t distance = 0, truth = 0, told_to = 0;
                naive.run(200000, [&] {
                    std::uint64_t low = naive.touched().address, high = low + naive.touched().bytes - 1;
                    for (std::uint64_t block = low >> shift; block <= high >> shift; block++) {
                        distance++;
                        if (block == wanted && truth == 0) truth = distance;
                    }
                    return truth == 0;
                });
                X64Ahead<LoopMemory> ahead(begin.state, begin.memory);
                std::uint64_t found = count_to_touch(ahead, begin.state, begin.memory, *loops,
                                                     NextTouch{wanted}, shift, 1500, 20000,
                                                     [&](std::uint64_t address, std::uint64_t counted) {
                                                         told_to = counted;
                                                         EXPECT_EQ(address >> shift, wanted);
                                                     })
                                          .distance;
                EXPECT_EQ(told_to, found);
                asked += truth != 0;
                if (found == 0) continue;
                told++;
                EXPECT_EQ(found, truth) << name << " " << compiler.name << " " << compiler.options;
            }
    }
    RecordProperty("told", static_cast<int>(told));
    RecordProperty("asked", static_cast<int>(asked));
    if (asked > 0) {
        EXPECT_GT(2 * told, asked);
    }
}

// So many accesses on, through loops: the next ones are those that interpreting all of them comes to,
// and all touches of a block on the way are met.
TEST(WatchX64Loops, PassesAccesses) {
    auto loops = std::make_unique<Loops<X64>>();
    std::uint64_t left_out = 0;
    bool tried = false;
    for (const Compiler& compiler : compilers()) {
        X64Code code = compile_loops(kLoops, compiler);
        if (code.text.empty()) continue;
        std::mt19937_64 random(5);
        for (const auto& [name, at] : code.functions)
            for (int round = 0; round < 4 && is_loop(name); round++) {
                Moment now = start(code, name, kCalls[random() % 3], random);
                X64Ahead<LoopMemory> naive(now.state, now.memory);
                if (naive.run(random() % 30000, [] { return true; }) != Step::done) continue;
                if (naive.run(1000, [&] { return !naive.is_last(); }) != Step::access) continue;
                unsigned shift = round == 3 ? 6 : 3;
                std::uint64_t wanted = (naive.touched().address >> shift) + random() % 3;
                auto touches = [&](const Touched& op) {
                    return op.address >> shift <= wanted &&
                           wanted <= (op.address + std::uint64_t{op.pieces} * op.bytes - 1) >> shift;
                };
                Moment begin = now;
                X64Ahead<LoopMemory> ahead(begin.state, begin.memory);
                std::uint64_t met = 0, expected = 0, blocks = 0;
                Passed passed =
                    pass(ahead, begin.state, begin.memory, *loops, wanted, shift, 1 + random() % 60000,
                         1 + random() % 20000, [&] { met += touches(ahead.touched()); });
                if (passed.ended || passed.accesses == 0) continue;
                tried = true;
                left_out += passed.left_out;
                naive.run(1u << 22, [&] {
                    blocks += blocks_of(naive.touched(), shift);
                    expected += touches(naive.touched());
                    return blocks < passed.accesses;
                });
                ASSERT_EQ(blocks, passed.accesses) << name << " " << compiler.options;
                EXPECT_EQ(met, expected) << name << " " << compiler.options;
                std::vector<std::uint64_t> next, truth;
                naive.run(1000, [&] {
                    truth.push_back(naive.touched().address);
                    return truth.size() < 20;
                });
                ahead.run(1000, [&] {
                    next.push_back(ahead.touched().address);
                    return next.size() < truth.size();
                });
                truth.resize(std::min(truth.size(), next.size()));
                next.resize(truth.size());
                EXPECT_EQ(next, truth) << name << " " << compiler.options;
            }
    }
    RecordProperty("left out", static_cast<int>(left_out));
    if (tried) {
        EXPECT_GT(left_out, 0u);
    }
}

// What a replay from one to the other finds; the memory is that of the later one, but for the stack.
template <class Loops>
ReplayCount replay(const Moment& from, const Moment& to, Loops& loops) {
    ReplayEnd<X64State> end;
    Moment later = to;
    if (!find_replay_end(X64Ahead<LoopMemory>(later.state, later.memory), later.state, end)) return {};
    Moment now = from;
    std::copy_n(to.memory.data.begin(), LoopMemory::kDataBytes, now.memory.data.begin());
    return count_replay(X64Ahead<LoopMemory>(now.state, now.memory), now.state, now.memory, loops, end,
                        3, 1u << 30, 1u << 30);
}

TEST(WatchX64Loops, ReplaysCountWhatWasRun) {
    // Those that branch on what they overwrite may tell nothing, or what interpreting all of it tells.
    const char* const kPlain[] = {"dot", "particles", "smooth", "gather", "matrix", "fields", "down"};
    const char* const kOthers[] = {
        "called", "choose", "in_memory", "bound_in_memory", "overwrites_its_bound", "narrow"};
    auto loops = std::make_unique<Loops<X64>>();
    NoLoops to_their_end;
    for (const Compiler& compiler : compilers()) {
        X64Code code = compile_loops(kLoops, compiler);
        if (code.text.empty()) continue;
        auto check = [&](const char* name, bool is_plain) {
            std::mt19937_64 random(9);
            Moment begin = start(code, name, kCalls[random() % 3], random);
            auto run = [&](Moment& now, std::uint64_t accesses) {
                X64Ahead<LoopMemory> ahead(now.state, now.memory);
                while (now.state.pc != LoopMemory::kReturned && now.accesses < accesses) {
                    Step step = ahead.run(1, [&] {
                        now.accesses += blocks_of(ahead.touched(), 3);
                        return true;
                    });
                    if (step == Step::stop) return false;
                }
                return true;
            };
            Moment whole = begin;
            if (!run(whole, 1u << 30)) return;
            // A replay goes on as long again, and then some.
            std::uint64_t last = whole.accesses > 7000 ? (whole.accesses - 4000) / 3 : 0;
            for (int round = 0; round < 2 && last > 0; round++) {
                std::uint64_t first = random() % last, second = first + 500 + random() % last;
                Moment from = begin;
                run(from, first);
                Moment to = from;
                run(to, second);
                std::uint64_t truth = to.accesses - from.accesses;
                ReplayCount naive = replay(from, to, to_their_end), counted = replay(from, to, *loops);
                std::string what = std::string(name) + " " + compiler.name + " " + compiler.options;
                if (is_plain) {
                    EXPECT_EQ(naive.accesses, truth) << what;
                }
                if (is_plain || (counted.accesses != 0 && counted.accesses != naive.accesses)) {
                    EXPECT_EQ(counted.accesses, truth) << what << " from " << first;
                }
            }
        };
        for (const char* name : kPlain) check(name, true);
        for (const char* name : kOthers) check(name, false);
    }
}

}  // namespace
}  // namespace revisit::machine
