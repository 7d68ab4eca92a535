/* Sweeps 256 MiB over and over: each line comes back after a pass, which takes longer than the
 * intervals of `revisit top` in the test. */
#include <stdlib.h>
#include <string.h>

int main(void) {
    enum { bytes = 256 << 20 };
    volatile char *memory = malloc(bytes);
    if (!memory) return 1;
    memset((void *)memory, 1, bytes);
    for (;;)
        for (size_t i = 0; i < bytes; i += 64) memory[i]++;
}
