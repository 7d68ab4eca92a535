/* A fast Fourier transform, pthreads and barriers.
 *
 * Butterflies of a pass are dealt out evenly. In the early passes a thread works in its own part; in the
 * last ones both halves of a butterfly belonged to different threads the pass before, so what it
 * reads was just written elsewhere.
 *
 * usage: fft [log2 of points] [threads] [times]       default: 14 4 1
 */
#include <complex.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static double complex* input;
static double complex* data;
static double complex* root;
static size_t points;
static int threads, times;
static pthread_barrier_t pass_done;

static void* work(void* argument) {
    size_t mine = (size_t)(long)argument, pairs = points / 2;
    size_t from = pairs * mine / (size_t)threads, to = pairs * (mine + 1) / (size_t)threads;
    for (int time = 0; time < times; time++) {
        for (size_t i = 2 * from; i < 2 * to; i++) data[i] = input[i];
        pthread_barrier_wait(&pass_done);
        for (size_t half = 1; half < points; half *= 2) {
            for (size_t k = from; k < to; k++) {
                size_t a = k / half * half * 2 + k % half, b = a + half;
                double complex t = root[k % half * (points / 2 / half)] * data[b];
                data[b] = data[a] - t;
                data[a] += t;
            }
            pthread_barrier_wait(&pass_done);
        }
    }
    return NULL;
}

int main(int argc, char** argv) {
    int bits = argc > 1 ? atoi(argv[1]) : 14;
    threads = argc > 2 ? atoi(argv[2]) : 4;
    times = argc > 3 ? atoi(argv[3]) : 1;
    if (bits < 2 || bits > 26 || threads < 1 || threads > 256 || times < 1)
        return fprintf(stderr, "usage: fft [log2 of points] [threads] [times]\n"), 2;
    points = (size_t)1 << bits;
    input = malloc(points * sizeof *input), data = malloc(points * sizeof *data);
    root = malloc(points / 2 * sizeof *root);
    pthread_t* started = malloc((size_t)threads * sizeof *started);
    if (!input || !data || !root || !started) return 1;
    double turn = -2 * acos(-1.0) / (double)points;
    for (size_t i = 0; i < points / 2; i++) root[i] = cexp(I * turn * (double)i);
    /* A pure tone of 5 periods, in bit-reversed order. */
    for (size_t i = 0; i < points; i++) {
        size_t reversed = 0;
        for (int b = 0; b < bits; b++) reversed |= (i >> b & 1) << (bits - 1 - b);
        input[reversed] = cexp(-I * turn * 5 * (double)i);
    }
    pthread_barrier_init(&pass_done, NULL, (unsigned)threads);
    for (long t = 0; t < threads; t++)
        if (pthread_create(&started[t], NULL, work, (void*)t) != 0) return 1;
    for (int t = 0; t < threads; t++) pthread_join(started[t], NULL);
    double peak = cabs(data[5]) / (double)points, rest = cabs(data[6]) / (double)points;
    printf("fft: tone %.6f, beside it %.6f\n", peak, rest);
    pthread_barrier_destroy(&pass_done);
    free(input), free(data), free(root), free(started);
    return fabs(peak - 1) < 1e-6 && rest < 1e-6 ? 0 : 1;
}
