// A tree that has become a list: as many calls deep as it has nodes. In a stack of 2 MiB a frame may
// have 340 bytes.
#include <stdio.h>
#include <stdlib.h>

struct node {
    struct node *low, *high;
    int value;
};

static struct node* insert(struct node* node, int value, int depth) {
    int parts[4] = {value * 3, depth + 1, value, depth};
    if (!node) {
        node = calloc(1, sizeof *node);
        node->value = parts[2];
        return node;
    }
    if (value < node->value)
        node->low = insert(node->low, value, parts[1]);
    else
        node->high = insert(node->high, value, parts[1]);
    return node;
}

int main(void) {
    struct node* root = NULL;
    int depth = 0;
    for (int i = 0; i < 100; i++) root = insert(root, i, 0);
    struct node* last = root;
    while (last->high) last = last->high;
    for (int i = 100; i < 6000; i++, last = last->high) last->high = insert(NULL, i, 0);
    root = insert(root, 6000, 0);
    for (struct node* at = root; at; at = at->high) depth++;
    printf("%d\n", depth);
    return 0;
}
