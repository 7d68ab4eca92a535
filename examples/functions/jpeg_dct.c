/* Forward discrete cosine transform of 8 x 8 blocks in integers, rows and then columns, and quantization:
   what a JPEG encoder does with every block. predict --function dct_image --param width=64 --param height=48 */
static const int quantizer[64] = {
    16, 11, 10, 16, 24,  40,  51,  61,  12, 12, 14, 19, 26,  58,  60,  55,  14, 13, 16, 24, 40,  57,
    69, 56, 14, 17, 22,  29,  51,  87,  80, 62, 18, 22, 37,  56,  68,  109, 103, 77, 24, 35, 55, 64,
    81, 104, 113, 92, 49, 64, 78,  87,  103, 121, 120, 101, 72, 92, 95,  98,  112, 100, 103, 99};

static void transform(int *d, int stride) {
  const int s07 = d[0] + d[7 * stride], d07 = d[0] - d[7 * stride];
  const int s16 = d[stride] + d[6 * stride], d16 = d[stride] - d[6 * stride];
  const int s25 = d[2 * stride] + d[5 * stride], d25 = d[2 * stride] - d[5 * stride];
  const int s34 = d[3 * stride] + d[4 * stride], d34 = d[3 * stride] - d[4 * stride];
  const int e0 = s07 + s34, e3 = s07 - s34, e1 = s16 + s25, e2 = s16 - s25;
  d[0] = e0 + e1;
  d[4 * stride] = e0 - e1;
  d[2 * stride] = (e2 * 4433 + e3 * 10703) >> 13;
  d[6 * stride] = (e3 * 4433 - e2 * 10703) >> 13;
  d[stride] = (d07 * 11363 + d16 * 9633 + d25 * 6437 + d34 * 2260) >> 13;
  d[3 * stride] = (d07 * 9633 - d16 * 2260 - d25 * 11363 - d34 * 6437) >> 13;
  d[5 * stride] = (d07 * 6437 - d16 * 11363 + d25 * 2260 + d34 * 9633) >> 13;
  d[7 * stride] = (d07 * 2260 - d16 * 6437 + d25 * 9633 - d34 * 11363) >> 13;
}

void dct_image(int width, int height, const unsigned char *restrict pixels, int *restrict out) {
  for (int y = 0; y < height; y += 8)
    for (int x = 0; x < width; x += 8) {
      int *block = out + y * width + x * 8;
      for (int i = 0; i < 8; i++)
        for (int j = 0; j < 8; j++) block[i * 8 + j] = pixels[(y + i) * width + x + j] - 128;
      for (int i = 0; i < 8; i++) transform(block + i * 8, 1);
      for (int j = 0; j < 8; j++) transform(block + j, 8);
      for (int k = 0; k < 64; k++) block[k] /= quantizer[k];
    }
}
