/* A hash table with a counter per stripe. Threads keep to stripes of their own, but eight stripes share
 * a line. Mended: a line per stripe. */
#include "team.h"

enum { stripes = 64, buckets = 4096 };

struct stripe {
#ifdef MENDED
    _Alignas(64)
#endif
        volatile long entries;
};

static _Alignas(64) struct stripe stripe[stripes]; /* guilty object */
static _Alignas(64) volatile int bucket[stripes][buckets / stripes];

static void work(int me) {
    unsigned key = (unsigned)me * 2654435761u;
    for (long i = 0; i < rounds; i++) {
        key = key * 1664525u + 1013904223u;
        bucket[me][(key >> 20) % (buckets / stripes)]++;
        stripe[me].entries++; /* takes, loses */
    }
}

int main(int argc, char** argv) {
    run_team(argc, argv, work);
    printf("%ld\n", stripe[0].entries);
    return 0;
}
