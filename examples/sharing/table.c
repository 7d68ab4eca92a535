/* A table that is only read, with a counter of its readers in the same line. Mended: the counters
 * elsewhere, one line per thread. */
#include "team.h"

static struct {
    _Alignas(64) volatile int entry[14];
    volatile long reads;
} table = {{3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7}, 0}; /* guilty object */

static struct {
    _Alignas(64) volatile long reads;
} own[most_threads];

static void work(int me) {
    unsigned at = (unsigned)me;
    for (long i = 0; i < rounds; i++) {
        at = at * 1103515245u + 12345u + (unsigned)table.entry[(at >> 16) % 14]; /* loses */
#ifdef MENDED
        own[me].reads++;
#else
        __atomic_fetch_add(&table.reads, 1, __ATOMIC_RELAXED); /* takes */
#endif
    }
}

int main(int argc, char** argv) {
    run_team(argc, argv, work);
    long reads = table.reads;
    for (int i = 0; i < threads; i++) reads += own[i].reads;
    printf("%ld\n", reads);
    return 0;
}
