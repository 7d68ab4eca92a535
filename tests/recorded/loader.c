/* Loads ./library.so. */
#include <dlfcn.h>
#include <pthread.h>

#include "touch.h"

static void* run(void* work) {
    ((void (*)(long))work)(5000);
    return NULL;
}

static void callback(long n) {
    touch(n);
}

int main(int argc, char** argv) {
    void* library = dlopen(argc > 1 ? argv[1] : "./library.so", RTLD_NOW);
    if (!library) {
        puts(dlerror());
        return 1;
    }
    void (*work)(long) = (void (*)(long))dlsym(library, "work");
    void (*call_back)(void (*)(long), long) =
        (void (*)(void (*)(long), long))dlsym(library, "call_back");
    touch(100);
    work(200000);
    pthread_t thread;
    pthread_create(&thread, NULL, run, (void*)work);
    pthread_join(thread, NULL);
    call_back(callback, 50);
    dlclose(library);
    touch(3);
    printf("touched %d\n", 100 + 200000 + 5000 + 5 + 50 + 6 + 3);
    return 0;
}
