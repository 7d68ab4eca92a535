/* LU factors with row exchanges, right-looking, as LAPACK's dgetf2. The pivots are taken as found before
   (--data pivot=FILE): they decide which rows change places.
   predict --function factor --param n=40 --data pivot=pivots.txt */
void factor(int n, double *restrict a, const int *restrict pivot) {
  for (int j = 0; j < n; j++) {
    const int p = pivot[j];
    if (p != j)
      for (int k = 0; k < n; k++) {
        const double t = a[j * n + k];
        a[j * n + k] = a[p * n + k];
        a[p * n + k] = t;
      }
    const double inverse = 1 / a[j * n + j];
    for (int i = j + 1; i < n; i++) a[i * n + j] *= inverse;
    for (int i = j + 1; i < n; i++)
      for (int k = j + 1; k < n; k++) a[i * n + k] -= a[i * n + j] * a[j * n + k];
  }
}
