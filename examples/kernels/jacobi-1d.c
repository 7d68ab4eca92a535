/* three-point average, two arrays in turn */
#ifndef TSTEPS
#define TSTEPS 40
#endif
#ifndef N
#define N 120
#endif

static double A[N], B[N];

void kernel_jacobi_1d(void) {
  for (int t = 0; t < TSTEPS; t++) {
    for (int i = 1; i < N - 1; i++) B[i] = 0.33333 * (A[i - 1] + A[i] + A[i + 1]);
    for (int i = 1; i < N - 1; i++) A[i] = 0.33333 * (B[i - 1] + B[i] + B[i + 1]);
  }
}
