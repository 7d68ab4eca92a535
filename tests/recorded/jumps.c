/* setjmp and longjmp; handlers that are recorded code, by a timer that strikes anywhere; handlers left
   by siglongjmp, on the same stack and on another; and the program's view of its own handlers. */
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

#include "touch.h"

static long touched;
static jmp_buf back;
static sigjmp_buf after_fault;
static volatile long ticks, faults;

__attribute__((noinline)) static void descend(int depth) {
    touch(depth);
    touched += depth;
    if (depth == 0) longjmp(back, 1);
    descend(depth - 1);
}

static void on_tick(int number) {
    (void)number;
    touch(7);
    ticks++;
}

static void on_fault(int number) {
    (void)number;
    touch(4);
    faults++;
    siglongjmp(after_fault, 1);
}

static void fault_often(void) {
    for (int i = 0; i < 1000; i++) {
        if (sigsetjmp(after_fault, 1) == 0) {
            touch(10);
            *(volatile int*)8 = 1;
        } else {
            touch(2);
        }
    }
    touched += 1000 * (10 + 4 + 2);
}

int main(void) {
    for (int i = 0; i < 2000; i++) {
        if (setjmp(back) == 0) {
            descend(i % 20);
        } else {
            touch(1);
            touched += 1;
        }
    }

    struct sigaction action, known;
    memset(&action, 0, sizeof action);
    action.sa_handler = on_tick;
    action.sa_flags = SA_RESTART;
    sigaction(SIGALRM, &action, NULL);
    struct itimerval every = {{0, 200}, {0, 200}}, never = {{0, 0}, {0, 0}};
    setitimer(ITIMER_REAL, &every, NULL);
    while (ticks < 100) {
        touch(50000);
        touched += 50000;
    }
    setitimer(ITIMER_REAL, &never, NULL);
    usleep(1000);
    touched += 7 * ticks;

    if (signal(SIGSEGV, on_fault) != SIG_DFL) return 1;
    fault_often();
    stack_t other;
    memset(&other, 0, sizeof other);
    other.ss_size = 65536;
    other.ss_sp = malloc(other.ss_size);
    sigaltstack(&other, NULL);
    action.sa_handler = on_fault;
    action.sa_flags = SA_ONSTACK;
    sigaction(SIGSEGV, &action, NULL);
    fault_often();
    sigaction(SIGSEGV, NULL, &known);
    if (known.sa_handler != on_fault || !(known.sa_flags & SA_ONSTACK) || known.sa_flags & SA_SIGINFO)
        return 1;
    if (signal(SIGALRM, SIG_IGN) != on_tick || signal(SIGALRM, SIG_DFL) != SIG_IGN) return 1;
    printf("touched %ld\n", touched);
    return 0;
}
