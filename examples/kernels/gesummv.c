/* y = alpha A x + beta B x */
#ifndef N
#define N 90
#endif

static double A[N][N], B[N][N], tmp[N], x[N], y[N];

void kernel_gesummv(double alpha, double beta) {
  for (int i = 0; i < N; i++) {
    tmp[i] = 0.0;
    y[i] = 0.0;
    for (int j = 0; j < N; j++) {
      tmp[i] += A[i][j] * x[j];
      y[i] += B[i][j] * x[j];
    }
    y[i] = alpha * tmp[i] + beta * y[i];
  }
}
