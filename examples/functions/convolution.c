/* A layer of a neural network: 3 x 3 convolution with padding, stride 1, ReLU, in the order batch, channel,
   row, column. predict --function convolve --param channels=8 --param filters=8 --param height=14 --param width=14 */
void convolve(int channels, int filters, int height, int width, const float *restrict in,
              const float *restrict weight, const float *restrict bias, float *restrict out) {
  for (int f = 0; f < filters; f++)
    for (int y = 0; y < height; y++)
      for (int x = 0; x < width; x++) {
        float sum = bias[f];
        for (int c = 0; c < channels; c++)
          for (int dy = -1; dy <= 1; dy++)
            for (int dx = -1; dx <= 1; dx++) {
              const int row = y + dy, column = x + dx;
              if (row < 0 || row >= height || column < 0 || column >= width) continue;
              sum += in[(c * height + row) * width + column] *
                     weight[((f * channels + c) * 3 + dy + 1) * 3 + dx + 1];
            }
        out[(f * height + y) * width + x] = sum > 0 ? sum : 0;
      }
}
