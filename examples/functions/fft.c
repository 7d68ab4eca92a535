/* Fast Fourier transform of 2^bits complex numbers, in place: bit reversal, then butterflies of doubling
   span with a table of twiddle factors. predict --function fft --param bits=10 */
typedef struct {
  double re, im;
} complex_number;

void fft(int bits, complex_number *restrict x, const complex_number *restrict twiddle) {
  const int n = 1 << bits;
  for (int i = 1, j = 0; i < n; i++) {
    int bit = n >> 1;
    for (; j & bit; bit >>= 1) j ^= bit;
    j ^= bit;
    if (i < j) {
      const complex_number t = x[i];
      x[i] = x[j];
      x[j] = t;
    }
  }
  for (int span = 1; span < n; span <<= 1) {
    const int step = n / (2 * span);
    for (int start = 0; start < n; start += 2 * span)
      for (int k = 0; k < span; k++) {
        const complex_number w = twiddle[k * step], a = x[start + k], b = x[start + k + span];
        const double re = b.re * w.re - b.im * w.im, im = b.re * w.im + b.im * w.re;
        x[start + k].re = a.re + re;
        x[start + k].im = a.im + im;
        x[start + k + span].re = a.re - re;
        x[start + k + span].im = a.im - im;
      }
  }
}
