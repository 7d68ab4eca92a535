/* Poisson's equation by V-cycles over grids of halving size, OpenMP.
 *
 * Working sets of every size in one program: a coarse grid fits any cache, the finest none; and on the
 * coarse ones a thread's part is a few lines, so that nearly all of it is shared with the neighbours.
 *
 * usage: multigrid [log2 of side] [cycles]       default: 8 4        threads: OMP_NUM_THREADS
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

struct grid {
    size_t n; /* points a side, with edges */
    double *u, *f, *r;
};

static void smooth(struct grid* g, int sweeps) {
    size_t n = g->n;
    for (int s = 0; s < 2 * sweeps; s++) /* red, black */
#pragma omp parallel for schedule(static)
        for (size_t i = 1; i < n - 1; i++)
            for (size_t j = 1 + (i + (size_t)s) % 2; j < n - 1; j += 2)
                g->u[i * n + j] = 0.25 * (g->u[(i - 1) * n + j] + g->u[(i + 1) * n + j] +
                                          g->u[i * n + j - 1] + g->u[i * n + j + 1] + g->f[i * n + j]);
}

static double residual(struct grid* g) {
    size_t n = g->n;
    double sum = 0;
#pragma omp parallel for schedule(static) reduction(+ : sum)
    for (size_t i = 1; i < n - 1; i++)
        for (size_t j = 1; j < n - 1; j++) {
            double r = g->f[i * n + j] - 4 * g->u[i * n + j] + g->u[(i - 1) * n + j] +
                       g->u[(i + 1) * n + j] + g->u[i * n + j - 1] + g->u[i * n + j + 1];
            g->r[i * n + j] = r;
            sum += r * r;
        }
    return sqrt(sum);
}

static void cycle(struct grid* fine, int levels) {
    if (levels == 1) {
        smooth(fine, 8);
        return;
    }
    smooth(fine, 2);
    residual(fine);
    struct grid* coarse = fine + 1;
    size_t m = coarse->n, n = fine->n;
#pragma omp parallel for schedule(static)
    for (size_t i = 1; i < m - 1; i++)
        for (size_t j = 1; j < m - 1; j++) {
            const double* r = fine->r + 2 * i * n + 2 * j;
            coarse->u[i * m + j] = 0;
            coarse->f[i * m + j] = r[0] + 0.5 * (r[-1] + r[1] + r[-(long)n] + r[n]) +
                                   0.25 * (r[-(long)n - 1] + r[-(long)n + 1] + r[n - 1] + r[n + 1]);
        }
    cycle(coarse, levels - 1);
#pragma omp parallel for schedule(static)
    for (size_t i = 1; i < n - 1; i++)
        for (size_t j = 1; j < n - 1; j++) {
            const double* c = coarse->u + i / 2 * m + j / 2;
            fine->u[i * n + j] += 0.25 * (c[0] + c[j % 2] + c[i % 2 * m] + c[i % 2 * m + j % 2]);
        }
    smooth(fine, 2);
}

int main(int argc, char** argv) {
    int bits = argc > 1 ? atoi(argv[1]) : 8, cycles = argc > 2 ? atoi(argv[2]) : 4;
    if (bits < 2 || bits > 13 || cycles < 1)
        return fprintf(stderr, "usage: multigrid [log2 of side] [cycles]\n"), 2;
    struct grid grids[16];
    int levels = bits - 1;
    for (int l = 0; l < levels; l++) {
        size_t n = ((size_t)1 << (bits - l)) + 1;
        grids[l] = (struct grid){n, calloc(n * n, 8), calloc(n * n, 8), calloc(n * n, 8)};
        if (!grids[l].u || !grids[l].f || !grids[l].r) return 1;
    }
    size_t n = grids[0].n;
    grids[0].f[n / 2 * n + n / 2] = 1, grids[0].f[n / 4 * n + n / 3] = -1;
    double before = residual(&grids[0]);
    for (int c = 0; c < cycles; c++) cycle(grids, levels);
    double after = residual(&grids[0]);
    printf("multigrid: residual fell by %.1e\n", after / before);
    for (int l = 0; l < levels; l++) free(grids[l].u), free(grids[l].f), free(grids[l].r);
    return after < before ? 0 : 1;
}
