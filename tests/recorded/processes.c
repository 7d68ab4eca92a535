/* Children by fork, with threads of their own, ended in different ways; vfork and exec; system(). */
#include <pthread.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "touch.h"

static void* work(void* nothing) {
    touch(50000);
    return nothing;
}

int main(void) {
    long touched = 1000;
    touch(1000);
    for (int i = 0; i < 12; i++) {
        pid_t child = fork();
        if (child == 0) {
            touch(30000 + i);
            if (i % 3 == 0) {
                pthread_t thread;
                pthread_create(&thread, NULL, work, NULL);
                pthread_join(thread, NULL);
            }
            if (i % 2) _exit(0);
            exit(0);
        }
        touch(10);
        touched += 10 + 30000 + i + (i % 3 == 0 ? 50000 : 0);
        if (i % 4 == 0) waitpid(child, NULL, 0);
    }
    while (wait(NULL) > 0) continue;
    pid_t child = vfork();
    if (child == 0) {
        execl("/bin/true", "true", (char*)0);
        _exit(1);
    }
    waitpid(child, NULL, 0);
    touch(77);
    if (system("exit 3") != 3 << 8) return 1;
    printf("touched %ld\n", touched + 77);
    return 0;
}
