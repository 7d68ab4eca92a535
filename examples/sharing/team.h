/* Runs one function on several threads that start together, and the argument all programs here take:
 * usage: PROGRAM [rounds] [threads]      default: 20000 4 */
#ifndef TEAM_H
#define TEAM_H

#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

enum { most_threads = 64, line_bytes = 64 };

static long rounds = 20000;
static int threads = 4;

struct member {
    pthread_t thread;
    void (*work)(int);
    int number;
};

static pthread_barrier_t start_line;

static void* run_member(void* of) {
    struct member* member = of;
    pthread_barrier_wait(&start_line);
    member->work(member->number);
    return NULL;
}

static void run_team(int argc, char** argv, void (*work)(int)) {
    static struct member members[most_threads];
    if (argc > 1) rounds = atol(argv[1]);
    if (argc > 2) threads = atoi(argv[2]);
    if (threads < 2 || threads > most_threads || rounds < 1) {
        fprintf(stderr, "usage: %s [rounds] [threads, 2 to %d]\n", argv[0], most_threads);
        exit(2);
    }
    pthread_barrier_init(&start_line, NULL, (unsigned)threads);
    for (int i = 0; i < threads; i++) {
        members[i].work = work;
        members[i].number = i;
        if (pthread_create(&members[i].thread, NULL, run_member, &members[i]) != 0) exit(1);
    }
    for (int i = 0; i < threads; i++) pthread_join(members[i].thread, NULL);
}

#endif
