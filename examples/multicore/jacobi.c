/* Heat in a plate: Jacobi iteration over a square grid, rows dealt out to OpenMP threads.
 *
 * Threads share the rows at the seams of their parts: a private cache loses those each sweep, because
 * the neighbour writes them, and nothing else.
 *
 * usage: jacobi [side] [sweeps]       default: 256 20        threads: OMP_NUM_THREADS
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char** argv) {
    int side = argc > 1 ? atoi(argv[1]) : 256, sweeps = argc > 2 ? atoi(argv[2]) : 20;
    if (side < 3 || sweeps < 1) return fprintf(stderr, "usage: jacobi [side] [sweeps]\n"), 2;
    size_t n = (size_t)side;
    double* now = calloc(n * n, sizeof *now);
    double* next = calloc(n * n, sizeof *next);
    if (!now || !next) return 1;
    for (size_t j = 0; j < n; j++) now[j] = next[j] = 1; /* a hot edge */
    for (int sweep = 0; sweep < sweeps; sweep++) {
#pragma omp parallel for schedule(static)
        for (size_t i = 1; i < n - 1; i++)
            for (size_t j = 1; j < n - 1; j++)
                next[i * n + j] = 0.25 * (now[(i - 1) * n + j] + now[(i + 1) * n + j] +
                                          now[i * n + j - 1] + now[i * n + j + 1]);
        double* swap = now;
        now = next, next = swap;
    }
    double heat = 0;
    for (size_t k = 0; k < n * n; k++) heat += now[k];
    printf("jacobi: heat %.6f\n", heat);
    free(now), free(next);
    return isfinite(heat) ? 0 : 1;
}
