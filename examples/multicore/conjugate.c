/* Conjugate gradients on a sparse matrix, OpenMP.
 *
 * The matrix streams by, the same part to the same thread each time; the vector it is multiplied with is
 * read by all and rewritten by its owners, so every iteration most of it has to be fetched again.
 *
 * usage: conjugate [rows] [iterations]       default: 8000 12        threads: OMP_NUM_THREADS
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { per_row = 9 };

static double dot(size_t n, const double* a, const double* b) {
    double sum = 0;
#pragma omp parallel for schedule(static) reduction(+ : sum)
    for (size_t i = 0; i < n; i++) sum += a[i] * b[i];
    return sum;
}

int main(int argc, char** argv) {
    long rows = argc > 1 ? atol(argv[1]) : 8000;
    int iterations = argc > 2 ? atoi(argv[2]) : 12;
    if (rows < 16 || iterations < 1) return fprintf(stderr, "usage: conjugate [rows] [iterations]\n"), 2;
    size_t n = (size_t)rows;
    int* column = malloc(n * per_row * sizeof *column);
    double* value = malloc(n * per_row * sizeof *value);
    double *x = calloc(n, sizeof *x), *r = malloc(n * sizeof *r), *p = malloc(n * sizeof *p),
           *q = malloc(n * sizeof *q);
    if (!column || !value || !x || !r || !p || !q) return 1;
    /* A strong diagonal, and four offsets to either side, so that the matrix is symmetric. */
    static const size_t offset[] = {1, 7, 61, 499};
    for (size_t i = 0; i < n; i++) {
        size_t at = i * per_row;
        column[at] = (int)i, value[at] = 10;
        for (int k = 0; k < 4; k++) {
            column[at + 1 + 2 * (size_t)k] = (int)((i + offset[k]) % n);
            column[at + 2 + 2 * (size_t)k] = (int)((i + n - offset[k] % n) % n);
            value[at + 1 + 2 * (size_t)k] = value[at + 2 + 2 * (size_t)k] = -1;
        }
        r[i] = p[i] = 1 + (double)(i % 7);
    }
    double rr = dot(n, r, r), first = rr;
    for (int it = 0; it < iterations; it++) {
#pragma omp parallel for schedule(static)
        for (size_t i = 0; i < n; i++) {
            double sum = 0;
            for (size_t k = i * per_row; k < (i + 1) * per_row; k++) sum += value[k] * p[column[k]];
            q[i] = sum;
        }
        double alpha = rr / dot(n, p, q);
#pragma omp parallel for schedule(static)
        for (size_t i = 0; i < n; i++) x[i] += alpha * p[i], r[i] -= alpha * q[i];
        double next = dot(n, r, r), beta = next / rr;
        rr = next;
#pragma omp parallel for schedule(static)
        for (size_t i = 0; i < n; i++) p[i] = r[i] + beta * p[i];
    }
    printf("conjugate: residual fell by %.1e\n", sqrt(rr / first));
    free(column), free(value), free(x), free(r), free(p), free(q);
    return rr < first ? 0 : 1;
}
