/* Matrix product in the style of BLIS: panels of A and B are packed into buffers that fit in cache, and a
   micro-kernel of 4 x 4 goes over them. predict --function gemm --param m=.. --param n=.. --param k=.. */
enum { MR = 4, NR = 4, MC = 32, KC = 48, NC = 64 };

static double packed_a[MC * KC], packed_b[KC * NC];

static int least(int a, int b) { return a < b ? a : b; }

static void pack_a(const double *a, int lda, int rows, int depth) {
  double *to = packed_a;
  for (int i = 0; i < rows; i += MR)
    for (int p = 0; p < depth; p++)
      for (int r = 0; r < MR; r++) *to++ = i + r < rows ? a[(i + r) * lda + p] : 0;
}

static void pack_b(const double *b, int ldb, int depth, int columns) {
  double *to = packed_b;
  for (int j = 0; j < columns; j += NR)
    for (int p = 0; p < depth; p++)
      for (int c = 0; c < NR; c++) *to++ = j + c < columns ? b[p * ldb + j + c] : 0;
}

static void micro_kernel(int depth, const double *a, const double *b, double *c, int ldc, int rows, int columns) {
  double sum[MR][NR] = {{0}};
  for (int p = 0; p < depth; p++)
    for (int r = 0; r < MR; r++)
      for (int s = 0; s < NR; s++) sum[r][s] += a[p * MR + r] * b[p * NR + s];
  for (int r = 0; r < rows; r++)
    for (int s = 0; s < columns; s++) c[r * ldc + s] += sum[r][s];
}

void gemm(int m, int n, int k, const double *restrict a, const double *restrict b, double *restrict c) {
  for (int jc = 0; jc < n; jc += NC)
    for (int pc = 0; pc < k; pc += KC) {
      const int nc = least(NC, n - jc), kc = least(KC, k - pc);
      pack_b(b + pc * n + jc, n, kc, nc);
      for (int ic = 0; ic < m; ic += MC) {
        const int mc = least(MC, m - ic);
        pack_a(a + ic * k + pc, k, mc, kc);
        for (int jr = 0; jr < nc; jr += NR)
          for (int ir = 0; ir < mc; ir += MR)
            micro_kernel(kc, packed_a + ir * kc, packed_b + jr * kc, c + (ic + ir) * n + jc + jr, n,
                         least(MR, mc - ir), least(NR, nc - jr));
      }
    }
}
