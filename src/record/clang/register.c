/* Registering a unit of recorded code, before any of it runs: its blocks and sites get numbers of the
 * process, and the analyzer their definitions.
 */
#define _GNU_SOURCE
#include <string.h>
#include <unistd.h>

#include "record/clang/runtime.h"
#include "record/clang/sampler.h"

#define process __revisit_process

static void send_definitions(const revisit_unit* unit, uint64_t block_base, uint64_t site_base) {
    const uint64_t* at = unit->definitions;
    const uint64_t* end = at + unit->definition_words;
    while (at < end) {
        uint64_t n = REVISIT_N(at[0]);
        int is_site = REVISIT_TAG(at[0]) == REVISIT_DEFINE_SITE;
        uint32_t words = 2 + (uint32_t)(is_site ? (n + 7) / 8 : 2 * n);
        uint64_t* record = revisit_reserve(words);
        if (!record) return;
        memcpy(record, at, words * 8);
        record[1] += is_site ? site_base : block_base;
        if (is_site) revisit_choose(record[1], (const char*)(at + 2));
        if (!is_site)
            for (uint64_t i = 0; i < n; i++) record[2 + 2 * i + 1] += site_base;
        revisit_done(words);
        at += words;
    }
}

EXPORTED void __revisit_register(const revisit_unit* unit) {
    static const char wrong[] =
        "revisit: this program mixes code built by different versions of revisit-clang\n";
    static const char mixed[] =
        "revisit: this program mixes ways of -frevisit-append; build all of it one way\n";
    if (process.units == 0) process.way = unit->way;
    const char* complaint = unit->abi != REVISIT_ABI ? wrong : unit->way != process.way ? mixed : NULL;
    if (complaint) {
        ssize_t ignored = write(2, complaint, strlen(complaint));
        (void)ignored;
        _exit(127);
    }
    __atomic_add_fetch(&process.units, 1, __ATOMIC_RELAXED);
    revisit_start();
    uint64_t block_base = __atomic_fetch_add(&process.blocks, unit->blocks, __ATOMIC_RELAXED);
    uint64_t site_base = __atomic_fetch_add(&process.sites, unit->sites, __ATOMIC_RELAXED);
    for (uint64_t i = 0; i < unit->blocks; i++) unit->headers[i] += block_base;
    *unit->site_base = site_base;
    if (!process.stream) return;
    if (!__revisit_tls.self)
        revisit_thread_begin(__atomic_fetch_add(&process.threads, 1, __ATOMIC_RELAXED));
    revisit_describe_modules();
    if (process.sampling) revisit_sampling_define(unit, block_base, site_base);
    send_definitions(unit, block_base, site_base);
    revisit_flush(); /* another thread may be the first to run this code */
    if (process.sampling && __revisit_tls.self) revisit_sampler_hand_over(__revisit_tls.self);
}
