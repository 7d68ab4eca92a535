/* Gravity between all pairs of bodies, then one step of time.
   predict --function advance --param n=120 --param steps=3 */
struct body {
  double x[3], v[3], mass;
};

double sqrt(double);

void advance(int n, int steps, struct body *b) {
  for (int t = 0; t < steps; t++) {
    for (int i = 0; i < n; i++)
      for (int j = i + 1; j < n; j++) {
        double d[3], square = 1e-9;
        for (int k = 0; k < 3; k++) {
          d[k] = b[i].x[k] - b[j].x[k];
          square += d[k] * d[k];
        }
        const double force = 0.01 / (square * sqrt(square));
        for (int k = 0; k < 3; k++) {
          b[i].v[k] -= d[k] * b[j].mass * force;
          b[j].v[k] += d[k] * b[i].mass * force;
        }
      }
    for (int i = 0; i < n; i++)
      for (int k = 0; k < 3; k++) b[i].x[k] += 0.01 * b[i].v[k];
  }
}
