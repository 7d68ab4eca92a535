// The x86_64 look-ahead against the processor, an instruction at a time.
//
// The trap flag sends a signal after every instruction; before the next the interpreter says what it
// will do. After it, which instruction has touched a word must be found again from the state alone, and
// the calls that lead there must be those that the C library's own unwinder finds. Used by a program
// that steps through itself (x64_steps.cpp) and a library that steps through any (x64_steps_any.cpp).
// Nothing but the C library, so that they can be compiled for x86_64 elsewhere and run by an emulator.
#pragma once

#include <execinfo.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <map>
#include <string>

#include "x64_context.h"

namespace revisit::machine {
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

X64Table table(true), look_table;
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
    char text[160];
    int used = snprintf(text, sizeof text, "step %u:", steps);
    for (unsigned k = 0; k < 15; k++)
        used += snprintf(text + used, sizeof text - static_cast<unsigned>(used), " %02x",
                         reinterpret_cast<const std::uint8_t*>(at)[k]);
    used += snprintf(text + used, sizeof text - static_cast<unsigned>(used),
                     ": %s is %lx, foreseen was %lx\n", what, got, expected);
    [[maybe_unused]] auto written = write(2, text, static_cast<unsigned>(used));
}

void compare() {
    if (actual.pc != foreseen.pc) complain("pc", actual.pc, foreseen.pc);
    for (unsigned r = 0; r < 16; r++)
        if (foreseen.is_known(r) && foreseen.r[r] != actual.r[r])
            complain("a register", actual.r[r], foreseen.r[r]);
    // While an instruction repeats itself the processor leaves the flags as they were.
    std::uint8_t flags = actual.pc == at ? 0 : foreseen.flags_known;
    if ((foreseen.flags & flags) != (actual.flags & flags))
        complain("flags", actual.flags & flags, foreseen.flags & flags);
    for (unsigned v = 0; v < 32; v++)
        for (unsigned w = 0; w < 8; w++)
            if (foreseen.v_known[v] & actual.v_known[v] & 1u << w / 2 &&
                foreseen.v[v].word[w] != actual.v[v].word[w])
                complain("a vector", actual.v[v].word[w], foreseen.v[v].word[w]);
    for (unsigned k = 0; k < 8; k++)
        if (foreseen.k_known & actual.k_known & 1u << k && foreseen.k[k] != actual.k[k])
            complain("a mask", actual.k[k], foreseen.k[k]);
    for (unsigned i = 0; i < memory.count; i++) {
        const OwnMemory::Stored& one = memory.stored[i];
        std::uint64_t value = 0;
        memcpy(&value, reinterpret_cast<void*>(one.address), one.bytes);
        std::uint64_t mask = ~std::uint64_t{0} >> (64 - 8 * one.bytes);
        bool is_overwritten = false;  // by a later element of a scatter
        for (unsigned k = i + 1; k < memory.count; k++)
            is_overwritten |= memory.stored[k].address < one.address + one.bytes &&
                              one.address < memory.stored[k].address + memory.stored[k].bytes;
        if (value != (one.value & mask) && !is_overwritten) complain("memory", value, one.value & mask);
    }
    if (!touches) return;
    if (expected_trap != actual.pc) complain("the place of a trap", actual.pc, expected_trap);
    std::uint64_t found = x64_instruction_before(memory, actual, touched.address & ~std::uint64_t{7});
    if (is_transfer) return;
    traps++;
    found_again += found == at;
}

// Where a path went wrong: after `at` calls, the last of which is `last`.
constexpr unsigned kPathsKept = 64;
struct WrongPath {
    std::uint64_t pc, last;
    unsigned got, expected, at;
} wrong_paths[kPathsKept];

void compare_path() {
    void* frames[64];
    int count = backtrace(frames, 64), first = 0;
    while (first < count && reinterpret_cast<std::uint64_t>(frames[first]) != actual.pc) first++;
    if (first == count) return;  // not seen through the signal's own frame
    std::uint64_t back[48];
    unsigned got = unwinder.walk(memory, actual, Machine::find_unwind_table, back, 48);
    auto expected = static_cast<unsigned>(count - first - 1);
    paths++;
    // Where it ends may differ by the start-up code.
    bool same = got == 48 || got >= expected - (expected > 0);
    for (unsigned i = 0; same && i < got && i < expected; i++)
        same = back[i] == reinterpret_cast<std::uint64_t>(frames[first + 1 + static_cast<int>(i)]);
    paths_right += same;
    if (same || paths - paths_right > kPathsKept) return;
    WrongPath& one = wrong_paths[paths - paths_right - 1];
    one.pc = actual.pc;
    one.got = got;
    one.expected = expected;
    one.at = 0;
    while (one.at < got && one.at < expected &&
           back[one.at] ==
               reinterpret_cast<std::uint64_t>(frames[first + 1 + static_cast<int>(one.at)]))
        one.at++;
    one.last = one.at > 0 ? back[one.at - 1] : actual.pc;
}

// An emulator may keep but the old part of vector registers for a signal, and would lose what this
// handler does to the rest: it is read, and put back, by hand.
alignas(32) std::uint8_t wide[16][32];
bool wide_by_hand;

#define REVISIT_EACH_VECTOR(move)                                                                     \
    move(0) move(1) move(2) move(3) move(4) move(5) move(6) move(7) move(8) move(9) move(10) move(11) \
        move(12) move(13) move(14) move(15)
#define REVISIT_KEEP(n) "vmovdqu %%ymm" #n ", 32*" #n "(%0)\n"
#define REVISIT_PUT_BACK(n) "vmovdqu 32*" #n "(%0), %%ymm" #n "\n"

[[gnu::always_inline]] inline void keep_wide() {
    __asm__ volatile("cld");  // which an emulator may have left
    if (wide_by_hand) __asm__ volatile(REVISIT_EACH_VECTOR(REVISIT_KEEP)::"r"(wide) : "memory");
}
[[gnu::always_inline]] inline void put_wide_back() {
    if (wide_by_hand) __asm__ volatile(REVISIT_EACH_VECTOR(REVISIT_PUT_BACK)::"r"(wide) : "memory");
}

void read_actual(const ucontext_t& context) {
    Machine::read_state(actual, context);
    for (unsigned v = 0; v < 16 && wide_by_hand; v++) {
        memcpy(actual.v[v].word + 2, wide[v] + 16, 16);
        actual.v[v].word[4] = actual.v[v].word[5] = actual.v[v].word[6] = actual.v[v].word[7] = 0;
        actual.v_known[v] = 15;
    }
}

// Whether signals come without them, and there are any.
void find_wide(const ucontext_t& context) {
    unsigned magic;
    memcpy(&magic, reinterpret_cast<const char*>(context.uc_mcontext.fpregs) + 464, sizeof magic);
    wide_by_hand = magic != 0x46505853 && __builtin_cpu_supports("avx");
}

void step(const ucontext_t& context) {
    read_actual(context);
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
    if (Machine::recover(signal, *static_cast<ucontext_t*>(context))) return;
    char text[80];
    int used = snprintf(text, sizeof text, "fault at %lx, step %u\n",
                        Machine::pc(*static_cast<ucontext_t*>(context)), steps);
    [[maybe_unused]] auto written = write(2, text, static_cast<unsigned>(used));
    abort();
}

void handle_by(int signal, void (*handler)(int, siginfo_t*, void*)) {
    struct sigaction action = {};
    action.sa_sigaction = handler;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    sigaction(signal, &action, nullptr);
}

// What interrupts a step, and what all steps need.
void prepare(void (*handle)(int, siginfo_t*, void*)) {
    void* first[2];
    backtrace(first, 2);  // loads what it needs now
    static char stack[1 << 18];
    stack_t alternate = {};
    alternate.ss_sp = stack;
    alternate.ss_size = sizeof stack;
    sigaltstack(&alternate, nullptr);
    handle_by(SIGTRAP, handle);
    handle_by(SIGSEGV, handle_fault);
    handle_by(SIGBUS, handle_fault);
}

constexpr long kTrapFlag = 0x100;

}  // namespace
}  // namespace revisit::machine
