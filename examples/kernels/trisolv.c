/* L x = b by forward substitution */
#ifndef N
#define N 120
#endif

static double L[N][N], x[N], b[N];

void kernel_trisolv(void) {
  for (int i = 0; i < N; i++) {
    x[i] = b[i];
    for (int j = 0; j < i; j++) x[i] -= L[i][j] * x[j];
    x[i] = x[i] / L[i][i];
  }
}
