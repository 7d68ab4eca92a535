/* y = A^T (A x) */
#ifndef M
#define M 116
#endif
#ifndef N
#define N 124
#endif

static double A[M][N], x[N], y[N], tmp[M];

void kernel_atax(void) {
  for (int i = 0; i < N; i++) y[i] = 0.0;
  for (int i = 0; i < M; i++) {
    tmp[i] = 0.0;
    for (int j = 0; j < N; j++) tmp[i] += A[i][j] * x[j];
    for (int j = 0; j < N; j++) y[j] += A[i][j] * tmp[i];
  }
}
