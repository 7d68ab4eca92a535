/* Two threads side by side, each over 16 lines of its own, again and again: between two uses of a line
 * a thread uses 15 others, and in a cache that both share the other thread uses its 16 as well.
 * usage: side ROUNDS */
#include <pthread.h>
#include <stdlib.h>

enum { lines = 16, longs_per_line = 8 };

static _Alignas(64) volatile long data[2][lines * longs_per_line];
static long rounds;
static pthread_barrier_t start;

static void *walk(void *of) {
    volatile long *mine = of;
    pthread_barrier_wait(&start);
    for (long i = 0; i < rounds; i++) (void)mine[i % lines * longs_per_line];
    return NULL;
}

int main(int argc, char **argv) {
    pthread_t threads[2];
    rounds = argc > 1 ? atol(argv[1]) : 400000;
    pthread_barrier_init(&start, NULL, 2);
    for (int i = 0; i < 2; i++)
        if (pthread_create(&threads[i], NULL, walk, (void *)data[i])) return 1;
    for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
    return 0;
}
