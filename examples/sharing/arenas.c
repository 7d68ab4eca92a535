/* An arena per thread, carved out of one block of the heap in pieces of 48 bytes: neighbours meet in a
 * line. Mended: pieces begin at lines. */
#include "team.h"

#ifdef MENDED
enum { arena_bytes = 64 };
#else
enum { arena_bytes = 48 };
#endif

static char* arenas;

static void work(int me) {
    volatile long* mine = (volatile long*)(void*)(arenas + (size_t)me * arena_bytes);
    for (long i = 0; i < rounds / 6; i++)
        for (int j = 0; j < 6; j++) mine[j] += j; /* takes, loses */
}

int main(int argc, char** argv) {
    arenas = aligned_alloc(64, (size_t)most_threads * 64); /* guilty object */
    if (!arenas) return 1;
    for (int i = 0; i < most_threads * 64; i++) arenas[i] = 0;
    run_team(argc, argv, work);
    printf("%ld\n", *(long*)(void*)(arenas + 8));
    free(arenas);
    return 0;
}
