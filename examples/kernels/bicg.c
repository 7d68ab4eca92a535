/* s = A^T r and q = A p in one sweep */
#ifndef M
#define M 116
#endif
#ifndef N
#define N 124
#endif

static double A[N][M], s[M], q[N], p[M], r[N];

void kernel_bicg(void) {
  for (int i = 0; i < M; i++) s[i] = 0.0;
  for (int i = 0; i < N; i++) {
    q[i] = 0.0;
    for (int j = 0; j < M; j++) {
      s[j] += r[i] * A[i][j];
      q[i] += A[i][j] * p[j];
    }
  }
}
