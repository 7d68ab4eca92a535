/* Sparse matrix times vector, with columns anywhere or near the diagonal.
 *
 * The matrix itself (values and column numbers) streams by, once a product: nothing to reuse inside
 * one. All reuse inside a product is in the vector x, and the pattern of non-zeros decides over it.
 * `random` columns touch x anywhere: distances spread up to all of x. In a `banded` matrix, which is
 * what a reordering such as Cuthill and McKee's makes, row i touches x near i, and so does row i + 1: x
 * is reused within a few lines and is read from memory once.
 *
 * usage: spmv [random|banded] [rows] [rounds]       default: random 10000 10
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { per_row = 8, band = 32 };

static void multiply(int rows, const int* first, const int* column, const double* value,
                     const double* x, double* y) {
    for (int row = 0; row < rows; row++) {
        double sum = 0;
        for (int i = first[row]; i < first[row + 1]; i++) sum += value[i] * x[column[i]];
        y[row] = sum;
    }
}

int main(int argc, char** argv) {
    const char* kind = argc > 1 ? argv[1] : "random";
    int rows = argc > 2 ? atoi(argv[2]) : 10000, rounds = argc > 3 ? atoi(argv[3]) : 10;
    int banded = strcmp(kind, "banded") == 0;
    if ((!banded && strcmp(kind, "random") != 0) || rows < 1 || rows > 100000000) {
        fprintf(stderr, "usage: spmv [random|banded] [rows] [rounds]\n");
        return 2;
    }
    size_t entries = (size_t)rows * per_row;
    int* first = malloc(((size_t)rows + 1) * sizeof *first);
    int* column = malloc(entries * sizeof *column);
    double* value = malloc(entries * sizeof *value);
    double* x = malloc((size_t)rows * sizeof *x);
    double* y = calloc((size_t)rows, sizeof *y);
    if (!first || !column || !value || !x || !y) return 1;
    uint32_t state = 7;
    for (int row = 0; row < rows; row++) {
        first[row] = row * per_row;
        x[row] = 1.0 / (1 + row % 13);
        for (int i = 0; i < per_row; i++) {
            state = state * 1664525u + 1013904223u;
            long at =
                banded ? row - band + (long)(state >> 8) % (2 * band + 1) : (long)(state >> 1) % rows;
            at = at < 0 ? 0 : at >= rows ? rows - 1 : at;
            column[row * per_row + i] = (int)at;
            value[row * per_row + i] = 0.1;
        }
    }
    first[rows] = rows * per_row;
    for (int round = 0; round < rounds; round++) {
        multiply(rows, first, column, value, x, y);
        double* swapped = x;
        x = y;
        y = swapped;
    }
    double sum = 0;
    for (int row = 0; row < rows; row++) sum += x[row];
    printf("%s, %d rows, %d rounds: %.9f\n", kind, rows, rounds, sum);
    free(first);
    free(column);
    free(value);
    free(x);
    free(y);
    return 0;
}
