// Accesses a constant away from each other, in many ways: the recorder writes one address for several of them.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define N 600
struct point {
    double x, y, z;
    struct point* next;
    int16_t tag;
    uint8_t rest[61];
};
static _Alignas(4096) double a[N + 8], b[N + 8], grid[40][48];
static _Alignas(4096) struct point points[N];
static _Alignas(4096) int32_t number[N];
static _Alignas(4096) unsigned char bytes[1 << 16];
static _Alignas(64) volatile int watched;
static _Alignas(64) int counter;

__attribute__((noinline)) void add(double* to, const double* from, long n) {
    for (long i = 0; i < n; i++) to[i] += from[i];
}
__attribute__((noinline)) void stencil(int rounds) {
    for (int round = 0; round < rounds; round++)
        for (int i = 1; i < 39; i++)
            for (int j = 1; j < 47; j++)
                grid[i][j] = 0.2 * (grid[i][j] + grid[i - 1][j] + grid[i + 1][j] + grid[i][j - 1] + grid[i][j + 1]);
}
__attribute__((noinline)) double walk(struct point* p) {
    double sum = 0;
    for (; p; p = p->next) {
        sum += p->x * p->z;
        p->y = sum;
        p->tag += 1;
        if (p->tag & 1) p->rest[60] ^= p->rest[0];
    }
    return sum;
}
// The index wraps: bytes[65535] and bytes[0] are neighbours here, and their addresses are not.
__attribute__((noinline)) unsigned around(uint16_t from, int n) {
    unsigned sum = 0;
    for (int i = 0; i < n; i++) {
        uint16_t at = (uint16_t)(from + i);
        sum += bytes[at] + bytes[(uint16_t)(at + 1)] + bytes[(uint16_t)(at - 1)];
        bytes[at] = (unsigned char)sum;
    }
    return sum;
}
__attribute__((noinline)) int backwards(int32_t* from, int n) {
    int sum = 0;
    for (int i = n - 1; i >= 2; i--) sum += from[i] - from[i - 1] * from[i - 2];
    return sum;
}
__attribute__((noinline)) void counted(int n) {
    for (int i = 0; i < n; i++) {
        watched = watched + 1;
        __atomic_fetch_add(&counter, 1, __ATOMIC_RELAXED);
        __atomic_store_n(&counter, counter + 1, __ATOMIC_RELEASE);
    }
}
__attribute__((noinline)) void chosen(int n) {
    for (int i = 0; i < n; i++)
        if (number[i] & 1) {
            number[i] += 2;
            a[i & 7] = a[(i & 7) + 1];
        }
}
// Pointers that are found before the loop, in a block that is not the first; 12 accesses an iteration.
struct row {
    const double* value;
    const int32_t* column;
};
__attribute__((noinline)) double gather(const struct row* row, int n) {
    if (n == 0) return 0;
    const double* value = row->value;
    const int32_t* column = row->column;
    double sum = 0;
#pragma clang loop unroll_count(4)
    for (int i = 0; i < n; i++) sum += value[i] * b[column[i] % N];
    return sum;
}

int main(void) {
    for (int i = 0; i < N; i++) {
        a[i] = i;
        b[i] = 2 * i;
        number[i] = i * 7;
        points[i].x = points[i].z = i;
        points[i].next = i + 1 < N ? &points[(i + 1) % N] : NULL;
    }
    static const struct row row = {a, number};  // not on the stack, which is left out
    for (int round = 0; round < 3; round++) {
        add(a, b, N);
        add(a + 1, a, N / 2);
        stencil(2);
        watched = (int)walk(points);
        counter += (int)around(65300, 700);
        counter += backwards(number, N);
        counted(50);
        chosen(N);
        watched = (int)gather(&row, N - round);
        memmove(b + 3, b, 64 * sizeof *b);
    }
    printf("%d\n", counter);
    return 0;
}
