/* A library that is loaded while the program runs, used by two threads, and calls back. */
#include "touch.h"

void work(long n) {
    touch(n);
}

void call_back(void (*callback)(long), long n) {
    touch(5);
    callback(n);
    touch(6);
}
