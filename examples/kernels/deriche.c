/* edge detection by recursive filters, horizontally and then vertically */
#ifndef W
#define W 192
#endif
#ifndef H
#define H 128
#endif

static float in[W][H], out[W][H], y1[W][H], y2[W][H];

void kernel_deriche(float a1, float a2, float a3, float a4, float b1, float b2, float c1, float c2) {
  float a5 = a1, a6 = a2, a7 = a3, a8 = a4;
  for (int i = 0; i < W; i++) {
    float ym1 = 0, ym2 = 0, xm1 = 0;
    for (int j = 0; j < H; j++) {
      y1[i][j] = a1 * in[i][j] + a2 * xm1 + b1 * ym1 + b2 * ym2;
      xm1 = in[i][j];
      ym2 = ym1;
      ym1 = y1[i][j];
    }
  }
  for (int i = 0; i < W; i++) {
    float yp1 = 0, yp2 = 0, xp1 = 0, xp2 = 0;
    for (int j = H - 1; j >= 0; j--) {
      y2[i][j] = a3 * xp1 + a4 * xp2 + b1 * yp1 + b2 * yp2;
      xp2 = xp1;
      xp1 = in[i][j];
      yp2 = yp1;
      yp1 = y2[i][j];
    }
  }
  for (int i = 0; i < W; i++)
    for (int j = 0; j < H; j++) out[i][j] = c1 * (y1[i][j] + y2[i][j]);
  for (int j = 0; j < H; j++) {
    float tm1 = 0, ym1 = 0, ym2 = 0;
    for (int i = 0; i < W; i++) {
      y1[i][j] = a5 * out[i][j] + a6 * tm1 + b1 * ym1 + b2 * ym2;
      tm1 = out[i][j];
      ym2 = ym1;
      ym1 = y1[i][j];
    }
  }
  for (int j = 0; j < H; j++) {
    float tp1 = 0, tp2 = 0, yp1 = 0, yp2 = 0;
    for (int i = W - 1; i >= 0; i--) {
      y2[i][j] = a7 * tp1 + a8 * tp2 + b1 * yp1 + b2 * yp2;
      tp2 = tp1;
      tp1 = out[i][j];
      yp2 = yp1;
      yp1 = y2[i][j];
    }
  }
  for (int i = 0; i < W; i++)
    for (int j = 0; j < H; j++) out[i][j] = c2 * (y1[i][j] + y2[i][j]);
}
