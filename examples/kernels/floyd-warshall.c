/* all shortest paths */
#ifndef N
#define N 180
#endif

static int path[N][N];

void kernel_floyd_warshall(void) {
  for (int k = 0; k < N; k++)
    for (int i = 0; i < N; i++)
      for (int j = 0; j < N; j++)
        path[i][j] = path[i][j] < path[i][k] + path[k][j] ? path[i][j] : path[i][k] + path[k][j];
}
