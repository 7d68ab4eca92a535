// The library's own start and end, and the calls it stands in for: threads, forks, ends, signals.
//
// The program must not notice. SIGTRAP is ours while it runs: a program that masks all signals keeps
// that one open, one that sets a handler for it gets it for its own traps only.
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <new>

#include "watch/preload/thread.h"

namespace revisit::watch {

constinit Process process;  // before any constructor runs
__thread Thread* self __attribute__((tls_model("initial-exec")));

namespace {

template <class Function>
Function next_one(const char* name) {
    return reinterpret_cast<Function>(dlsym(RTLD_NEXT, name));
}

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
        attributes.sig_data = kStretchData;
        if (!t.stretch.event.open(attributes)) return 0;
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

constexpr int kOurSignals[] = {SIGTRAP, SIGSEGV, SIGBUS, SIGILL};

bool is_ours(int signal) {
    for (int one : kOurSignals)
        if (signal == one) return true;
    return false;
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

void end_all() {
    if (process.active && self != nullptr && process.pid == system_call(SYS_getpid))
        end_sampling(*self);
}

void before_fork() {
    if (process.active && self != nullptr) self->writer.hand_over();
}

void after_fork_in_child() {
    if (!process.active) return;
    Thread* t = self;
    process.pid = system_call(SYS_getpid);
    if (t == nullptr || !(process.stream->want & REVISIT_WANT_CHILDREN)) {
        process.active = false;
        return;
    }
    // The events are the parent's thread's; only the files are ours to close.
    t->sampler.close();
    t->stretch.event.close();
    t->stretch.waits = false;
    for (unsigned i = 0; i < kMostWatchpoints; i++) {
        t->watch[i].event.close();
        t->reservoir.release(i);
    }
    t->recording = 0;
    t->counts = {};
    t->ended = false;
    std::uint64_t parent = process.producer;
    process.producer = revisit_producer_start(process.stream);
    t->writer.start(process.stream, process.producer, static_cast<std::uint32_t>(t->number));
    introduce(*t, parent);
    t->writer.hand_over();
    start_sampling(*t);
}

__attribute__((constructor)) void start() {
    const char* settings = getenv(kSettingsVariable);
    if (settings == nullptr || !read_settings(settings) || !open_stream()) return;
    process.pid = system_call(SYS_getpid);
    process.producer = revisit_producer_start(process.stream);
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
    pthread_atfork(before_fork, nullptr, after_fork_in_child);
    start_sampling(*t);
}

__attribute__((destructor)) void end() {
    end_all();
}

struct Start {
    void* (*function)(void*);
    void* argument;
};

pthread_key_t thread_key;
pthread_once_t key_once = PTHREAD_ONCE_INIT;

void thread_ends(void*) {
    if (self != nullptr && process.active) end_sampling(*self);
}

void make_key() {
    pthread_key_create(&thread_key, thread_ends);
}

void* thread_starts(void* argument) {
    Start start = *static_cast<Start*>(argument);
    free(argument);
    if (process.active && self == nullptr)
        if (Thread* t = make_thread(); t != nullptr) {
            pthread_once(&key_once, make_key);
            pthread_setspecific(thread_key, t);
            write_stack(*t);
            self = t;
            start_sampling(*t);
        }
    return start.function(start.argument);
}

// Blocking everything must not block our signal.
const sigset_t* without_trap(int how, const sigset_t* set, sigset_t& copy) {
    if (!process.active || set == nullptr || how == SIG_UNBLOCK) return set;
    copy = *set;
    sigdelset(&copy, SIGTRAP);
    return &copy;
}

}  // namespace

int real_sigaction(int signal, const struct sigaction* action, struct sigaction* old) {
    static auto real = next_one<int (*)(int, const struct sigaction*, struct sigaction*)>("sigaction");
    return real(signal, action, old);
}

Thread* make_thread() {
    void* memory = map_memory(sizeof(Thread), PROT_READ | PROT_WRITE);
    void* stack = map_memory(kSignalStack, PROT_READ | PROT_WRITE);
    if (memory == nullptr || stack == nullptr) return nullptr;
    auto* t = new (memory) Thread;
    t->signal_stack = stack;
    t->number = __atomic_fetch_add(&process.threads, 1, __ATOMIC_RELAXED);
    t->reservoir = Reservoir(static_cast<unsigned>(process.settings.watchpoints));
    t->random = Random(process.settings.seed * 0x9e3779b97f4a7c15 + t->number + 1);
    t->kept.start();
    t->writer.start(process.stream, process.producer, static_cast<std::uint32_t>(t->number));
    stack_t own = {};
    own.ss_sp = stack;
    own.ss_size = kSignalStack;
    stack_t before = {};
    sigaltstack(nullptr, &before);
    if (before.ss_flags & SS_DISABLE) sigaltstack(&own, nullptr);
    return t;
}

}  // namespace revisit::watch

using namespace revisit::watch;

#define REVISIT_STANDS_IN extern "C" __attribute__((visibility("default")))

REVISIT_STANDS_IN int pthread_create(pthread_t* thread, const pthread_attr_t* attributes,
                                     void* (*function)(void*), void* argument) {
    static auto real =
        next_one<int (*)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*)>("pthread_create");
    if (!process.active) return real(thread, attributes, function, argument);
    auto* start = static_cast<Start*>(malloc(sizeof(Start)));
    if (start == nullptr) return EAGAIN;
    *start = {function, argument};
    int result = real(thread, attributes, thread_starts, start);
    if (result != 0) free(start);
    return result;
}

REVISIT_STANDS_IN int pthread_sigmask(int how, const sigset_t* set, sigset_t* old) noexcept {
    static auto real = next_one<int (*)(int, const sigset_t*, sigset_t*)>("pthread_sigmask");
    sigset_t copy;
    return real(how, without_trap(how, set, copy), old);
}

REVISIT_STANDS_IN int sigprocmask(int how, const sigset_t* set, sigset_t* old) noexcept {
    static auto real = next_one<int (*)(int, const sigset_t*, sigset_t*)>("sigprocmask");
    sigset_t copy;
    return real(how, without_trap(how, set, copy), old);
}

REVISIT_STANDS_IN int sigaction(int signal, const struct sigaction* action,
                                struct sigaction* old) noexcept {
    if (!process.active) return real_sigaction(signal, action, old);
    if (is_ours(signal)) {
        struct sigaction before = process.program_action[signal];
        if (action != nullptr) {
            process.program_action[signal] = *action;
            if (is_fault(signal)) install_fault_handler(signal);
        }
        if (old != nullptr) *old = before;
        return 0;
    }
    if (action == nullptr) return real_sigaction(signal, action, old);
    struct sigaction copy = *action;
    sigdelset(&copy.sa_mask, SIGTRAP);
    return real_sigaction(signal, &copy, old);
}

REVISIT_STANDS_IN void (*signal(int signal, void (*handler)(int)) noexcept)(int) {
    static auto real = next_one<void (*(*)(int, void (*)(int)))(int)>("signal");
    if (!is_ours(signal) || !process.active) return real(signal, handler);
    struct sigaction action, before;
    memset(&action, 0, sizeof action);
    action.sa_handler = handler;
    action.sa_flags = SA_RESTART;
    sigaction(signal, &action, &before);
    return before.sa_handler;
}

REVISIT_STANDS_IN [[noreturn]] void _exit(int status) {
    end_all();
    system_call(SYS_exit_group, status);
    __builtin_unreachable();
}

REVISIT_STANDS_IN [[noreturn]] void _Exit(int status) noexcept {
    _exit(status);
}
