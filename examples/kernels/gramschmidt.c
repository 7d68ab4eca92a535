/* A = Q R by modified Gram and Schmidt */
#ifndef M
#define M 60
#endif
#ifndef N
#define N 80
#endif

static double A[M][N], R[N][N], Q[M][N];

double sqrt(double);

void kernel_gramschmidt(void) {
  for (int k = 0; k < N; k++) {
    double norm = 0.0;
    for (int i = 0; i < M; i++) norm += A[i][k] * A[i][k];
    R[k][k] = sqrt(norm);
    for (int i = 0; i < M; i++) Q[i][k] = A[i][k] / R[k][k];
    for (int j = k + 1; j < N; j++) {
      R[k][j] = 0.0;
      for (int i = 0; i < M; i++) R[k][j] += Q[i][k] * A[i][j];
      for (int i = 0; i < M; i++) A[i][j] = A[i][j] - Q[i][k] * R[k][j];
    }
  }
}
