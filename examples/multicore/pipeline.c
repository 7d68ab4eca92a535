/* Similar images, searched in stages: pthreads, queues with mutexes and condition variables.
 *
 * Four threads in a row: make an image, take its features, compare them with a table, rank what was
 * found. An image is written by one thread and read by the next: its lines are invalidated once each and
 * never reused where they were made. The table belongs to one stage and stays in its cache.
 *
 * usage: pipeline [images] [table rows]       default: 300 512
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum { side = 32, features = 64, depth = 8 };

struct item {
    unsigned id;
    unsigned char pixel[side * side];
    float feature[features];
    unsigned best;
    float score;
};

struct queue {
    struct item* slot[depth];
    unsigned head, count;
    pthread_mutex_t lock;
    pthread_cond_t changed;
};

static struct queue queues[3] = {
    {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER},
    {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER},
    {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER}};
static unsigned images, rows, ranked, wrong;
static float (*table)[features];

static void put(struct queue* q, struct item* item) {
    pthread_mutex_lock(&q->lock);
    while (q->count == depth) pthread_cond_wait(&q->changed, &q->lock);
    q->slot[(q->head + q->count++) % depth] = item;
    pthread_cond_broadcast(&q->changed);
    pthread_mutex_unlock(&q->lock);
}

static struct item* take(struct queue* q) {
    pthread_mutex_lock(&q->lock);
    while (q->count == 0) pthread_cond_wait(&q->changed, &q->lock);
    struct item* item = q->slot[q->head];
    q->head = (q->head + 1) % depth, q->count--;
    pthread_cond_broadcast(&q->changed);
    pthread_mutex_unlock(&q->lock);
    return item;
}

static void* make_images(void* unused) {
    for (unsigned i = 0; i < images; i++) {
        struct item* item = malloc(sizeof *item);
        if (!item) abort();
        item->id = i;
        for (unsigned p = 0; p < side * side; p++)
            item->pixel[p] = (unsigned char)((p / 16 * 2654435761u + i % rows * 97u) >> 5);
        put(&queues[0], item);
    }
    put(&queues[0], NULL);
    return unused;
}

static void features_of(const unsigned char* pixel, float* feature) {
    for (int f = 0; f < features; f++) {
        int sum = 0;
        for (int k = 0; k < side * side / features; k++) sum += pixel[f * (side * side / features) + k];
        feature[f] = (float)sum;
    }
}

static void* extract(void* unused) {
    struct item* item;
    while ((item = take(&queues[0]))) {
        features_of(item->pixel, item->feature);
        put(&queues[1], item);
    }
    put(&queues[1], NULL);
    return unused;
}

static void* compare(void* unused) {
    struct item* item;
    while ((item = take(&queues[1]))) {
        item->score = 1e30f;
        for (unsigned r = 0; r < rows; r++) {
            float sum = 0;
            for (int f = 0; f < features; f++)
                sum += (item->feature[f] - table[r][f]) * (item->feature[f] - table[r][f]);
            if (sum < item->score) item->score = sum, item->best = r;
        }
        put(&queues[2], item);
    }
    put(&queues[2], NULL);
    return unused;
}

static void* rank(void* unused) {
    struct item* item;
    while ((item = take(&queues[2]))) {
        ranked++, wrong += item->score != 0;
        free(item);
    }
    return unused;
}

int main(int argc, char** argv) {
    images = argc > 1 ? (unsigned)atoi(argv[1]) : 300, rows = argc > 2 ? (unsigned)atoi(argv[2]) : 512;
    if (images < 1 || rows < 1) return fprintf(stderr, "usage: pipeline [images] [table rows]\n"), 2;
    table = malloc(rows * sizeof *table);
    if (!table) return 1;
    for (unsigned r = 0; r < rows; r++) {
        unsigned char pixel[side * side];
        for (unsigned p = 0; p < side * side; p++)
            pixel[p] = (unsigned char)((p / 16 * 2654435761u + r * 97u) >> 5);
        features_of(pixel, table[r]);
    }
    void* (*stage[])(void*) = {make_images, extract, compare, rank};
    pthread_t thread[4];
    for (int i = 0; i < 4; i++)
        if (pthread_create(&thread[i], NULL, stage[i], NULL) != 0) return 1;
    for (int i = 0; i < 4; i++) pthread_join(thread[i], NULL);
    printf("pipeline: %u images ranked, %u not found\n", ranked, wrong);
    free(table);
    return ranked == images && wrong == 0 ? 0 : 1;
}
