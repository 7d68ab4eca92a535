// The x86_64 look-ahead against the processor: this program steps through itself, one instruction at a
// time (the trap flag), and before every step the interpreter says what it will do. After it, which
// instruction has touched a word must be found again from the state alone, and the calls that lead
// there must be those that the C library's own unwinder finds.
//
// A program of its own, with nothing but the C library, so that it can also be compiled for x86_64
// elsewhere and run by an emulator.
#include <execinfo.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <map>
#include <string>

#include "watch/preload/machine.h"

namespace revisit::watch {
namespace {

struct OwnMemory {
    struct Stored {
        std::uint64_t address, value;
        unsigned bytes;
    };
    Stored stored[16];
    unsigned count = 0;

    unsigned fetch(std::uint64_t pc, std::uint8_t (&code)[15]) {
        memcpy(code, reinterpret_cast<void*>(pc), sizeof code);
        return sizeof code;
    }
    Loaded load(std::uint64_t address, unsigned bytes, std::uint64_t& value) {
        SafeWord read = revisit_watch_load(address);  // up to 7 bytes more than asked for
        value = read.value & ~std::uint64_t{0} >> (64 - 8 * bytes);
        return read.is_readable ? Loaded::value : Loaded::fault;
    }
    bool store(std::uint64_t address, unsigned bytes, std::uint64_t value, bool known) {
        if (known && count < 16) stored[count++] = {address, value, bytes};
        return true;
    }
};

constexpr unsigned kMostSteps = 60000;
X64Table table;
X64Unwinder unwinder;
X64State actual, foreseen;
OwnMemory memory;
Touched touched;
std::uint64_t at, expected_trap;
bool foresaw, touches, is_transfer;
unsigned steps, refused, accesses, wrong, traps, found_again, paths, paths_right;
std::uint8_t refused_code[512][15];

void complain(const char* what, std::uint64_t got, std::uint64_t expected) {
    if (wrong++ > 20) return;
    printf("step %u:", steps);
    for (unsigned k = 0; k < 15; k++) printf(" %02x", reinterpret_cast<const std::uint8_t*>(at)[k]);
    printf(": %s is %lx, foreseen was %lx\n", what, got, expected);
}

void compare() {
    if (actual.pc != foreseen.pc) complain("pc", actual.pc, foreseen.pc);
    for (unsigned r = 0; r < 16; r++)
        if (foreseen.is_known(r) && foreseen.r[r] != actual.r[r])
            complain("a register", actual.r[r], foreseen.r[r]);
    std::uint8_t flags = foreseen.flags_known;
    if ((foreseen.flags & flags) != (actual.flags & flags))
        complain("flags", actual.flags & flags, foreseen.flags & flags);
    for (unsigned v = 0; v < 16; v++)
        if (foreseen.v_known >> v & 1 && !(foreseen.v[v] == actual.v[v]))
            complain("a vector", actual.v[v].low, foreseen.v[v].low);
    for (unsigned i = 0; i < memory.count; i++) {
        const OwnMemory::Stored& one = memory.stored[i];
        std::uint64_t value = 0;
        memcpy(&value, reinterpret_cast<void*>(one.address), one.bytes);
        std::uint64_t mask = ~std::uint64_t{0} >> (64 - 8 * one.bytes);
        if (value != (one.value & mask)) complain("memory", value, one.value & mask);
    }
    if (!touches) return;
    if (expected_trap != actual.pc) complain("the place of a trap", actual.pc, expected_trap);
    std::uint64_t found = x64_instruction_before(memory, actual, touched.address & ~std::uint64_t{7});
    if (is_transfer) return;
    traps++;
    found_again += found == at;
}

void compare_path() {
    void* frames[64];
    int count = backtrace(frames, 64), first = 0;
    while (first < count && reinterpret_cast<std::uint64_t>(frames[first]) != actual.pc) first++;
    if (first == count) return;  // not seen through the signal's own frame
    std::uint64_t back[48];
    unsigned got = unwinder.walk(memory, actual, Machine::find_unwind_table, back, 48);
    auto expected = static_cast<unsigned>(count - first - 1);
    paths++;
    bool same = got >= expected - (expected > 0);  // where it ends may differ by the start-up code
    for (unsigned i = 0; same && i < got && i < expected; i++)
        same = back[i] == reinterpret_cast<std::uint64_t>(frames[first + 1 + static_cast<int>(i)]);
    paths_right += same;
}

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
    bool passed = wrong == 0 && refused < steps / 20 && accesses > steps / 8 &&
                  found_again > traps - traps / 50 && paths_right >= paths - paths / 20;
    fflush(stdout);
    _exit(passed ? 0 : 1);
}

[[gnu::force_align_arg_pointer]] void handle(int, siginfo_t*, void* raw) {
    auto& context = *static_cast<ucontext_t*>(raw);
    if (steps >= kMostSteps) end();
    Machine::read_state(actual, context);
    if (foresaw) compare();
    if (steps % 37 == 0) compare_path();
    steps++;
    foreseen = actual;
    memory.count = 0;
    X64Ahead<OwnMemory> ahead(foreseen, memory, &table);
    at = actual.pc;
    Step step = ahead.step();
    foresaw = step != Step::stop;
    touches = step == Step::access;
    if (!foresaw && refused < 512) memcpy(refused_code[refused], reinterpret_cast<void*>(at), 15);
    refused += !foresaw;
    accesses += touches;
    if (touches) {
        touched = ahead.touched();
        expected_trap = ahead.next();
        is_transfer = ahead.is_call() || ahead.is_return() || ahead.is_jump();
    }
}

[[gnu::force_align_arg_pointer]] void handle_fault(int signal, siginfo_t*, void* context) {
    if (!Machine::recover(nullptr, signal, *static_cast<ucontext_t*>(context))) {
        printf("fault at %lx, step %u\n", Machine::pc(*static_cast<ucontext_t*>(context)), steps);
        fflush(stdout);
        abort();
    }
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

[[gnu::noinline]] double workload(int rounds) {
    double sum = 0;
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
}  // namespace revisit::watch

using namespace revisit::watch;

int main() {
    void* first[2];
    backtrace(first, 2);  // loads what it needs now
    static char stack[1 << 18];
    stack_t alternate = {};
    alternate.ss_sp = stack;
    alternate.ss_size = sizeof stack;
    sigaltstack(&alternate, nullptr);
    struct sigaction action = {};
    action.sa_sigaction = handle;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    sigaction(SIGTRAP, &action, nullptr);
    action.sa_sigaction = handle_fault;
    sigaction(SIGSEGV, &action, nullptr);
    __asm__ volatile("pushfq\n orq $0x100, (%%rsp)\n popfq" ::: "memory", "cc");
    return workload(1000000) > 0 ? 1 : 2;  // it is ended before
}
