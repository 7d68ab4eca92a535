// The library's own start and end, in the program and in its children.
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "watch/preload/stand_in.h"
#include "watch/preload/thread.h"

namespace revisit::watch {

constinit Process process;  // before any constructor runs
__thread Thread* self __attribute__((tls_model("initial-exec")));

#ifdef REVISIT_STATIC
__attribute__((used)) constexpr char kLinkedMark[] = REVISIT_LINKED_MARK;
#endif

namespace {

bool read_settings(const char* text) {
    std::uint64_t* field = &process.settings.period;
    for (unsigned i = 0; i < kSettings; i++) {
        char* end;
        field[i] = strtoull(text, &end, 10);
        if (end == text || (*end != ',' && *end != 0)) return false;
        if (*end == 0) return i == kSettings - 1;
        text = end + 1;
    }
    return false;
}

bool open_stream() {
    const char* path = getenv(REVISIT_STREAM_ENV);
    if (path == nullptr) return false;
    long file =
        system_call(SYS_openat, -100, reinterpret_cast<long>(path), 02000002 /* O_RDWR, CLOEXEC */);
    if (file < 0) return false;
    long at =
        system_call(SYS_mmap, 0, REVISIT_STREAM_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    system_call(SYS_close, file);
    if (at < 0 && at > -4096) return false;
    process.stream = reinterpret_cast<revisit_stream*>(at);
    return revisit_stream_valid(process.stream);
}

// The command line as the kernel keeps it.
unsigned command_line(char* text, unsigned most) {
    long file = system_call(SYS_openat, -100, reinterpret_cast<long>("/proc/self/cmdline"), 02000000);
    if (file < 0) return 0;
    long got, at = 0;
    while (at < static_cast<long>(most) &&
           (got = system_call(SYS_read, file, reinterpret_cast<long>(text + at), most - at)) > 0)
        at += got;
    system_call(SYS_close, file);
    return static_cast<unsigned>(at);
}

// What it costs, outside of the handler, to touch a watched word `touches` times with a trap at the
// last: the middle one of a few.
std::uint64_t cost_of_touching(Thread& t, std::uint64_t touches) {
    static volatile std::uint64_t touched __attribute__((aligned(64)));
    constexpr unsigned kTimes = 15;
    std::uint64_t cost[kTimes];
    for (unsigned i = 0; i < kTimes; i++) {
        perf_event_attr attributes;
        memset(&attributes, 0, sizeof attributes);
        attributes.type = PERF_TYPE_BREAKPOINT;
        attributes.bp_type = HW_BREAKPOINT_RW;
        attributes.bp_addr = reinterpret_cast<std::uint64_t>(&touched);
        attributes.bp_len = HW_BREAKPOINT_LEN_8;
        attributes.sample_period = touches;
        if (!t.stretch.event.open(attributes, kStretchData)) {
            process.no_watchpoints = t.stretch.event.error();
            return 0;
        }
        std::uint64_t before = thread_time();
        for (std::uint64_t k = 0; k < touches; k++) touched = 1;
        std::uint64_t after = thread_time();
        t.stretch.event.close();
        std::uint64_t again = thread_time(), clock = 2 * (thread_time() - again);
        std::uint64_t one = after - before > clock ? after - before - clock : 0;
        unsigned at = i;
        for (; at > 0 && cost[at - 1] > one; at--) cost[at] = cost[at - 1];
        cost[at] = one;
    }
    return cost[kTimes / 2];
}

void calibrate(Thread& t) {
    process.calibrates = true;
    process.trap_cost = cost_of_touching(t, 1);
    std::uint64_t with_a_step = cost_of_touching(t, 2);
    process.step_cost = with_a_step > process.trap_cost ? with_a_step - process.trap_cost : 0;
    process.calibrates = false;
}

// How many filters there are on this process's system calls.
std::uint64_t filters() {
    char text[4096];
    long file = system_call(SYS_openat, -100, reinterpret_cast<long>("/proc/self/status"), 02000000);
    long got =
        file < 0 ? 0 : system_call(SYS_read, file, reinterpret_cast<long>(text), sizeof text - 1);
    if (file >= 0) system_call(SYS_close, file);
    text[got > 0 ? got : 0] = 0;
    const char* found = strstr(text, "Seccomp_filters:");
    return found == nullptr ? 0 : strtoull(found + 16, nullptr, 10);
}

void install_handlers() {
    for (int signal : kOurSignals) real_sigaction(signal, nullptr, &process.program_action[signal]);
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_sigaction = handle_trap;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART;
    sigfillset(&action.sa_mask);
    for (int signal : kOurSignals)
        if (is_fault(signal)) sigdelset(&action.sa_mask, signal);
    real_sigaction(SIGTRAP, &action, nullptr);
    for (int signal : kOurSignals)
        if (is_fault(signal)) install_fault_handler(signal);
}

void introduce(Thread& t, std::uint64_t parent) {
    static char text[REVISIT_TEXT_MAX];
    unsigned bytes = command_line(text, sizeof text);
    if (!t.writer.room(4 + REVISIT_TEXT_MAX / 8)) return;
    t.writer.put(REVISIT_RECORD(REVISIT_PROCESS, bytes));
    t.writer.put(std::uint64_t(process.pid));
    t.writer.put(parent);
    t.writer.put_text(text, bytes);
}

// A sample in the middle of this would write to a slot that is no longer ours.
void before_fork() {
    Thread* t = self;
    if (!process.active || t == nullptr) return;
    t->outside = true;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    t->writer.hand_over();
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    t->outside = false;
    if (t->sampler.is_timer())  // its signal would make a long fork begin again, and again
        t->sampler.disable();
    else
        t->sampler.enable();
}

void after_fork_in_parent() {
    if (process.active && self != nullptr && self->sampler.is_timer()) self->sampler.enable();
}

void after_fork_in_child() {
    if (!process.active) return;
    Thread* t = self;
    process.pid = system_call(SYS_getpid);
    if (t != nullptr) {  // the events are the parent's thread's; only the files are ours to close
        t->sampler.close_copy();
        t->stretch.event.close_copy();
        for (unsigned i = 0; i < kMostWatchpoints; i++) {
            t->watch[i].event.close_copy();
            t->reservoir.release(i);
        }
    }
    if (t == nullptr || !(process.stream->want & REVISIT_WANT_CHILDREN)) {
        process.active = false;
        return;
    }
    t->forget_the_past();
    t->identity = system_call(SYS_gettid);
    std::uint64_t parent = process.producer;
    process.producer = revisit_producer_start(process.stream);
    t->writer.start(process.stream, process.producer, static_cast<std::uint32_t>(t->number));
    introduce(*t, parent);
    t->writer.hand_over();
    start_sampling(*t);
}

// A parent has filtered the system calls of this program before it began: what sampling needs may be
// punished by death. (Filters that the analyzer has as well are known to let it through.)
void tell_of_filters() {
    Thread* t = make_thread();
    if (t == nullptr) return;
    introduce(*t, REVISIT_NO_PARENT);
    write_note(*t, REVISIT_NOTE_RESTRICTED, 0);
    t->writer.hand_over();
}

__attribute__((constructor)) void start() {
    const char* settings = getenv(kSettingsVariable);
    if (settings == nullptr || !read_settings(settings) || !open_stream()) return;
    Event::refuse = process.settings.refuse;
    process.pid = system_call(SYS_getpid);
    process.producer = revisit_producer_start(process.stream);
    if (filters() > process.settings.filters) return tell_of_filters();
    Thread* t = make_thread();
    if (t == nullptr) return;
    introduce(*t, REVISIT_NO_PARENT);
    write_modules(*t);
    write_stack(*t);
    t->writer.hand_over();  // who this is must be known before another thread's first words
    install_handlers();
    self = t;
    calibrate(*t);
    process.active = true;
    pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
    start_sampling(*t);
}

__attribute__((destructor)) void end() {
    end_all();
}

}  // namespace

void end_all() {
    if (process.active && self != nullptr && process.pid == system_call(SYS_getpid))
        end_sampling(*self, thread_time());
}

}  // namespace revisit::watch
