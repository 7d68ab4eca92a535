/* A function whose accesses anyone can list: n³ times a, b; n² times c. Arrays begin on a line and lie
   apart, so that the distances do not depend on where they are. Compiled at -O1: nothing is vectorised.
 */
#include <stdio.h>

#include "revisit/region.h"

enum { n = 24 };
static _Alignas(64) double a[n * n], b[n * n], c[n * n];

__attribute__((noinline)) void kernel(void) {
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++) {
            double sum = 0;
            for (int k = 0; k < n; k++) sum += a[i * n + k] * b[k * n + j];
            c[i * n + j] = sum;
        }
}

int main(void) {
    for (int i = 0; i < n * n; i++) {
        a[i] = i;
        b[i] = n - i;
    }
    revisit_region_begin("whole");
    kernel();
    revisit_region_end("whole");
    printf("%g\n", c[5]);
    return 0;
}
