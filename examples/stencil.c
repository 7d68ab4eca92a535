/* A heat stencil: row by row, and in blocks of time.
 *
 * Every cell becomes the mean of its four neighbours, `steps` times over. Sweeping the plane row by
 * row, a row is used as the lower, the middle and the upper one within three rows (a distance of some
 * rows), then not again until the next step, after the whole plane twice over. `blocked` takes a band
 * of rows through several steps while it is near, the band slanting up one row a step so that every
 * value it needs is there: the distance between steps shrinks from the plane to the band.
 *
 * usage: stencil [plain|blocked] [n] [steps]       default: plain 256 16
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void sweep_row(const double* from, double* to, int n, int row) {
    const double *up = from + (size_t)(row - 1) * (size_t)n, *here = up + n, *down = here + n;
    double* out = to + (size_t)row * (size_t)n;
    for (int i = 1; i + 1 < n; i++) out[i] = 0.25 * (up[i] + down[i] + here[i - 1] + here[i + 1]);
}

static void plain(double* planes[2], int n, int steps) {
    for (int step = 0; step < steps; step++)
        for (int row = 1; row + 1 < n; row++)
            sweep_row(planes[step & 1], planes[(step & 1) ^ 1], n, row);
}

/* Bands of `band` rows over `depth` steps; at step s a band has moved up by s rows. */
static void blocked(double* planes[2], int n, int steps) {
    enum { band = 32, depth = 8 };
    for (int first = 0; first < steps; first += depth) {
        int last = first + depth < steps ? first + depth : steps;
        for (int base = 1; base < n - 1 + (last - first); base += band)
            for (int step = first; step < last; step++) {
                int low = base - (step - first), high = low + band;
                if (low < 1) low = 1;
                if (high > n - 1) high = n - 1;
                for (int row = low; row < high; row++)
                    sweep_row(planes[step & 1], planes[(step & 1) ^ 1], n, row);
            }
    }
}

int main(int argc, char** argv) {
    const char* kind = argc > 1 ? argv[1] : "plain";
    int n = argc > 2 ? atoi(argv[2]) : 256, steps = argc > 3 ? atoi(argv[3]) : 16;
    int in_blocks = strcmp(kind, "blocked") == 0;
    if ((!in_blocks && strcmp(kind, "plain") != 0) || n < 3) {
        fprintf(stderr, "usage: stencil [plain|blocked] [n] [steps]\n");
        return 2;
    }
    size_t cells = (size_t)n * (size_t)n;
    double* planes[2] = {calloc(cells, sizeof(double)), calloc(cells, sizeof(double))};
    if (!planes[0] || !planes[1]) return 1;
    for (int i = 0; i < n; i++) planes[0][i] = planes[1][i] = 100;
    (in_blocks ? blocked : plain)(planes, n, steps);
    double sum = 0;
    for (size_t i = 0; i < cells; i++) sum += planes[steps & 1][i];
    printf("%s, %d × %d, %d steps: %.6f\n", kind, n, n, steps, sum);
    free(planes[0]);
    free(planes[1]);
    return 0;
}
