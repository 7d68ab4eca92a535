/* Local alignment of two sequences with affine gaps (Gotoh), one row of scores at a time.
   predict --function align --param n=300 --param m=200 */
static int larger(int a, int b) { return a > b ? a : b; }

int align(int n, int m, const char *restrict query, const char *restrict target, int *restrict score,
          int *restrict gap) {
  int best = 0;
  for (int j = 0; j <= m; j++) {
    score[j] = 0;
    gap[j] = -1000;
  }
  for (int i = 1; i <= n; i++) {
    int diagonal = 0, left = -1000;
    for (int j = 1; j <= m; j++) {
      const int match = diagonal + (query[i - 1] == target[j - 1] ? 5 : -4);
      left = larger(score[j - 1] - 10, left - 1);
      gap[j] = larger(score[j] - 10, gap[j] - 1);
      diagonal = score[j];
      score[j] = larger(larger(match, 0), larger(left, gap[j]));
      best = larger(best, score[j]);
    }
  }
  return best;
}
