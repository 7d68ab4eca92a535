// Programs that make it hard to be in the same process with them. Each prints what must be the same
// whether it is watched or not, and works long enough to be sampled.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/hw_breakpoint.h>
#include <linux/perf_event.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <spawn.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

static unsigned table[1 << 16];

// Long enough for samples on a machine whose other programs keep the sampler waiting.
static unsigned work(int rounds) {
    unsigned sum = 0, at = 1;
    for (int r = 0; r < rounds; r++)
        for (int i = 0; i < 60000; i++) {
            at = at * 1103515245 + 12345;
            sum += table[at >> 16] += at;
        }
    return sum;
}

static void* thread_work(void* rounds) {
    unsigned own[64];
    memset(own, 0, sizeof own);
    for (int r = 0; r < (int)(size_t)rounds; r++)
        for (int i = 0; i < 10000; i++) own[i & 63] += (unsigned)i * own[(i * 7) & 63] + 1;
    return (void*)(size_t)own[5];
}

// A stack that has no room for a signal handler of ours.
static int small_stack(void) {
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    size_t least = (size_t)sysconf(_SC_THREAD_STACK_MIN);
    printf("%d\n", pthread_attr_setstacksize(&attributes, least));
    pthread_t thread;
    void* result;
    if (pthread_create(&thread, &attributes, thread_work, (void*)10000) != 0) return 1;
    pthread_join(thread, &result);
    printf("%zu\n", (size_t)result);
    return 0;
}

static sigjmp_buf back;
static volatile int faults, on_stack;
static char* own_stack;
static size_t own_stack_bytes;

static void fault(int signal) {
    stack_t now;
    sigaltstack(NULL, &now);
    on_stack += (now.ss_flags & SS_ONSTACK) != 0;
    faults += signal == SIGSEGV;
    siglongjmp(back, 1);
}

// A signal stack of its own, just large enough for its own handler, and faults that it expects.
static int own_signal_stack(void) {
    own_stack_bytes = (size_t)sysconf(_SC_MINSIGSTKSZ) + 4096;
    own_stack = malloc(own_stack_bytes);
    stack_t mine = {.ss_sp = own_stack, .ss_size = own_stack_bytes}, seen,
            tiny = {.ss_sp = own_stack, .ss_size = 64};
    printf("%d %d\n", sigaltstack(&mine, NULL), sigaltstack(&tiny, NULL) == -1 && errno == ENOMEM);
    sigaltstack(NULL, &seen);
    printf("%d %d\n", seen.ss_sp == own_stack, seen.ss_size == own_stack_bytes);
    struct sigaction action = {.sa_handler = fault, .sa_flags = SA_ONSTACK | SA_NODEFER};
    sigaction(SIGSEGV, &action, NULL);
    volatile unsigned sum = 0;
    for (volatile int i = 0; i < 50; i++) {
        if (sigsetjmp(back, 1) == 0) *(volatile int*)8 = 1;
        sum += work(20);
    }
    mine.ss_flags = SS_DISABLE;
    sigaltstack(&mine, NULL);
    sigaltstack(NULL, &seen);
    printf("%d faults, %d on the stack, %u, %d\n", faults, on_stack, sum,
           (seen.ss_flags & SS_DISABLE) != 0);
    return 0;
}

static volatile int traps;
static void trapped(int signal) {
    traps += signal == SIGTRAP;
}

// All signals masked, and SIGTRAP wanted for itself.
static int masks(void) {
    sigset_t all, before;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, &before);
    unsigned sum = work(800);
    sigprocmask(SIG_SETMASK, &before, NULL);
    struct sigaction action = {.sa_handler = trapped}, seen;
    sigaction(SIGTRAP, &action, NULL);
    for (int i = 0; i < 20; i++) {
        raise(SIGTRAP);
        sum += work(20);
    }
    sigaction(SIGTRAP, NULL, &seen);
    printf("%u, %d traps, %d\n", sum, traps, seen.sa_handler == trapped);
    signal(SIGTRAP, SIG_IGN);
    raise(SIGTRAP);
    printf("ignored\n");
    return 0;
}

// Pointers that are worth nothing once they were followed, in a thread that blocks every signal.
static void* follow(void* rounds) {
    enum { kCells = 4096 };
    static unsigned* cell[kCells];
    static unsigned value[kCells];
    unsigned sum = 0;
    for (int r = 0; r < (int)(size_t)rounds; r++) {
        for (int i = 0; i < kCells; i++) cell[i] = &value[i * 7 % kCells];
        for (int i = 0; i < kCells; i++) {
            unsigned* at = cell[i];
            cell[i] = (unsigned*)((size_t)at | (size_t)1 << 44);
            sum += * at += (unsigned)i;
        }
    }
    return (void*)(size_t)sum;
}
static int masked_thread(void) {
    sigset_t all, before;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, &before);
    pthread_t thread;
    void* result;
    if (pthread_create(&thread, NULL, follow, (void*)20000) != 0) return 1;
    pthread_join(thread, &result);
    sigprocmask(SIG_SETMASK, &before, NULL);
    printf("%zu\n", (size_t)result);
    return 0;
}

static void* forks(void* number) {
    size_t good = 0;
    for (int i = 0; i < 15; i++) {
        fflush(stdout);
        pid_t child = fork();
        if (child == 0) _exit((int)(work(10) % 2) + (int)(size_t)number);
        work(10);
        int status = 0;
        waitpid(child, &status, 0);
        good += WIFEXITED(status);
        char* arguments[] = {"true", NULL};
        char* environment[] = {NULL};
        if (posix_spawnp(&child, "true", NULL, NULL, arguments, environment) == 0)
            waitpid(child, &status, 0);
        good += WIFEXITED(status) && WEXITSTATUS(status) == 0;
        child = vfork();
        if (child == 0) _exit(3);
        waitpid(child, &status, 0);
        good += WIFEXITED(status) && WEXITSTATUS(status) == 3;
    }
    return (void*)good;
}

// Children by fork, vfork and spawn, from several threads while others work.
static int children(void) {
    pthread_t threads[3];
    for (size_t i = 0; i < 3; i++) pthread_create(&threads[i], NULL, forks, (void*)i);
    size_t good = 0;
    for (int i = 0; i < 3; i++) {
        void* result;
        pthread_join(threads[i], &result);
        good += (size_t)result;
    }
    printf("%zu\n", good);
    return 0;
}

// Threads by the hundred, at once and one after the other.
static int threads(void) {
    enum { kAtOnce = 200 };
    static pthread_t all[kAtOnce];
    size_t sum = 0;
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < kAtOnce; i++)
            pthread_create(&all[i], NULL, thread_work, (void*)(size_t)(i % 40));
        for (int i = 0; i < kAtOnce; i++) {
            void* result;
            pthread_join(all[i], &result);
            sum += (size_t)result;
        }
    }
    printf("%zu\n", sum);
    return 0;
}

// From here on what sampling needs is punished by death, in all threads.
static int restricted(int by_prctl) {
    pthread_t other;
    pthread_create(&other, NULL, thread_work, (void*)4000);
    unsigned sum = work(500);
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_perf_event_open, 4, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_ioctl, 3, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clock_gettime, 2, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_readv, 1, 0),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
    };
    struct sock_fprog program = {sizeof code / sizeof *code, code};
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    long result =
        by_prctl ? prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0)
                 : syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program);
    sum += work(800);
    void* value;
    pthread_join(other, &value);
    printf("%ld %u %zu\n", result, sum, (size_t)value);
    return 0;
}

// A program that is begun under a filter which kills for what sampling needs.
static int filters_a_child(char* self) {
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_perf_event_open, 2, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_readv, 1, 0),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
    };
    struct sock_fprog program = {sizeof code / sizeof *code, code};
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0);
        execl(self, self, "masks", NULL);
        _exit(9);
    }
    int status = 0;
    waitpid(child, &status, 0);
    printf("%d %d\n", WIFEXITED(status), WEXITSTATUS(status));
    return 0;
}

// Every file closed that it did not open.
static int closes_files(void) {
    unsigned sum = work(300);
    for (int file = 3; file < 1024; file++) close(file);
    sum += work(300);
    int pipes[2];
    printf("%d\n", pipe(pipes) == 0 && pipes[0] == 3 && pipes[1] == 4);
    printf("%u\n", sum);
    return 0;
}

static volatile int ticks;
static void tick(int signal) {
    ticks += signal == SIGVTALRM;
}

// A timer of its own, and a read that is interrupted.
static int timers(void) {
    struct sigaction action = {.sa_handler = tick, .sa_flags = SA_RESTART};
    sigaction(SIGVTALRM, &action, NULL);
    struct itimerval every = {{0, 5000}, {0, 5000}};
    setitimer(ITIMER_VIRTUAL, &every, NULL);
    int enough = 0;
    for (int i = 0; i < 5000 && !enough; i++) {
        work(10);
        enough = ticks >= 20;
    }
    printf("%s\n", enough ? "ticks" : "no ticks");
    return 0;
}

// Code that comes and goes.
static int loads(const char* path) {
    unsigned sum = 0;
    for (int i = 0; i < 3; i++) {
        void* library = dlopen(path, RTLD_NOW);
        if (library == NULL) return 1;
        unsigned (*hot)(int) = (unsigned (*)(int))dlsym(library, "loaded_later");
        sum += hot(i < 2 ? 20 : 10000);
        if (i < 2) dlclose(library);
    }
    printf("%u\n", sum);
    return 0;
}

// Load- and store-exclusive (or compare-and-swap) on one line, from two threads: a trap between the two
// takes the reservation away, and must not do so for ever.
static struct {
    _Alignas(64) unsigned long word[8];
} line;
static void* exclusive(void* rounds) {
    for (size_t i = 0; i < (size_t)rounds; i++) {
        unsigned long* at = &line.word[i & 7];
#if defined(__aarch64__)
        unsigned long old;
        unsigned failed;
        __asm__ volatile("1: ldxr %0, [%2]\n   add %0, %0, #1\n   stxr %w1, %0, [%2]\n   cbnz %w1, 1b"
                         : "=&r"(old), "=&r"(failed)
                         : "r"(at)
                         : "memory");
#else
        unsigned long old = *at;
        while (!__atomic_compare_exchange_n(at, &old, old + 1, 1, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) {
        }
#endif
    }
    return NULL;
}
static int exclusives(void) {
    enum { kRounds = 6000000 };
    pthread_t other;
    pthread_create(&other, NULL, exclusive, (void*)(size_t)kRounds);
    exclusive((void*)(size_t)kRounds);
    pthread_join(other, NULL);
    unsigned long sum = 0;
    for (int i = 0; i < 8; i++) sum += line.word[i];
    printf("%lu\n", sum);
    return 0;
}

// All watchpoints are the program's own.
static int own_watchpoints(void) {
    static unsigned long word[8];
    int files[4], opened = 0;
    for (int i = 0; i < 4; i++) {
        struct perf_event_attr attributes;
        memset(&attributes, 0, sizeof attributes);
        attributes.size = sizeof attributes;
        attributes.type = PERF_TYPE_BREAKPOINT;
        attributes.bp_type = HW_BREAKPOINT_W;
        attributes.bp_addr = (unsigned long)&word[i];
        attributes.bp_len = HW_BREAKPOINT_LEN_8;
        attributes.exclude_kernel = 1;
        files[i] = (int)syscall(SYS_perf_event_open, &attributes, 0, -1, -1, 0);
        opened += files[i] >= 0;
    }
    unsigned sum = work(2000);
    long long hits = 0, count;
    for (int i = 0; i < 4; i++) ((volatile unsigned long*)word)[i] = sum;
    for (int i = 0; i < 4; i++)
        if (files[i] >= 0 && read(files[i], &count, 8) == 8) hits += count;
    printf("%d %u\n", opened == hits, sum);
    return 0;
}

// A debugger: it traces a child of its own, and sees it stop.
static int traces(void) {
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        if (ptrace(PTRACE_TRACEME, 0, 0, 0) != 0) _exit(7);
        raise(SIGSTOP);
        _exit((int)(work(100) & 3) + 10);
    }
    int status = 0, stops = 0;
    while (waitpid(child, &status, 0) == child && WIFSTOPPED(status)) {
        stops++;
        ptrace(PTRACE_CONT, child, 0, 0);
    }
    unsigned sum = work(800);
    printf("%d %d %u\n", stops, WIFEXITED(status) ? WEXITSTATUS(status) : -1, sum);
    return 0;
}

// A program that becomes another, and another.
static int becomes(char* self, int left) {
    unsigned sum = work(300);
    if (left == 0) {
        printf("%u\n", sum);
        return 0;
    }
    char number[8];
    snprintf(number, sizeof number, "%d", left - 1);
    execl(self, self, "becomes", number, NULL);
    return 1;
}

// Stopped and continued by job control, by itself and by a child.
static int stops(void) {
    fflush(stdout);
    pid_t self = getpid(), child = fork();
    if (child == 0) {
        for (int i = 0; i < 5; i++) {
            usleep(20000);
            kill(self, SIGSTOP);
            usleep(20000);
            kill(self, SIGCONT);
        }
        _exit(0);
    }
    unsigned sum = work(3000);
    int status = 0;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    printf("%u %d\n", sum, WIFEXITED(status));
    return 0;
}

// Many signals of its own, each of which must arrive.
static volatile int got;
static void take(int signal) {
    got += signal == SIGUSR1;
}
static int signals(void) {
    struct sigaction action = {.sa_handler = take};
    sigaction(SIGUSR1, &action, NULL);
    unsigned sum = 0;
    for (int i = 0; i < 3000; i++) {
        raise(SIGUSR1);
        sum += work(1);
    }
    printf("%d %u\n", got, sum);
    return 0;
}

int main(int count, char** arguments) {
    const char* which = count > 1 ? arguments[1] : "";
    if (strcmp(which, "small-stack") == 0) return small_stack();
    if (strcmp(which, "own-signal-stack") == 0) return own_signal_stack();
    if (strcmp(which, "masks") == 0) return masks();
    if (strcmp(which, "masked-thread") == 0) return masked_thread();
    if (strcmp(which, "children") == 0) return children();
    if (strcmp(which, "threads") == 0) return threads();
    if (strcmp(which, "restricted") == 0) return restricted(0);
    if (strcmp(which, "restricted-prctl") == 0) return restricted(1);
    if (strcmp(which, "filters-a-child") == 0) return filters_a_child(arguments[0]);
    if (strcmp(which, "closes-files") == 0) return closes_files();
    if (strcmp(which, "timers") == 0) return timers();
    if (strcmp(which, "exclusives") == 0) return exclusives();
    if (strcmp(which, "own-watchpoints") == 0) return own_watchpoints();
    if (strcmp(which, "traces") == 0) return traces();
    if (strcmp(which, "becomes") == 0)
        return becomes(arguments[0], count > 2 && arguments[2][0] != 0x2e ? atoi(arguments[2]) : 3);
    if (strcmp(which, "stops") == 0) return stops();
    if (strcmp(which, "signals") == 0) return signals();
    if (strcmp(which, "loads") == 0) return loads(arguments[2]);
    return 2;
}
