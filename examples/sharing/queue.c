/* Producers and consumers: a ring whose head and tail lie in one line. Each side remembers what it last
 * saw of the other's index, so it needs the line only for its own; the other side's store takes it
 * nevertheless. Mended: a line per index. */
#include "team.h"

enum { ring_size = 1024 };

struct ring {
    _Alignas(64) volatile long head; /* the producer's */
#ifdef MENDED
    _Alignas(64)
#endif
        volatile long tail; /* the consumer's */
    _Alignas(64) volatile long items[ring_size];
};

static _Alignas(64) struct ring rings[most_threads / 2]; /* guilty object */

static void produce(struct ring* ring) {
    long seen_tail = 0, head = 0;
    for (long i = 0; i < rounds; i++) {
        while (head - seen_tail == ring_size) {
            seen_tail = __atomic_load_n(&ring->tail, __ATOMIC_ACQUIRE);
            if (head - seen_tail == ring_size) sched_yield();
        }
        ring->items[head % ring_size] = i;
        __atomic_store_n(&ring->head, ++head, __ATOMIC_RELEASE); /* takes, loses */
    }
}

static void consume(struct ring* ring) {
    long seen_head = 0, tail = 0, sum = 0;
    for (long i = 0; i < rounds; i++) {
        while (tail == seen_head) {
            seen_head = __atomic_load_n(&ring->head, __ATOMIC_ACQUIRE);
            if (tail == seen_head) sched_yield();
        }
        sum += ring->items[tail % ring_size];
        __atomic_store_n(&ring->tail, ++tail, __ATOMIC_RELEASE); /* takes, loses */
    }
    if (sum != rounds * (rounds - 1) / 2) abort();
}

static void work(int me) {
    if (me % 2 == 0)
        produce(&rings[me / 2]);
    else
        consume(&rings[me / 2]);
}

int main(int argc, char** argv) {
    run_team(argc, argv, work);
    printf("%ld\n", rings[0].tail);
    return 0;
}
