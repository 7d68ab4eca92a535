/* x1 += A y1, x2 += A^T y2 */
#ifndef N
#define N 120
#endif

static double A[N][N], x1[N], x2[N], y1[N], y2[N];

void kernel_mvt(void) {
  for (int i = 0; i < N; i++)
    for (int j = 0; j < N; j++) x1[i] += A[i][j] * y1[j];
  for (int i = 0; i < N; i++)
    for (int j = 0; j < N; j++) x2[i] += A[j][i] * y2[j];
}
