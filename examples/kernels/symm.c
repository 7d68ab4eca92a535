/* C = alpha A B + beta C, A symmetric and stored as its lower triangle */
#ifndef M
#define M 60
#endif
#ifndef N
#define N 80
#endif

static double C[M][N], A[M][M], B[M][N];

void kernel_symm(double alpha, double beta) {
  for (int i = 0; i < M; i++)
    for (int j = 0; j < N; j++) {
      double sum = 0.0;
      for (int k = 0; k < i; k++) {
        C[k][j] += alpha * B[i][j] * A[i][k];
        sum += B[k][j] * A[i][k];
      }
      C[i][j] = beta * C[i][j] + alpha * B[i][j] * A[i][i] + alpha * sum;
    }
}
