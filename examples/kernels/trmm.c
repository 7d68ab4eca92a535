/* B = alpha A^T B, A unit lower triangular */
#ifndef M
#define M 60
#endif
#ifndef N
#define N 80
#endif

static double A[M][M], B[M][N];

void kernel_trmm(double alpha) {
  for (int i = 0; i < M; i++)
    for (int j = 0; j < N; j++) {
      for (int k = i + 1; k < M; k++) B[i][j] += A[k][i] * B[k][j];
      B[i][j] = alpha * B[i][j];
    }
}
