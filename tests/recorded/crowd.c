/* Hundreds of threads at once, and many that come and go. */
#include <pthread.h>
#include <stdlib.h>

#include "touch.h"

static pthread_barrier_t all_here;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static long touched;

static void* stay(void* number) {
    long n = 1000 + (long)number;
    touch(n);
    pthread_barrier_wait(&all_here);
    touch(10);
    pthread_mutex_lock(&lock);
    touched += n + 10;
    pthread_mutex_unlock(&lock);
    return NULL;
}

static void* pass_by(void* nothing) {
    touch(17);
    return nothing;
}

int main(int argc, char** argv) {
    long crowd = argc > 1 ? atol(argv[1]) : 300;
    pthread_t* threads = malloc((size_t)crowd * sizeof *threads);
    pthread_attr_t small;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 65536);
    pthread_barrier_init(&all_here, NULL, (unsigned)crowd);
    for (long i = 0; i < crowd; i++)
        if (pthread_create(&threads[i], &small, stay, (void*)i)) return 1;
    for (long i = 0; i < crowd; i++) pthread_join(threads[i], NULL);
    for (int i = 0; i < 500; i++) {
        pthread_create(&threads[0], &small, pass_by, NULL);
        pthread_join(threads[0], NULL);
        touched += 17;
    }
    printf("touched %ld\n", touched);
    return 0;
}
