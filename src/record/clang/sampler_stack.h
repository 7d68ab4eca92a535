/* One stack: when each block was used last, and the samples that are open in it.
 *
 * Problem. Every open sample has a set of the blocks used since its start; to look a block up in each,
 * for each access, costs as much as there are samples. Idea. The sets are nested: the set of a sample
 * holds the blocks last used after its start. So one table, block → time of last use, stands for all,
 * and engines/sample_sets.h counts what enters them (engines/sample.cpp does the same). Cost. One
 * look-up an access and a few steps: 8 ns an access while a sample is open.
 */
#ifndef REVISIT_RECORD_CLANG_SAMPLER_STACK_H
#define REVISIT_RECORD_CLANG_SAMPLER_STACK_H

#include "record/clang/sampler_state.h"

static inline uint64_t hash(uint64_t block) {
    return (block ^ block >> 32) * 0x9e3779b97f4a7c15ull;
}
static inline uint64_t filter_bit(uint64_t block) {
    return 1ull << (hash(block) >> 58);
}

/* Tables. They forget what is older than `oldest` whenever they are full. */
static inline table_entry* table_slot(const table* t, uint64_t block) {
    uint64_t i = hash(block) >> t->shift;
    while (t->entries[i].stamp && t->entries[i].block != block) i = (i + 1) & (t->size - 1);
    return &t->entries[i];
}
static inline int table_make(table* t, uint64_t size) {
    table_entry* entries = own_memory(size * sizeof *entries);
    if (!entries) return 0;
    t->entries = entries;
    t->size = size;
    t->used = 0;
    t->shift = 64 - (unsigned)__builtin_ctzll(size);
    return 1;
}
static inline void table_free(table* t) {
    if (t->entries) munmap(t->entries, t->size * sizeof *t->entries);
    memset(t, 0, sizeof *t);
}
static inline int table_rebuild(table* t, uint64_t oldest) {
    table old = *t;
    uint64_t kept = 0, size = 1024;
    for (uint64_t i = 0; i < old.size; i++) kept += old.entries[i].stamp > oldest;
    while (size < 4 * kept) size *= 2;
    if (!table_make(t, size)) {
        *t = old;
        return 0;
    }
    for (uint64_t i = 0; i < old.size; i++)
        if (old.entries[i].stamp > oldest) {
            *table_slot(t, old.entries[i].block) = old.entries[i];
            t->used++;
        }
    table_free(&old);
    return 1;
}
/* Notes a use at `now`; the time of the use before, 0 for none. */
static inline uint64_t table_exchange(table* t, uint64_t block, uint64_t now, uint64_t oldest) {
    if (!t->entries && !table_make(t, 1024)) return 0;
    table_entry* entry = table_slot(t, block);
    if (!entry->stamp) {
        if ((t->used + 1) * 2 > t->size) {
            if (!table_rebuild(t, oldest)) return 0;
            entry = table_slot(t, block);
        }
        t->used++;
    }
    uint64_t before = entry->stamp < 2 ? 0 : entry->stamp - 1;
    entry->block = block;
    entry->stamp = now + 1;
    return before;
}

static inline lost_sample* list_add(lost_list* list) {
    if (list->count == list->room) {
        uint32_t room = list->room ? 2 * list->room : 64;
        lost_sample* items = own_memory(room * sizeof *items);
        if (!items) return NULL;
        if (list->items) {
            memcpy(items, list->items, list->count * sizeof *items);
            munmap(list->items, list->room * sizeof *items);
        }
        list->items = items;
        list->room = room;
    }
    return &list->items[list->count++];
}
static inline void list_remove(lost_list* list, uint32_t i) {
    memmove(&list->items[i], &list->items[i + 1], (--list->count - i) * sizeof *list->items);
}
static inline void list_free(lost_list* list) {
    if (list->items) munmap(list->items, list->room * sizeof *list->items);
    memset(list, 0, sizeof *list);
}

static inline uint64_t oldest_of(const stack* st) {
    return sets_oldest(&st->open, st->now);
}

/* An access to a block; nonzero, and which one, when it ends a sample. */
static inline int stack_use(stack* st, uint64_t block, sets_place* ended) {
    return sets_enter(&st->open, table_exchange(&st->last_uses, block, st->now, oldest_of(st)), ended);
}

#endif
