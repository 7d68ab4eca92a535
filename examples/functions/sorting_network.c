/* Bitonic sort of 2^bits numbers: the same comparisons whatever the data.
   predict --function sort --param bits=9 */
void sort(int bits, float *x) {
  const int n = 1 << bits;
  for (int k = 2; k <= n; k <<= 1)
    for (int j = k >> 1; j > 0; j >>= 1)
      for (int i = 0; i < n; i++) {
        const int other = i ^ j;
        if (other <= i) continue;
        const float a = x[i], b = x[other];
        const float low = a < b ? a : b, high = a < b ? b : a;
        const int up = (i & k) == 0;
        x[i] = up ? low : high;
        x[other] = up ? high : low;
      }
}
