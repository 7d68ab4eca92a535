/* Every way for a program to end; the profile must be complete up to there. */
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "touch.h"

static void* fault(void* nothing) {
    touch(1000);
    *(volatile int*)8 = 1;
    return nothing;
}

int main(int argc, char** argv) {
    const char* how = argc > 1 ? argv[1] : "return";
    touch(123456);
    printf("touched %d\n", strcmp(how, "thread") == 0 ? 124456 : 123456);
    fflush(stdout);
    if (strcmp(how, "exit") == 0) exit(4);
    if (strcmp(how, "_exit") == 0) _exit(5);
    if (strcmp(how, "abort") == 0) abort();
    if (strcmp(how, "kill") == 0) kill(getpid(), SIGKILL);
    if (strcmp(how, "fault") == 0) *(volatile int*)8 = 1;
    if (strcmp(how, "exec") == 0) execl("/bin/true", "true", (char*)0);
    if (strcmp(how, "thread") == 0) {
        pthread_t thread;
        pthread_create(&thread, NULL, fault, NULL);
        pthread_join(thread, NULL);
    }
    return 3;
}
