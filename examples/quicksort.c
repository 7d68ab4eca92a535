/* Quicksort: locality that comes by itself.
 *
 * Each partition sweeps its range once from both ends; then the halves are sorted one after the other,
 * each within itself. A range of m numbers is swept again after the m numbers of its parent, so reuse
 * distances halve from level to level: the histogram falls off evenly over all powers of two, and every
 * cache, of whatever size, serves the levels that fit in it (a cache-oblivious algorithm). The
 * recursion's stack is hot throughout.
 *
 * usage: quicksort [count]       default: 100000
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

static void quicksort(int* values, long low, long high) {
    while (high - low > 16) {
        int pivot = values[low + (high - low) / 2];
        long i = low, j = high;
        while (i <= j) {
            while (values[i] < pivot) i++;
            while (values[j] > pivot) j--;
            if (i <= j) {
                int swapped = values[i];
                values[i++] = values[j];
                values[j--] = swapped;
            }
        }
        if (j - low < high - i) {
            quicksort(values, low, j);
            low = i;
        } else {
            quicksort(values, i, high);
            high = j;
        }
    }
    for (long i = low + 1; i <= high; i++) {
        int value = values[i];
        long j = i - 1;
        for (; j >= low && values[j] > value; j--) values[j + 1] = values[j];
        values[j + 1] = value;
    }
}

int main(int argc, char** argv) {
    long count = argc > 1 ? atol(argv[1]) : 100000;
    if (count < 1) {
        fprintf(stderr, "usage: quicksort [count]\n");
        return 2;
    }
    int* values = malloc((size_t)count * sizeof *values);
    if (!values) return 1;
    uint32_t state = 12345;
    for (long i = 0; i < count; i++) {
        state = state * 1664525u + 1013904223u;
        values[i] = (int)(state >> 1);
    }
    quicksort(values, 0, count - 1);
    for (long i = 1; i < count; i++)
        if (values[i - 1] > values[i]) return 1;
    printf("%ld numbers sorted, median %d\n", count, values[count / 2]);
    free(values);
    return 0;
}
