/* Threads that end in every way: detached, cancelled in the middle, by pthread_exit; with thread-local
   data, interrupted by signals, spinning for each other, forking. */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "touch.h"

static _Thread_local long own[256];
static atomic_int detached_done, turn;
static volatile long interrupted;

static void fill(long n) {
    for (long i = 0; i < n; i++) own[i % 256] += i;
}

static void* detached(void* nothing) {
    fill(5000);
    atomic_fetch_add(&detached_done, 1);
    return nothing;
}

static void* endless(void* nothing) {
    for (;;) {
        fill(1000);
        pthread_testcancel();
    }
    return nothing;
}

static void* spin(void* me) {
    for (int round = 0; round < 30; round++) {
        while (atomic_load(&turn) != (int)(long)me) sched_yield();
        fill(20);
        atomic_store(&turn, 1 - (int)(long)me);
    }
    pthread_exit(NULL);
}

static void on_alarm(int number) {
    (void)number;
    interrupted++;
    fill(10);
}

int main(void) {
    pthread_t threads[2];
    signal(SIGALRM, on_alarm);
    for (int i = 0; i < 20; i++) {
        pthread_t thread;
        pthread_create(&thread, NULL, detached, NULL);
        pthread_detach(thread);
    }
    for (long i = 0; i < 2; i++) pthread_create(&threads[i], NULL, spin, (void*)i);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
    pthread_create(&threads[0], NULL, endless, NULL);
    for (int i = 0; i < 50; i++) {
        raise(SIGALRM);
        fill(100);
    }
    pthread_cancel(threads[0]);
    pthread_join(threads[0], NULL);
    pid_t child = fork();
    if (child == 0) {
        fill(20000);
        _exit(0);
    }
    int status;
    waitpid(child, &status, 0);
    while (atomic_load(&detached_done) < 20) sched_yield();
    touch(100000);
    printf("touched 100000\n");
    return interrupted == 50 && status == 0 ? 7 : 1;
}
