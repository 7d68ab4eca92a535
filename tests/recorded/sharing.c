/* Programs whose sharing is hard to record, one per argument. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static _Alignas(64) volatile long counters[1024]; /* eight to a line */
static _Alignas(64) struct {
    char buffer[32]; /* the kernel writes it */
    volatile long hits;
} mixed;

static void *count(void *argument) {
    long at = (intptr_t)argument % 1024;
    for (int i = 0; i < 4000; i++) counters[at]++;
    return NULL;
}

static void *count_atomically(void *argument) {
    for (int i = 0; i < 20000; i++) __atomic_fetch_add(&counters[(intptr_t)argument], 1, __ATOMIC_SEQ_CST);
    return NULL;
}

static void *read_zeros(void *argument) {
    int file = open("/dev/zero", O_RDONLY);
    for (int i = 0; i < 3000; i++)
        if (read(file, mixed.buffer, sizeof mixed.buffer) != sizeof mixed.buffer) break;
    close(file);
    return argument;
}

static void *hit(void *argument) {
    for (int i = 0; i < 30000; i++) mixed.hits++;
    return argument;
}

static int run(int threads, int at_once, void *(*body)(void *)) {
    pthread_t made[1000];
    for (int begun = 0; begun < threads; begun += at_once) {
        for (int i = 0; i < at_once; i++)
            if (pthread_create(&made[i], NULL, body, (void *)(intptr_t)(begun + i)) != 0) return 1;
        for (int i = 0; i < at_once; i++) pthread_join(made[i], NULL);
    }
    return 0;
}

int main(int argc, char **argv) {
    const char *which = argc > 1 ? argv[1] : "";
    if (strcmp(which, "thousand") == 0) {
        /* valgrind has room for 500 at a time */
        if (run(1000, 250, count) != 0) return 1;
    } else if (strcmp(which, "again") == 0) { /* one after the other: ids and stacks are used again */
        if (run(60, 1, count) != 0) return 1;
    } else if (strcmp(which, "atomics") == 0) {
        if (run(4, 4, count_atomically) != 0) return 1;
    } else if (strcmp(which, "kernel") == 0) {
        pthread_t a, b;
        if (pthread_create(&a, NULL, read_zeros, NULL) != 0 || pthread_create(&b, NULL, hit, NULL) != 0) return 1;
        pthread_join(a, NULL);
        pthread_join(b, NULL);
    } else if (strcmp(which, "processes") == 0) {
        volatile long *shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        pid_t child = fork();
        for (int i = 0; i < 20000; i++) shared[child == 0]++;
        if (child == 0) _exit(0);
        int status = 1;
        waitpid(child, &status, 0);
        if (status != 0 || shared[0] != 20000 || shared[1] != 20000) return 1;
    } else
        return 2;
    long sum = 0;
    for (int i = 0; i < 1024; i++) sum += counters[i];
    printf("%s %ld %ld\n", which, sum, mixed.hits);
    return 0;
}
