/* A sparse matrix in compressed rows times a vector. The matrix decides what is read:
   predict --function spmv --param n=100 --data start=start.txt --data column=column.txt */
void spmv(int n, const int *restrict start, const int *restrict column, const double *restrict value,
          const double *restrict x, double *restrict y) {
  for (int i = 0; i < n; i++) {
    double sum = 0;
    for (int k = start[i]; k < start[i + 1]; k++) sum += value[k] * x[column[k]];
    y[i] = sum;
  }
}
