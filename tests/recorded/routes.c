/* Two threads that take turns, each at a counter in the same line, which they reach by different calls:
 * a quarter of the rounds by rail, a quarter by five calls of detour and by road, the rest by road.
 * usage: routes ROUNDS */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#define KEPT __attribute__((noinline)) static

static struct {
    _Alignas(64) volatile int whose;
    char rest[60];
} turn;
static _Alignas(64) volatile long counters[8];
static long rounds;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;

/* What follows a call keeps it from being a tail call. */
#define RETURN __asm__ volatile("")

KEPT void add(int me) { counters[me * 4]++; }
KEPT void by_road(int me) {
    add(me);
    RETURN;
}
KEPT void by_rail(int me) {
    add(me);
    RETURN;
}
KEPT void detour(int me, int more) {
    if (more)
        detour(me, more - 1);
    else
        by_road(me);
    RETURN;
}

static void *go(void *which) {
    int me = (int)(long)which;
    for (long i = 0; i < rounds; i++) {
        pthread_mutex_lock(&mutex);
        while (turn.whose != me) pthread_cond_wait(&changed, &mutex);
        if (i % 4 == 0)
            by_rail(me);
        else if (i % 4 == 1)
            detour(me, 4);
        else
            by_road(me);
        turn.whose = !me;
        pthread_cond_signal(&changed);
        pthread_mutex_unlock(&mutex);
    }
    return NULL;
}

int main(int argc, char **argv) {
    pthread_t threads[2];
    if (argc < 2) return 2;
    rounds = atol(argv[1]);
    for (long i = 0; i < 2; i++)
        if (pthread_create(&threads[i], NULL, go, (void *)i)) return 1;
    for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
    printf("%ld\n", counters[0] + counters[4]);
    return 0;
}
