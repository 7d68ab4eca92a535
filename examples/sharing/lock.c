/* A lock next to the data it guards: whoever tries the lock takes the line from the holder, who is at
 * work on the data, and gets it back late. Mended: the lock in a line of its own. */
#include "team.h"

static struct {
    _Alignas(64) volatile int locked;
#ifdef MENDED
    _Alignas(64)
#endif
        volatile long balance;
} account; /* guilty object */

static void work(int me) {
    for (long i = 0; i < rounds / 4; i++) {
        while (__atomic_exchange_n(&account.locked, 1, __ATOMIC_ACQUIRE)) /* takes, loses */
            sched_yield();
        for (int j = 0; j < 7; j++) account.balance += me + 1;  /* takes, loses */
        __atomic_store_n(&account.locked, 0, __ATOMIC_RELEASE); /* takes, loses */
        for (volatile int rest = 0; rest < 20; rest++);
    }
}

int main(int argc, char** argv) {
    run_team(argc, argv, work);
    printf("%ld\n", account.balance);
    return 0;
}
