/* Two threads that take turns, so that every turn takes a line from the other, however they run: its
 * counter, when both counters lie in one line, and the word that says whose turn it is.
 * usage: turns shared|padded ROUNDS */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { longs_per_line = 8 };

static _Alignas(64) struct {
    volatile int whose;
    char rest[60];
} turn;
static long rounds;
static volatile long *even_counter, *odd_counter;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;

static void begin_turn(int me) {
    pthread_mutex_lock(&mutex);
    while (turn.whose != me) pthread_cond_wait(&changed, &mutex);
}
static void end_turn(int me) {
    turn.whose = !me;
    pthread_cond_signal(&changed);
    pthread_mutex_unlock(&mutex);
}

static void *count_even(void *argument) {
    for (long i = 0; i < rounds; i++) {
        begin_turn(0);
        ++*even_counter; /* even */
        end_turn(0);
    }
    return argument;
}
static void *count_odd(void *argument) {
    for (long i = 0; i < rounds; i++) {
        begin_turn(1);
        ++*odd_counter; /* odd */
        end_turn(1);
    }
    return argument;
}

int main(int argc, char **argv) {
    pthread_t even, odd;
    if (argc < 3) return 2;
    rounds = atol(argv[2]);
    long *lines = aligned_alloc(64, 128); /* heap */
    if (!lines) return 1;
    memset(lines, 0, 128);
    even_counter = lines + 1;
    odd_counter = lines + (strcmp(argv[1], "padded") == 0 ? longs_per_line : 4);
    if (pthread_create(&even, NULL, count_even, NULL) || pthread_create(&odd, NULL, count_odd, NULL)) return 1;
    pthread_join(even, NULL);
    pthread_join(odd, NULL);
    printf("%ld\n", *even_counter + *odd_counter);
    return 0;
}
