// A program that steps through itself: see x64_steps.h.
#include "x64_steps.h"

#include <cpuid.h>

#include "x64_instructions.h"

namespace revisit::machine {
namespace {

constexpr unsigned kMostSteps = 80000;

[[noreturn]] void end() {
    std::map<std::string, unsigned> kinds;
    for (unsigned i = 0; i < refused && i < 512; i++) {
        char text[16];
        snprintf(text, sizeof text, "%02x %02x %02x %02x", refused_code[i][0], refused_code[i][1],
                 refused_code[i][2], refused_code[i][3]);
        kinds[text]++;
    }
    for (auto& [text, times] : kinds) printf("  refused %s: %u times\n", text.c_str(), times);
    printf(
        "%u steps, %u refused, %u accesses, %u wrong; of %u traps %u found again; of %u paths %u "
        "right\n",
        steps, refused, accesses, wrong, traps, found_again, paths, paths_right);
    bool passed = wrong == 0 && refused < steps / 200 && accesses > steps / 8 &&
                  found_again > traps - traps / 50 && paths_right >= paths - paths / 20;
    fflush(stdout);
    _exit(passed ? 0 : 1);
}

[[gnu::force_align_arg_pointer]] void handle(int, siginfo_t*, void* raw) {
    keep_wide();
    auto& context = *static_cast<ucontext_t*>(raw);
    if (steps == 0) find_wide(context);
    if (steps >= kMostSteps) end();
    step(context);
    put_wide_back();
}

// Formatted output, strings, sorting, a tree, recursion, copying and filling: what programs are made
// of.
[[gnu::noinline]] int depth(int n, char* text) {
    char own[64];
    memset(own, n, sizeof own);
    if (n == 0) return text[3] + own[7];
    return depth(n - 1, own) * 3 + own[n % 64];
}

// Scalar floating point: both sizes, conversions, comparisons, signs.
[[gnu::noinline]] double fractions(int n, double* values, float* small) {
    double sum = 0.5, least = 1e9;
    for (int i = 0; i < n; i++) {
        values[i] = values[i] * 1.000003 + i / 3.0 - sum;
        small[i] = static_cast<float>(values[i]) / (small[i] + 1.5f);
        if (values[i] < least) least = values[i];
        sum += __builtin_fabs(values[i]) > 1e3 ? -values[i] / 2e3 : static_cast<double>(small[i]);
        sum += static_cast<double>(static_cast<int>(small[i])) + static_cast<double>(1000000L * i);
    }
    return sum - least;
}

// By qemu, which says so where virtual machines do.
bool is_emulated() {
    unsigned a, b = 0, c, d;
    __cpuid(0x40000000, a, b, c, d);
    return b == 0x54474354;
}

// Bytes of which many are equal, or zero, or of the other sign, and small numbers with a fraction.
[[gnu::noinline]] void every_instruction(unsigned round) {
    alignas(64) static std::uint8_t from[256], to[256];
    std::uint64_t state = 0x9e3779b97f4a7c15 * (round + 1);
    for (unsigned k = 0; k < sizeof from; k++) {
        state = state * 6364136223846793005 + 1442695040888963407;
        auto byte = static_cast<std::uint8_t>(state >> 56);
        from[k] = round % 3 == 0   ? byte
                  : round % 3 == 1 ? (byte & 0x18 ? static_cast<std::uint8_t>(k & 16 ? 0 : 0x55) : byte)
                                   : static_cast<std::uint8_t>(k % 8 == 7 ? 0x40 : byte & 0x7f);
    }
    instructions::Kind kinds[instructions::kKinds];
    instructions::all(kinds, is_emulated());
    for (unsigned k = 0; k < instructions::kKinds; k++)
        if (kinds[k].is_here) kinds[k].run(from, to);
}

[[gnu::noinline]] double workload(int rounds) {
    double sum = 0;
    for (unsigned round = 0; round < 3; round++) every_instruction(round);
    for (int i = 1; i <= rounds; i++) {
        char text[200];
        snprintf(text, sizeof text, "%d %s %lx %g", i, "text", i * 77777L, i / 7.0);
        std::string copy = text;
        copy += std::to_string(i * 3);
        sum += static_cast<double>(copy.find('t')) + depth(i % 9, text);
        int values[24];
        for (int k = 0; k < 24; k++) values[k] = k * 7919 % 101 * i;
        qsort(values, 24, sizeof *values, [](const void* a, const void* b) {
            int x = *static_cast<const int*>(a), y = *static_cast<const int*>(b);
            return (x > y) - (x < y);
        });
        std::map<int, int> tree;
        for (int k = 0; k < 10; k++) tree[k * 7919 % 101] += k;
        static double fraction[16];
        static float small[16];
        sum += fractions(16, fraction, small);
        static char large[2][6000];
        memcpy(large[0], large[1], 3000 + static_cast<std::size_t>(i));
        memset(large[1] + i, i, 2500);
        sum += values[3] + tree.begin()->second + static_cast<double>(strlen(text)) + large[0][i];
    }
    return sum;
}

}  // namespace
}  // namespace revisit::machine

using namespace revisit::machine;

int main() {
    prepare(handle);
    __asm__ volatile("pushfq\n orq $0x100, (%%rsp)\n popfq" ::: "memory", "cc");
    return workload(1000000) > 0 ? 1 : 2;  // it is ended before
}
