/* Work stealing: the owner of a deque moves its bottom all the time, thieves look at its top, and the
 * two lie in one line. Mended: a line for each. */
#include "team.h"

struct deque {
    _Alignas(64) volatile long top; /* thieves' */
#ifdef MENDED
    _Alignas(64)
#endif
        volatile long bottom; /* the owner's */
};

static _Alignas(64) struct deque deques[most_threads]; /* guilty object */
static struct {
    _Alignas(64) volatile long seen;
} stolen[most_threads];

static void own(struct deque* deque) {
    for (long i = 0; i < rounds; i++) deque->bottom++; /* takes */
}

static void steal(int me) {
    for (long i = 0; i < rounds; i++) stolen[me].seen += deques[me - 1].top; /* loses */
}

static void work(int me) {
    if (me % 2 == 0)
        own(&deques[me]);
    else
        steal(me);
}

int main(int argc, char** argv) {
    run_team(argc, argv, work);
    printf("%ld\n", deques[0].bottom + stolen[1].seen);
    return 0;
}
