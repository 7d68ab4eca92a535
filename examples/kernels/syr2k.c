/* C = alpha (A B^T + B A^T) + beta C, lower triangle */
#ifndef M
#define M 60
#endif
#ifndef N
#define N 80
#endif

static double C[N][N], A[N][M], B[N][M];

void kernel_syr2k(double alpha, double beta) {
  for (int i = 0; i < N; i++) {
    for (int j = 0; j <= i; j++) C[i][j] *= beta;
    for (int k = 0; k < M; k++)
      for (int j = 0; j <= i; j++) C[i][j] += A[j][k] * alpha * B[i][k] + B[j][k] * alpha * A[i][k];
  }
}
