/* The same sum over a linked list and over an array.
 *
 * Both hold the same numbers and are gone through `rounds` times, so both reuse everything at a
 * distance of the whole structure. The array packs sixteen numbers into a line: fifteen of sixteen
 * accesses are immediate reuses, and the whole is a sixteenth as many lines. The list's nodes were
 * linked in random order, so each step is a line of its own, twice read (value, next) and then not
 * again for a round: half of all accesses are at the full distance of the list. And the next address
 * comes out of the miss.
 *
 * usage: list [list|array] [length] [rounds]       default: list 20000 20
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct node {
    struct node* next;
    int value;
    char rest[48]; /* what a real record would carry */
};

static uint64_t random_state = 88172645463325252u;
static uint64_t next_random(void) {
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return random_state;
}

/* Links the nodes into one list in random order (Fisher and Yates). */
static struct node* make_list(struct node* nodes, size_t length) {
    size_t* order = malloc(length * sizeof *order);
    if (!order) exit(1);
    for (size_t i = 0; i < length; i++) order[i] = i;
    for (size_t i = length - 1; i > 0; i--) {
        size_t j = next_random() % (i + 1), swapped = order[i];
        order[i] = order[j];
        order[j] = swapped;
    }
    for (size_t i = 0; i < length; i++) {
        nodes[order[i]].value = (int)i;
        nodes[order[i]].next = i + 1 < length ? &nodes[order[i + 1]] : NULL;
    }
    struct node* first = &nodes[order[0]];
    free(order);
    return first;
}

static long sum_list(const struct node* first) {
    long sum = 0;
    for (const struct node* node = first; node; node = node->next) sum += node->value;
    return sum;
}

static long sum_array(const int* values, size_t length) {
    long sum = 0;
    for (size_t i = 0; i < length; i++) sum += values[i];
    return sum;
}

int main(int argc, char** argv) {
    const char* kind = argc > 1 ? argv[1] : "list";
    size_t length = argc > 2 ? strtoul(argv[2], NULL, 10) : 20000;
    int rounds = argc > 3 ? atoi(argv[3]) : 20;
    int use_list = strcmp(kind, "list") == 0;
    if ((!use_list && strcmp(kind, "array") != 0) || length < 1) {
        fprintf(stderr, "usage: list [list|array] [length] [rounds]\n");
        return 2;
    }
    long sum = 0;
    if (use_list) {
        struct node* nodes = malloc(length * sizeof *nodes);
        if (!nodes) return 1;
        struct node* first = make_list(nodes, length);
        for (int round = 0; round < rounds; round++) sum += sum_list(first);
        free(nodes);
    } else {
        int* values = malloc(length * sizeof *values);
        if (!values) return 1;
        for (size_t i = 0; i < length; i++) values[i] = (int)i;
        for (int round = 0; round < rounds; round++) {
            sum += sum_array(values, length);
            __asm__ volatile("" : : "r"(values) : "memory"); /* every round is another sum */
        }
        free(values);
    }
    printf("%s of %zu, %d rounds: %ld\n", kind, length, rounds, sum);
    return 0;
}
