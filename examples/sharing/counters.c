/* An array of counters, one per thread, eight to a line: every increment takes the line from the other
 * threads. Mended: a line per counter. */
#include "team.h"

struct counter {
#ifdef MENDED
    _Alignas(64)
#endif
        volatile long count;
};

static _Alignas(64) struct counter counters[most_threads]; /* guilty object */

static void work(int me) {
    for (long i = 0; i < rounds; i++) counters[me].count++; /* takes, loses */
}

int main(int argc, char** argv) {
    run_team(argc, argv, work);
    long sum = 0;
    for (int i = 0; i < threads; i++) sum += counters[i].count;
    printf("%ld\n", sum);
    return 0;
}
