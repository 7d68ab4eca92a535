/* Calls that end in every way: by return, by a tail call, by a jump across several frames. Each step
   writes an element of its own, which says afterwards under which call path it was seen. */
#include <setjmp.h>
#include <stdlib.h>

#define keep __attribute__((noinline))
static volatile int data[64];
static jmp_buf back;

keep void touch(void) {
    for (int i = 0; i < 10; i++) data[i]++;
}
keep void helper(void) {
    touch();
    data[40]++;
}
keep void jumper(int n) {
    data[42]++;
    if (n == 0) longjmp(back, 1);
    jumper(n - 1);
    data[43]++;
}
keep int compare(const void* a, const void* b) {
    data[44]++;
    return *(const int*)a - *(const int*)b;
}
keep void after_jump(void) {
    if (setjmp(back) == 0) jumper(3);
    data[45]++;
    touch();
    data[46]++;
}
keep void sorts(void) {
    int x[4] = {3, 1, 2, 5};
    qsort(x, 4, sizeof *x, compare);
    data[47] += x[0];
}
keep void last(void) {
    data[48]++;
    touch();
}

int main(void) {
    helper();
    data[49]++;
    after_jump();
    data[50]++;
    sorts();
    data[51]++;
    last();
    return 0;
}
