/* OpenMP: loops, reductions, critical sections, barriers, tasks; eight threads whatever the machine
 * has. */
#include <omp.h>

#include "touch.h"

int main(void) {
    long touched = 0;
    omp_set_num_threads(8);
    for (int round = 0; round < 10; round++) {
#pragma omp parallel for reduction(+ : touched) schedule(static)
        for (int i = 0; i < 64; i++) {
            touch(50 + i);
            touched += 50 + i;
        }
#pragma omp parallel
        {
            touch(300);
#pragma omp barrier
#pragma omp critical
            {
                touch(5);
#pragma omp atomic
                touched += 305;
            }
#pragma omp single
            for (int i = 0; i < 20; i++) {
#pragma omp task
                {
                    touch(70);
#pragma omp atomic
                    touched += 70;
                }
            }
        }
    }
    printf("touched %ld\n", touched);
    return 0;
}
