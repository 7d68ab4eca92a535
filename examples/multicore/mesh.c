/* Waves in an unstructured mesh, OpenMP: nodes joined by springs to six others, near and far.
 *
 * Which nodes a thread needs from others follows from the mesh, not from the loop. Positions are written
 * by their owner and read across the mesh.
 *
 * usage: mesh [nodes] [steps]       default: 6000 10        threads: OMP_NUM_THREADS
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { springs = 6 };

int main(int argc, char** argv) {
    long nodes = argc > 1 ? atol(argv[1]) : 6000;
    int steps = argc > 2 ? atoi(argv[2]) : 10;
    if (nodes < 8 || steps < 1) return fprintf(stderr, "usage: mesh [nodes] [steps]\n"), 2;
    size_t n = (size_t)nodes;
    double(*at)[3] = calloc(n, sizeof *at), (*speed)[3] = calloc(n, sizeof *speed);
    unsigned(*to)[springs] = malloc(n * sizeof *to);
    if (!at || !speed || !to) return 1;
    unsigned long long seed = 1;
    for (size_t i = 0; i < n; i++) {
        for (int d = 0; d < 3; d++) at[i][d] = (double)((i * (7u + 2u * (unsigned)d)) % 97) / 97;
        for (int k = 0; k < springs; k++) {
            seed = seed * 6364136223846793005u + 1442695040888963407u;
            size_t reach = k < 4 ? 32 : n; /* four near, two anywhere */
            to[i][k] = (unsigned)((i + 1 + (size_t)(seed >> 33) % reach) % n);
        }
    }
    for (int step = 0; step < steps; step++) {
#pragma omp parallel for schedule(dynamic, 64)
        for (size_t i = 0; i < n; i++)
            for (int d = 0; d < 3; d++) {
                double force = 0;
                for (int k = 0; k < springs; k++) force += at[to[i][k]][d] - at[i][d];
                speed[i][d] = 0.99 * (speed[i][d] + 0.01 * force);
            }
#pragma omp parallel for schedule(dynamic, 64)
        for (size_t i = 0; i < n; i++)
            for (int d = 0; d < 3; d++) at[i][d] += 0.1 * speed[i][d];
    }
    double energy = 0;
    for (size_t i = 0; i < n; i++)
        for (int d = 0; d < 3; d++) energy += speed[i][d] * speed[i][d];
    printf("mesh: energy %.6e\n", energy);
    free(at), free(speed), free(to);
    return isfinite(energy) ? 0 : 1;
}
