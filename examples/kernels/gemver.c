/* A += u1 v1^T + u2 v2^T, x = beta A^T y + z, w = alpha A x */
#ifndef N
#define N 120
#endif

static double A[N][N], u1[N], v1[N], u2[N], v2[N], w[N], x[N], y[N], z[N];

void kernel_gemver(double alpha, double beta) {
  for (int i = 0; i < N; i++)
    for (int j = 0; j < N; j++) A[i][j] += u1[i] * v1[j] + u2[i] * v2[j];
  for (int i = 0; i < N; i++)
    for (int j = 0; j < N; j++) x[i] += beta * A[j][i] * y[j];
  for (int i = 0; i < N; i++) x[i] += z[i];
  for (int i = 0; i < N; i++)
    for (int j = 0; j < N; j++) w[i] += alpha * A[i][j] * x[j];
}
