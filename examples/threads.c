/* Four threads that count, side by side or on each other's feet.
 *
 * Each thread counts the even numbers of its quarter of an array. The quarters stream by and belong to
 * nobody else. The counters are what differs: `shared` has them next to each other in one line, so that
 * every increment takes the line away from three other cores (false sharing): with a private stack per
 * thread (--model private) the counters' reuses become invalidated ones. `padded` gives each counter a
 * line of its own, and they are all immediate reuses again. With one stack for all threads the two look
 * alike.
 *
 * usage: threads [shared|padded] [count] [threads]       default: shared 400000 4
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { most_threads = 1024, line = 64 };

static _Alignas(64) char counters[(size_t)most_threads * line];

struct work {
    pthread_t thread;
    const int* from;
    size_t count;
    volatile long* even; /* in memory at every step, as a counter that others may read would be */
};

static void* count_even(void* argument) {
    struct work* work = argument;
    for (size_t i = 0; i < work->count; i++)
        if (work->from[i] % 2 == 0) ++*work->even;
    return NULL;
}

int main(int argc, char** argv) {
    const char* kind = argc > 1 ? argv[1] : "shared";
    size_t count = argc > 2 ? strtoul(argv[2], NULL, 10) : 400000;
    int threads = argc > 3 ? atoi(argv[3]) : 4;
    int padded = strcmp(kind, "padded") == 0;
    if ((!padded && strcmp(kind, "shared") != 0) || threads < 1 || threads > most_threads) {
        fprintf(stderr, "usage: threads [shared|padded] [count] [threads]\n");
        return 2;
    }
    int* numbers = malloc(count * sizeof *numbers);
    struct work* work = calloc((size_t)threads, sizeof *work);
    if (!numbers || !work) return 1;
    for (size_t i = 0; i < count; i++) numbers[i] = (int)(i * 2654435761u >> 7);
    size_t part = count / (size_t)threads;
    for (int i = 0; i < threads; i++) {
        work[i].from = numbers + (size_t)i * part;
        work[i].count = i + 1 < threads ? part : count - (size_t)i * part;
        work[i].even = (volatile long*)(void*)(counters + (size_t)i * (padded ? line : sizeof(long)));
        if (pthread_create(&work[i].thread, NULL, count_even, &work[i]) != 0) return 1;
    }
    long even = 0;
    for (int i = 0; i < threads; i++) {
        pthread_join(work[i].thread, NULL);
        even += *work[i].even;
    }
    printf("%s, %d threads: %ld of %zu even\n", kind, threads, even, count);
    free(numbers);
    free(work);
    return 0;
}
