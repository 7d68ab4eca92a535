/* One stack's samples: which blocks were used since each began.
 *
 * Problem. Every open sample has a set of the blocks used since its start; to look a block up in each,
 * for each access, costs as much as there are samples. Idea. The sets are nested: the set of a sample
 * holds the blocks last used after its start. So one table, block → time of last use, stands for all: a
 * block enters the sets of the samples that began after its last use, the youngest ones, and ends the
 * one that began with that use (engines/sample.cpp does the same). Cost. One look-up an access, and one
 * step for each set the block enters: 8 ns an access while a sample is open.
 *
 * Memory comes from mmap: the program's malloc is not ours to call.
 */
#ifndef REVISIT_RECORD_CLANG_SAMPLER_STACK_H
#define REVISIT_RECORD_CLANG_SAMPLER_STACK_H

#include <string.h>
#include <sys/mman.h>

#include "record/clang/sampler_state.h"

static inline void* memory(size_t bytes) {
    void* at =
        mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return at == MAP_FAILED ? NULL : at;
}

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
    table_entry* entries = memory(size * sizeof *entries);
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

static inline sample* list_add(sample_list* list) {
    if (list->count == list->room) {
        uint32_t room = list->room ? 2 * list->room : 64;
        sample* items = memory(room * sizeof *items);
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
static inline void list_remove(sample_list* list, uint32_t i) {
    memmove(&list->items[i], &list->items[i + 1], (--list->count - i) * sizeof *list->items);
}
static inline void list_free(sample_list* list) {
    if (list->items) munmap(list->items, list->room * sizeof *list->items);
    memset(list, 0, sizeof *list);
}

static inline uint32_t first_after(const stack* st, uint64_t time) {
    uint32_t i = st->open.count;
    while (i > 0 && st->open.items[i - 1].start > time) i--;
    return i;
}
static inline uint64_t oldest_of(const stack* st) {
    return st->open.count ? st->open.items[0].start : st->now;
}

/* An access to a block; the sample that it ends, or null. */
static inline sample* stack_use(stack* st, uint64_t block) {
    uint64_t last = table_exchange(&st->last_uses, block, st->now, oldest_of(st));
    uint32_t after = first_after(st, last);
    for (uint32_t i = after; i < st->open.count; i++) {
        if (st->open.items[i].holes)
            st->open.items[i].holes--;
        else
            st->open.items[i].depth++;
    }
    if (after == 0 || st->open.items[after - 1].start != last) return NULL;
    return &st->open.items[after - 1];
}

#endif
