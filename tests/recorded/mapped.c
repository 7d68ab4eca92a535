/* Memory by other ways than small blocks: more mapped than there is, moved, unmapped in part and mapped
 * again, and a block whose pages are marked as they are touched. Says how often each was accessed. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#define KEPT __attribute__((noinline)) static
enum { PAGE = 4096, FEW = 1000, HUGE_BLOCK = 128 << 20 };

KEPT char *reserve(size_t bytes, char *at) {
    char *p = mmap(at, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | (at ? MAP_FIXED : 0), -1, 0);
    if (p == MAP_FAILED) exit(1);
    return p;
}
KEPT char *map_again(size_t bytes, char *at) {
    char *p = mmap(at, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    if (p == MAP_FAILED) exit(1);
    return p;
}
KEPT char *map_late(size_t bytes, char *at) {
    char *p = mmap(at, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED) exit(1);
    return p;
}
KEPT char *grow(char *p, size_t before, size_t bytes) {
    p = mremap(p, before, bytes, MREMAP_MAYMOVE);
    if (p == MAP_FAILED) exit(1);
    return p;
}
KEPT char *block(void) {
    char *p = malloc(HUGE_BLOCK);
    if (!p) exit(1);
    return p;
}
KEPT void fill(volatile char *p, size_t step) {
    for (long i = 0; i < FEW; i++) p[(size_t)i * step] = 1;
}

int main(void) {
    const size_t all = (size_t)1 << 38;
    char *whole = reserve(all, 0);
    fill(whole + all / 2, 3 * PAGE);
    /* The page in the middle is another mapping's, what lies on both sides stays. */
    munmap(whole + 10 * PAGE, PAGE);
    char *other = map_again(PAGE, whole + 10 * PAGE);
    fill(other, 1);
    fill(whole + 5 * PAGE, 1);
    fill(whole + 11 * PAGE, 1);
    char *grown = grow(whole, 4 * PAGE, 2000 * PAGE);
    fill(grown, 2 * PAGE);
    /* Where a block of the heap's lay, as a rule, which libc maps by itself. */
    char *small = malloc(1 << 20);
    if (!small) exit(1);
    fill(small, 1);
    char *at = (char *)(((size_t)small + PAGE - 1) & -(size_t)PAGE);
    free(small);
    fill(map_late(PAGE, at), 1);
    char *first = block();
    fill(first, HUGE_BLOCK / FEW);
    free(first);
    char *second = block();
    fill(second + HUGE_BLOCK - FEW, 1); /* the end, where the last page is not whole */
    free(second);
    printf("reserve %d map_again %d grow %d main %d map_late %d block %d\n", 3 * FEW, FEW, FEW, FEW, FEW, 2 * FEW);
    return 0;
}
