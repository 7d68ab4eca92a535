// What looking ahead costs, in ns per instruction: loops of this program, interpreted from their first
// instruction, with stores dropped and with stores kept beside memory; and what an affine loop takes
// whose iterations are left out.
//
//   bench_machine [ROW]
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <memory>

#include "machine/loops.h"
#include "machine/side_buffer.h"
#include "machine/touch_count.h"
#if defined(__aarch64__)
#include "machine/a64/a64.h"
#else
#include "machine/x64/ahead.h"
#endif

// For all to see, so that the loops have something to do.
namespace bench {
double a[1000], b[1000], c[1000];
long table[4096];
int order[1000];
}  // namespace bench

namespace {

using namespace bench;
using namespace revisit::machine;

[[gnu::noinline]] void dot_products(long n) {
    for (long j = 0; j < n; j++) {
        double sum = 0;
        for (int i = 0; i < 1000; i++) sum += a[i] * b[i];
        c[j % 1000] = sum;
    }
}
[[gnu::noinline]] void hash_table(long n) {
    unsigned long h = 1;
    for (long i = 0; i < n; i++) {
        h = h * 6364136223846793005u + 1442695040888963407u;
        table[h >> 52] += i ^ static_cast<long>(h >> 40);
        if (h & 4) table[i & 4095]++;
    }
}
[[gnu::noinline]] void insertion_sort(long n) {
    for (long k = 0; k < n; k++)
        for (int i = 1; i < 1000; i++) {
            int x = order[i], j = i;
            for (; j > 0 && order[j - 1] > x; j--) order[j] = order[j - 1];
            order[j] = x;
            order[i] ^= static_cast<int>(k);
        }
}

struct Direct {
    bool fetch(std::uint64_t pc, std::uint32_t& code) {
        if (pc == 0) return false;  // it has returned
        std::memcpy(&code, reinterpret_cast<const void*>(pc), 4);
        return true;
    }
    unsigned fetch(std::uint64_t pc, std::uint8_t (&code)[15]) {
        if (pc == 0) return 0;
        std::memcpy(code, reinterpret_cast<const void*>(pc), sizeof code);
        return sizeof code;
    }
    Loaded load(std::uint64_t address, unsigned bytes, std::uint64_t& value) {
        value = 0;
        const void* from = reinterpret_cast<const void*>(address);
        if (bytes == 8)
            std::memcpy(&value, from, 8);
        else if (bytes == 4)
            std::memcpy(&value, from, 4);
        else
            std::memcpy(&value, from, bytes);
        return Loaded::value;
    }
    bool store(std::uint64_t, unsigned, std::uint64_t, bool) { return true; }
};
struct Kept : Direct {
    SideBuffer side;
    Loaded load(std::uint64_t address, unsigned bytes, std::uint64_t& value) {
        std::uint64_t word = 0;
        Direct::load(address & ~std::uint64_t{7}, 8, word);
        unsigned unknown = side.overlay(address & ~std::uint64_t{7}, word);
        value = cut(word >> 8 * (address & 7), bytes);  // nothing here is unaligned
        return unknown ? Loaded::unknown : Loaded::value;
    }
    bool store(std::uint64_t address, unsigned bytes, std::uint64_t value, bool known) {
        side.store(address, bytes, value, known);
        return true;
    }
};

// Where a function begins that is given so many rounds.
constexpr std::uint64_t kRounds = 1u << 30;
#if defined(__aarch64__)
using Lifted = QuickTable;
template <class Memory>
A64Ahead<Memory> ahead_of(A64State& state, Memory& memory, Lifted& lifted, std::uint64_t* stack) {
    state.known = ~0u;
    state.x[0] = kRounds;
    state.x[31] = reinterpret_cast<std::uint64_t>(stack);
    return A64Ahead<Memory>(state, memory, nullptr, &lifted);
}
using State = A64State;
#else
using Lifted = X64Table;
template <class Memory>
X64Ahead<Memory> ahead_of(X64State& state, Memory& memory, Lifted& lifted, std::uint64_t* stack) {
    state.known = 0xffff;
    state.flags_known = kAllFlags;
    state.r[7] = kRounds;
    *--stack = 0;
    state.r[4] = reinterpret_cast<std::uint64_t>(stack);
    return X64Ahead<Memory>(state, memory, &lifted, true, false);
}
using State = X64State;
#endif

template <class Memory>
double nanoseconds(void (*function)(long), Lifted& lifted) {
    constexpr std::uint64_t kInstructions = 3000000;
    static std::uint64_t stack[1024];
    double best = 1e9;
    for (int round = 0; round < 5; round++) {
        auto memory = std::make_unique<Memory>();
        State state;
        state.pc = reinterpret_cast<std::uint64_t>(function);
        auto ahead = ahead_of(state, *memory, lifted, stack + 1000);
        std::uint64_t accesses = 0;
        std::clock_t start = std::clock();
        ahead.run(kInstructions, [&] {
            accesses += ahead.touched().pieces;
            return true;
        });
        double taken = static_cast<double>(std::clock() - start) * (1e9 / CLOCKS_PER_SEC);
        double each = taken / static_cast<double>(kInstructions - ahead.left());
        if (accesses > 0 && each < best) best = each;
    }
    return best;
}

// Of a loop entered, of a thousand iterations.
double nanoseconds_of_loop(void (*function)(long), Lifted& lifted) {
    constexpr std::uint64_t kLoops = 1000, kAccesses = 2000 * kLoops, kNoBlock = 1;
    static std::uint64_t stack[1024];
#if defined(__aarch64__)
    static Loops<A64> loops;
#else
    static Loops<X64> loops;
#endif
    double best = 1e9;
    for (int round = 0; round < 5; round++) {
        auto memory = std::make_unique<Kept>();
        State state;
        state.pc = reinterpret_cast<std::uint64_t>(function);
        auto ahead = ahead_of(state, *memory, lifted, stack + 1000);
        std::clock_t start = std::clock();
        Passed passed = pass(ahead, state, *memory, loops, kNoBlock, 6, kAccesses, kAccesses, [] {});
        double taken = static_cast<double>(std::clock() - start) * (1e9 / CLOCKS_PER_SEC);
        if (passed.left_out > kAccesses / 2) best = std::min(best, taken / kLoops);
    }
    return best;
}

}  // namespace

int main(int count, char** arguments) {
    const struct {
        const char* name;
        void (*function)(long);
    } kLoops[] = {
        {"dot products", dot_products}, {"hash table", hash_table}, {"insertion sort", insertion_sort}};
    const char* only = count > 1 ? arguments[1] : nullptr;
    auto lifted = std::make_unique<Lifted>();
    std::printf("%-16s %14s %14s   ns per instruction\n", "", "stores dropped", "stores kept");
    for (const auto& loop : kLoops)
        if (only == nullptr || std::strcmp(only, loop.name) == 0)
            std::printf("%-16s %14.2f %14.2f\n", loop.name, nanoseconds<Direct>(loop.function, *lifted),
                        nanoseconds<Kept>(loop.function, *lifted));
    if (only == nullptr || std::strcmp(only, "skip") == 0)
        std::printf("%.0f ns per loop that is left out (dot products)\n",
                    nanoseconds_of_loop(dot_products, *lifted));
}
