/* Gaussian blur of an image in three channels, rows and then columns, edges repeated.
   predict --function blur --param width=60 --param height=40 --param radius=3 */
static int within(int at, int end) { return at < 0 ? 0 : at >= end ? end - 1 : at; }

void blur(int width, int height, int radius, const unsigned char *restrict in, float *restrict between,
          unsigned char *restrict out, const float *restrict weight) {
  for (int y = 0; y < height; y++)
    for (int x = 0; x < width; x++)
      for (int c = 0; c < 3; c++) {
        float sum = 0;
        for (int d = -radius; d <= radius; d++)
          sum += weight[d + radius] * in[(y * width + within(x + d, width)) * 3 + c];
        between[(y * width + x) * 3 + c] = sum;
      }
  for (int y = 0; y < height; y++)
    for (int x = 0; x < width; x++)
      for (int c = 0; c < 3; c++) {
        float sum = 0;
        for (int d = -radius; d <= radius; d++)
          sum += weight[d + radius] * between[(within(y + d, height) * width + x) * 3 + c];
        out[(y * width + x) * 3 + c] = (unsigned char)sum;
      }
}
