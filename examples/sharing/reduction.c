/* A reduction written by hand with OpenMP: every thread adds to its element of an array of sums.
 * Mended: the reduction clause, which gives each thread a variable of its own. usage: reduction
 * [rounds] [threads]      default: 20000 4 */
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>

enum { most_threads = 64 };

static _Alignas(64) volatile double sums[most_threads]; /* guilty object */

int main(int argc, char** argv) {
    long rounds = argc > 1 ? atol(argv[1]) : 20000;
    int threads = argc > 2 ? atoi(argv[2]) : 4;
    double sum = 0;
    if (threads < 2 || threads > most_threads || rounds < 1) return 2;
#ifdef MENDED
#pragma omp parallel for num_threads(threads) reduction(+ : sum)
    for (long i = 0; i < rounds * threads; i++) sum += 1.0 / (double)(i + 1);
#else
#pragma omp parallel for num_threads(threads)
    for (long i = 0; i < rounds * threads; i++)
        sums[omp_get_thread_num()] += 1.0 / (double)(i + 1); /* takes, loses */
    for (int i = 0; i < threads; i++) sum += sums[i];
#endif
    printf("%.6f\n", sum);
    return 0;
}
