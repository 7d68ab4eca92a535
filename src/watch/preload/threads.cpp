// Threads of the program: what belongs to each is made when it starts and used again when it has ended.
//
// A thread gets an alternate signal stack, so that its own may be as small as it likes. The program's
// wishes about that stack are kept: one that is large enough is used by both, a small one is the
// program's in name only, and its handlers run on ours.
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <new>

#include "watch/preload/thread.h"

namespace revisit::watch {
namespace {

Thread* all_threads;  // newest first; none ever leaves

constexpr stack_t kNoStack = {nullptr, SS_DISABLE, 0};

long set_signal_stack(const stack_t* wanted, stack_t* before) {
    return system_call(SYS_sigaltstack, reinterpret_cast<long>(wanted), reinterpret_cast<long>(before));
}

Thread* take_a_free_one() {
    for (Thread* t = __atomic_load_n(&all_threads, __ATOMIC_ACQUIRE); t != nullptr; t = t->next) {
        bool is_free = false;
        if (__atomic_compare_exchange_n(&t->in_use, &is_free, true, false, __ATOMIC_ACQUIRE,
                                        __ATOMIC_RELAXED))
            return t;
    }
    return nullptr;
}

Thread* map_a_new_one() {
    void* memory = map_memory(sizeof(Thread), PROT_READ | PROT_WRITE);
    void* stack = map_memory(kSignalStack, PROT_READ | PROT_WRITE);
    if (memory == nullptr || stack == nullptr) return nullptr;
    auto* t = new (memory) Thread;
    t->signal_stack = stack;
    t->in_use = true;
    t->kept.start();
    t->next = __atomic_load_n(&all_threads, __ATOMIC_RELAXED);
    while (!__atomic_compare_exchange_n(&all_threads, &t->next, t, true, __ATOMIC_RELEASE,
                                        __ATOMIC_RELAXED)) {
    }
    return t;
}

}  // namespace

Thread* make_thread() {
    Thread* t = take_a_free_one();
    if (t == nullptr) t = map_a_new_one();
    if (t == nullptr) return nullptr;
    t->identity = system_call(SYS_gettid);
    t->number = __atomic_fetch_add(&process.threads, 1, __ATOMIC_RELAXED);
    t->reservoir = Reservoir(static_cast<unsigned>(process.settings.watchpoints));
    t->random = Random(process.settings.seed * 0x9e3779b97f4a7c15 + t->number + 1);
    t->forget_the_past();
    t->writer.start(process.stream, process.producer, static_cast<std::uint32_t>(t->number));
    stack_t own = {t->signal_stack, 0, kSignalStack};
    set_signal_stack(nullptr, &t->program_stack);
    if (t->program_stack.ss_flags & SS_DISABLE || t->program_stack.ss_size < kSignalStack)
        set_signal_stack(&own, nullptr);
    return t;
}

// The thread goes on for a little, without us.
void leave_thread(Thread& t) {
    end_sampling(t, thread_time());
    stack_t now;
    set_signal_stack(nullptr, &now);
    if (now.ss_sp == t.signal_stack) {
        const stack_t& wanted = t.program_stack.ss_flags & SS_DISABLE ? kNoStack : t.program_stack;
        if (set_signal_stack(&wanted, nullptr) != 0) return;  // it is running there: not for others
    }
    self = nullptr;
    __atomic_store_n(&t.in_use, false, __ATOMIC_RELEASE);
}

// Ends sampling in all threads, from one of them: the program is about to forbid what that needs.
void stop_everywhere() {
    if (!process.active || process.pid != system_call(SYS_getpid)) return;  // vfork shares our memory
    if (!__atomic_exchange_n(&process.active, false, __ATOMIC_SEQ_CST)) return;
    for (Thread* t = __atomic_load_n(&all_threads, __ATOMIC_ACQUIRE); t != nullptr; t = t->next) {
        if (!__atomic_load_n(&t->in_use, __ATOMIC_ACQUIRE)) continue;
        constexpr int kPatience = 10000;  // a handler ends within a millisecond of its time
        for (int i = 0; t != self && i < kPatience; i++) {
            if (!__atomic_load_n(&t->in_handler, __ATOMIC_ACQUIRE)) break;
            system_call(SYS_sched_yield);
        }
        if (t == self) write_note(*t, REVISIT_NOTE_RESTRICTED, 0);
        end_sampling(*t, thread_time_of(t->identity));
    }
}

// sigaltstack, as the program sees it.
int change_signal_stack(Thread& t, const stack_t* wanted, stack_t* old) {
    stack_t now;
    set_signal_stack(nullptr, &now);
    if (old != nullptr) {
        *old = t.program_stack;
        if (now.ss_flags & SS_ONSTACK && !(old->ss_flags & SS_DISABLE)) old->ss_flags |= SS_ONSTACK;
    }
    if (wanted == nullptr) return 0;
    if (now.ss_flags & SS_ONSTACK) return EPERM;
    bool disables = wanted->ss_flags & SS_DISABLE;
#if defined(__aarch64__)
    constexpr std::size_t kLeast = 5120;
#else
    constexpr std::size_t kLeast = 2048;
#endif
    if (!disables && wanted->ss_size < kLeast) return ENOMEM;
    stack_t own = {t.signal_stack, 0, kSignalStack};
    bool both = !disables && wanted->ss_size >= kSignalStack;
    if (long failed = set_signal_stack(both ? wanted : &own, nullptr); failed != 0)
        return static_cast<int>(-failed);
    t.program_stack = disables ? kNoStack : *wanted;
    return 0;
}

namespace {

struct Start {
    void* (*function)(void*);
    void* argument;
};

pthread_key_t thread_key;
pthread_once_t key_once = PTHREAD_ONCE_INIT;

void thread_ends(void*) {
    if (self != nullptr && process.active) leave_thread(*self);
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

}  // namespace

int create_thread(CreateThread real, pthread_t* thread, const pthread_attr_t* attributes,
                  void* (*function)(void*), void* argument) {
    if (!process.active) return real(thread, attributes, function, argument);
    auto* start = static_cast<Start*>(malloc(sizeof(Start)));
    if (start == nullptr) return EAGAIN;
    *start = {function, argument};
    int result = real(thread, attributes, thread_starts, start);
    if (result != 0) free(start);
    return result;
}

}  // namespace revisit::watch
