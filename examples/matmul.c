/* Matrix multiply in three loop orders, and tiled.
 *
 * C = A·B does 2n³ operations on 3n² numbers whatever the order; only the reuse distances differ.
 *   ijk    The inner loop walks down a column of B: every load is another line, and a line comes back
 *          only for the next column, after n other lines. Once n lines no longer fit, every load of B
 * misses. ikj    The inner loop walks along rows of B and C: eight neighbours share a line and are
 * taken one after the other. Distances of B drop from n lines to 0 for seven of eight, and n²/8 lines
 * for the rest. jki    Walks down columns of A and C: two strided streams, the worst of the three.
 *   tiled  Blocks of 32×32 of A, B and C, 24 KiB in all, are used up before they are left: the long
 *          distances come down to what fits the first cache.
 *
 * usage: matmul [ijk|ikj|jki|tiled] [n]       default: ijk 128
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void multiply_ijk(int n, double* c, const double* a, const double* b) {
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++) {
            double sum = 0;
            for (int k = 0; k < n; k++) sum += a[i * n + k] * b[k * n + j];
            c[i * n + j] = sum;
        }
}

static void multiply_ikj(int n, double* c, const double* a, const double* b) {
    for (int i = 0; i < n; i++)
        for (int k = 0; k < n; k++) {
            double factor = a[i * n + k];
            for (int j = 0; j < n; j++) c[i * n + j] += factor * b[k * n + j];
        }
}

static void multiply_jki(int n, double* c, const double* a, const double* b) {
    for (int j = 0; j < n; j++)
        for (int k = 0; k < n; k++) {
            double factor = b[k * n + j];
            for (int i = 0; i < n; i++) c[i * n + j] += a[i * n + k] * factor;
        }
}

static int least(int a, int b) {
    return a < b ? a : b;
}

static void multiply_tiled(int n, double* c, const double* a, const double* b) {
    enum { tile = 32 };
    for (int ii = 0; ii < n; ii += tile)
        for (int kk = 0; kk < n; kk += tile)
            for (int jj = 0; jj < n; jj += tile)
                for (int i = ii; i < least(ii + tile, n); i++)
                    for (int k = kk; k < least(kk + tile, n); k++) {
                        double factor = a[i * n + k];
                        for (int j = jj; j < least(jj + tile, n); j++)
                            c[i * n + j] += factor * b[k * n + j];
                    }
}

int main(int argc, char** argv) {
    static const struct {
        const char* name;
        void (*multiply)(int, double*, const double*, const double*);
    } orders[] = {
        {"ijk", multiply_ijk}, {"ikj", multiply_ikj}, {"jki", multiply_jki}, {"tiled", multiply_tiled}};
    const char* name = argc > 1 ? argv[1] : "ijk";
    int n = argc > 2 ? atoi(argv[2]) : 128, order = -1;
    for (int i = 0; i < 4; i++)
        if (strcmp(name, orders[i].name) == 0) order = i;
    if (order < 0 || n < 1) {
        fprintf(stderr, "usage: matmul [ijk|ikj|jki|tiled] [n]\n");
        return 2;
    }

    size_t count = (size_t)n * (size_t)n;
    double* a = malloc(count * sizeof *a);
    double* b = malloc(count * sizeof *b);
    double* c = calloc(count, sizeof *c);
    if (!a || !b || !c) return 1;
    for (size_t i = 0; i < count; i++) {
        a[i] = (double)(i % 7);
        b[i] = (double)(i % 5);
    }
    orders[order].multiply(n, c, a, b);
    double trace = 0;
    for (int i = 0; i < n; i++) trace += c[(size_t)i * (size_t)n + (size_t)i];
    printf("%s, n = %d: trace %.0f\n", name, n, trace);
    free(a);
    free(b);
    free(c);
    return 0;
}
