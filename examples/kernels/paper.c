/* The loop nests of "Static Reuse Profile Estimation for Array Applications" (Razzak, Barai, Santhi, Badawy),
 * as its text and its published totals give them. The paper counts every load and store of the unoptimised
 * code, scalars and loop indices included: predict them with --opt 0 --granularity 1. The bodies of atax,
 * gemver and trmm are inferred from the totals; they fit the loops that fill the arrays. */
#ifndef I
#define I 2
#endif
#ifndef J
#define J 2
#endif
#ifndef K
#define K 2
#endif

static int Ai[500][500], Bi[500][500];
static double A[1200][1200], B[1200][1200], C[1200][1200];
static double x1[1200], y1[1200], u1[1200], u2[1200], v1[1200], v2[1200], y[1200], z[1200], x[1200], w[1200];

int figure_1(void) {
  int retval = 0, i, j, k, alpha = 99;
  for (i = 0; i < I; i++)
    for (j = 0; j < J; j++)
      for (k = 0; k < K; k++) {
        Ai[i][k] = alpha * Ai[i][k];
        Bi[j][k] = alpha;
      }
  return 0;
}

int figure_4(void) {
  int retval = 0, k, alpha = 99;
  for (k = 0; k < K; k++) {
    Ai[0][k] = alpha * Ai[0][k];
    Bi[0][k] = alpha;
  }
  return 0;
}

int paper_atax(void) {
  int retval = 0, ni = I, nj = J, i, j;
  double a = 1, b = 2, c = 3;
  for (i = 0; i < ni; i++)
    for (j = 0; j < nj; j++) A[i][j] = ((double)i * (j + 1)) / ni;
  return 0;
}

int paper_mvt(void) {
  int retval = 0, n = I, m = J, i, j;
  double a = 1, b = 2, c = 3;
  for (i = 0; i < n; i++)
    for (j = 0; j < m; j++) x1[i] = x1[i] + A[i][j] * y1[j];
  return 0;
}

int paper_gemver(void) {
  int retval = 0, n = I, m = J, i, j;
  double alpha = 1, beta = 2, fn = 3;
  for (i = 0; i < n; i++) {
    u1[i] = i;
    u2[i] = (i + 1) / n / 2.0;
    v1[i] = (i + 1) / n / 4.0;
    v2[i] = (i + 1) / n / 6.0;
    y[i] = (i + 1) / n / 8.0;
    z[i] = (i + 1) / n / 9.0;
    x[i] = 0.0;
    w[i] = 0.0;
    for (j = 0; j < m; j++) A[i][j] = ((double)i * j) / n;
  }
  return 0;
}

int paper_trmm(void) {
  int retval = 0, ni = I, nj = J, i, j;
  double alpha = 1, b = 2, c = 3;
  for (i = 0; i < ni; i++)
    for (j = 0; j < nj; j++) {
      A[i][j] = ((double)i * j) / ni;
      B[i][j] = ((double)i * j) / ni;
    }
  return 0;
}

int paper_2mm(void) {
  int retval = 0, ni = I, nj = J, nk = K, i, j, k;
  double alpha = 1, beta = 2;
  for (i = 0; i < ni; i++)
    for (j = 0; j < nj; j++) {
      C[i][j] = 0;
      for (k = 0; k < nk; k++) C[i][j] += alpha * A[i][k] * B[k][j];
    }
  return 0;
}

int paper_3mm(void) {
  int retval = 0, ni = I, nj = J, nk = K, i, j, k;
  double alpha = 1, beta = 2;
  for (i = 0; i < ni; i++)
    for (j = 0; j < nj; j++) {
      C[i][j] = 0;
      for (k = 0; k < nk; k++) C[i][j] += A[i][k] * B[k][j];
    }
  return 0;
}
