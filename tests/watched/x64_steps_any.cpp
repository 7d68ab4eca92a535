// Steps through any program: a library for LD_PRELOAD. See x64_steps.h.
//
// A timer of processor time interrupts the program, as the sampler would; from there the look-ahead
// goes as far as it can, and where and why it ended is counted. Then the program is stepped through
// some thousand instructions, each of which is foreseen. At the end it says, in the file that
// REVISIT_STEPS names, how many of these samples had an address, what they ended at, and what was
// foreseen wrongly.
#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>
#include <time.h>

#include "own_memory.h"
#include "x64_steps.h"

namespace revisit::machine {
namespace {

constexpr unsigned kAccesses = 1024, kInstructions = 20000, kKinds = 4096;
constexpr unsigned kMicroseconds = 2000;

unsigned samples, with_address, whole, left, burst = 2000, samples_most = 1000;
long looked_at;
pid_t owner;
timer_t timer;
char output[256];

// Where look-aheads ended: before the first access, or after.
struct Ended {
    std::uint64_t pc = 0;
    unsigned before = 0, after = 0;
    bool is_unknown = false;  // the instruction, not a value
    std::uint8_t code[15];
} ended[kKinds];

LookMemory ahead_memory;
X64State ahead_state;

void sample(const ucontext_t& context) {
    find_wide(context);
    read_actual(context);
    ahead_state = actual;
    ahead_memory.start();
    X64Ahead<LookMemory> ahead(ahead_state, ahead_memory, &look_table);
    unsigned met = 0;
    Step step = ahead.run(kInstructions, [&] { return ++met < kAccesses; });
    samples++;
    with_address += met > 0;
    looked_at += met;
    if (step != Step::stop) {
        whole++;
        return;
    }
    std::uint64_t pc = ahead_state.pc;
    for (unsigned k = 0; k < kKinds; k++) {
        Ended& one = ended[(pc * 31 + k) % kKinds];
        if (one.pc != 0 && one.pc != pc) continue;
        if (one.pc == 0) {
            std::uint8_t code[15] = {};
            unsigned bytes = ahead_memory.fetch(pc, code);
            memcpy(one.code, code, sizeof code);
            one.is_unknown = decode_x64(code, bytes).length == 0;
            one.pc = pc;
        }
        (met > 0 ? one.after : one.before)++;
        return;
    }
}

[[gnu::force_align_arg_pointer]] void handle(int signal, siginfo_t*, void* raw) {
    keep_wide();
    auto& context = *static_cast<ucontext_t*>(raw);
    greg_t& flags = context.uc_mcontext.gregs[REG_EFL];
    if (signal == SIGTRAP) {
        step(context);
        if (left > 0) left--;
        if (left == 0) flags &= ~greg_t{kTrapFlag};
    } else if (left == 0 && samples < samples_most && getpid() == owner) {
        sample(context);
        foresaw = false;
        left = burst;
        if (burst > 0) flags |= greg_t{kTrapFlag};
    }
    put_wide_back();
}

[[gnu::constructor]] void begin() {
    const char* name = getenv("REVISIT_STEPS");
    if (name == nullptr) return;
    snprintf(output, sizeof output, "%s", name);
    if (const char* text = getenv("REVISIT_STEPS_BURST")) burst = static_cast<unsigned>(atoi(text));
    if (const char* text = getenv("REVISIT_STEPS_SAMPLES"))
        samples_most = static_cast<unsigned>(atoi(text));
    unsetenv("LD_PRELOAD");  // not into children
    owner = getpid();
    prepare(handle);
    // Of a signal that programs leave alone.
    handle_by(SIGRTMIN + 9, handle);
    sigevent event = {};
    event.sigev_notify = SIGEV_SIGNAL;
    event.sigev_signo = SIGRTMIN + 9;
    itimerspec every{{0, 1000 * kMicroseconds}, {0, 1000 * kMicroseconds}};
    if (timer_create(CLOCK_PROCESS_CPUTIME_ID, &event, &timer) == 0)
        timer_settime(timer, 0, &every, nullptr);
}

void say(int file, const char* format, ...) {
    char text[512];
    va_list arguments;
    va_start(arguments, format);
    int used = vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    [[maybe_unused]] auto written = write(file, text, static_cast<unsigned>(used));
}

[[gnu::destructor]] void end() {
    if (getpid() != owner || output[0] == 0) return;
    timer_delete(timer);
    int file = open(output, O_WRONLY | O_CREAT | O_APPEND, 0644);
    say(file, "%s: %u samples, %u with an address (%.1f %%), %u to the end, %.0f accesses each; ",
        program_invocation_short_name, samples, with_address, 100.0 * with_address / (samples + 1e-9),
        whole, static_cast<double>(looked_at) / (samples + 1e-9));
    say(file, "%u steps, %u refused, %u wrong; of %u traps %u found again; of %u paths %u right\n",
        steps, refused, wrong, traps, found_again, paths, paths_right);
    for (unsigned most = 0; most < 25; most++) {
        Ended* next = nullptr;
        for (Ended& one : ended)
            if (one.before + one.after > 0 &&
                (next == nullptr || one.before * 1000 + one.after > next->before * 1000 + next->after))
                next = &one;
        if (next == nullptr) break;
        Dl_info place{};
        dladdr(reinterpret_cast<void*>(next->pc), &place);
        say(file, "  %u before, %u after: %s %s+%lx %s:", next->before, next->after,
            next->is_unknown ? "instruction" : "value", place.dli_fname ? place.dli_fname : "?",
            next->pc - reinterpret_cast<std::uint64_t>(place.dli_fbase),
            place.dli_sname ? place.dli_sname : "");
        for (unsigned k = 0; k < 15; k++) say(file, " %02x", next->code[k]);
        say(file, "\n");
        next->before = next->after = 0;
    }
    for (unsigned i = 0; i < refused && i < 512; i++) {
        bool is_new = true;
        for (unsigned k = 0; k < i; k++) is_new &= memcmp(refused_code[k], refused_code[i], 3) != 0;
        if (!is_new) continue;
        say(file, "  refused");
        for (unsigned k = 0; k < 15; k++) say(file, " %02x", refused_code[i][k]);
        say(file, "\n");
    }
    for (unsigned i = 0; i < kPathsKept / 4 && i < paths - paths_right; i++) {
        const WrongPath& one = wrong_paths[i];
        Dl_info place{};
        dladdr(reinterpret_cast<void*>(one.last), &place);
        say(file, "  path of %u instead of %u calls, wrong after %u: from %s+%lx %s\n", one.got,
            one.expected, one.at, place.dli_fname ? place.dli_fname : "?",
            one.last - reinterpret_cast<std::uint64_t>(place.dli_fbase),
            place.dli_sname ? place.dli_sname : "");
    }
    close(file);
}

}  // namespace
}  // namespace revisit::machine
