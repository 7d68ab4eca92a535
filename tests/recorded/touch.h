/* A known number of accesses: touch(n) stores n times, whatever the optimiser does. A program says at
   its end "touched N", and N must be what the profile has for the function. */
#ifndef TOUCH_H
#define TOUCH_H

#include <stdio.h>

static volatile int area[1024];

__attribute__((noinline)) static void touch(long n) {
    for (long i = 0; i < n; i++) area[i & 1023] = (int)i;
}

#endif
