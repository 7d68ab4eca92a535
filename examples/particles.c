/* Array of structs against struct of arrays.
 *
 * A particle has eight numbers, 64 bytes: one line. The step that moves it uses two of them, and only
 * along x. As an array of structs every particle's line is fetched for 16 useful bytes. As a struct of
 * arrays the two numbers of eight particles fill two lines to the last byte: seven of eight accesses
 * are reuses at distance 1 or less, and a sweep touches a quarter of the lines. A sweep that needs all
 * eight numbers (energy) would not care.
 *
 * usage: particles [aos|soa] [count] [steps]       default: aos 20000 20
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct particle {
    double x, y, z, vx, vy, vz, mass, charge;
};

struct particles {
    double *x, *y, *z, *vx, *vy, *vz, *mass, *charge;
};

static void move_structs(struct particle* p, size_t count, double dt) {
    for (size_t i = 0; i < count; i++) p[i].x += dt * p[i].vx;
}

static void move_arrays(struct particles* p, size_t count, double dt) {
    double* restrict x = p->x;
    const double* restrict vx = p->vx;
    for (size_t i = 0; i < count; i++) x[i] += dt * vx[i];
}

int main(int argc, char** argv) {
    const char* layout = argc > 1 ? argv[1] : "aos";
    size_t count = argc > 2 ? strtoul(argv[2], NULL, 10) : 20000;
    int steps = argc > 3 ? atoi(argv[3]) : 20;
    double sum = 0;
    if (strcmp(layout, "aos") == 0) {
        struct particle* p = calloc(count, sizeof *p);
        if (!p) return 1;
        for (size_t i = 0; i < count; i++) p[i].vx = (double)i;
        for (int step = 0; step < steps; step++) move_structs(p, count, 0.5);
        for (size_t i = 0; i < count; i++) sum += p[i].x;
        free(p);
    } else if (strcmp(layout, "soa") == 0) {
        double* all = calloc(count, 8 * sizeof *all);
        if (!all) return 1;
        struct particles p = {all,
                              all + count,
                              all + 2 * count,
                              all + 3 * count,
                              all + 4 * count,
                              all + 5 * count,
                              all + 6 * count,
                              all + 7 * count};
        for (size_t i = 0; i < count; i++) p.vx[i] = (double)i;
        for (int step = 0; step < steps; step++) move_arrays(&p, count, 0.5);
        for (size_t i = 0; i < count; i++) sum += p.x[i];
        free(all);
    } else {
        fprintf(stderr, "usage: particles [aos|soa] [count] [steps]\n");
        return 2;
    }
    printf("%s, %zu particles, %d steps: %.1f\n", layout, count, steps, sum);
    return 0;
}
