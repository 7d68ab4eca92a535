/* Reads the pages that a thread has appended: counts down to the next sample, or analyzes.
 *
 * No sample open anywhere: a page's accesses are summed, block of code by block of code, taken from the
 * countdown and forgotten. Else each access goes to the thread's private stack, to the shared samples,
 * or in turn to the stack of all. A block of code of a thread that waits for nothing matters to others
 * only by its writes.
 */
#define _GNU_SOURCE
#include <string.h>

#include "record/clang/sampler_log.h"

typedef struct {
    revisit_thread* self;
    sampler* s;
    stack* st;
    depth_limit* limit;
    int is_on, is_shared, is_private;
    uint64_t shift, analyzed, chosen;
    const uint64_t* page;
} page_reader;

/* One access to one block while a sample is open somewhere. Using the top of the stack again changes
   nothing. */
static inline void one_block(page_reader* r, uint64_t block, uint64_t address, uint64_t bytes,
                             uint64_t site, uint32_t write) {
    sampler* s = r->s;
    stack* st = r->st;
    st->now++;
    if (block != st->top) {
        if (r->is_shared) {
            if (s->mark_count) revisit_use_shared(r->self, s, block, site, write);
        } else {
            sets_place ended;
            if (st->open.count && stack_use(st, block, &ended))
                revisit_ended(r->self, s, st, r->limit, ended, site, write,
                              parts_of(block, address, bytes, r->shift));
            if (st->lost.count && st->lost_filter & filter_bit(block))
                revisit_come_back(r->self, s, st, block, site, write,
                                  parts_of(block, address, bytes, r->shift));
        }
        st->top = block;
    }
    if (write && r->is_private) log_write(s, block, site, parts_of(block, address, bytes, r->shift));
}

/* `ago`: accesses to blocks since. */
static int choose_block(page_reader* r, uint64_t ago, uint64_t block, uint64_t site) {
    if (r->is_shared) return revisit_choose_shared(r->self, r->s, block, site);
    return revisit_choose_private(r->self, r->s, r->st, r->st->now - ago, block, site);
}

/* As many as it stands for, at the first level's rate. */
static void count_chosen(page_reader* r) {
    r->chosen += 1ull << r->s->next_level;
}

/* What is counted down: accesses, and of those of variable length every block. A chosen access is a
   sample in each block it touches, so that blocks are chosen alike. */
static inline void one_access(page_reader* r, uint64_t address, uint64_t bytes, uint64_t site,
                              uint32_t write) {
    uint64_t shift = r->shift;
    uint64_t first = address >> shift, last = shift && bytes ? (address + bytes - 1) >> shift : first;
    for (uint64_t block = first; block <= last; block++)
        one_block(r, block, address, bytes, site, write);
    if (--r->s->to_next == 0) {
        int any = 0;
        for (uint64_t block = first; block <= last; block++)
            any |= choose_block(r, last - block, block, site);
        if (any) count_chosen(r);
        r->s->to_next = revisit_gap(r->s);
    }
    r->s->page_at++; /* after: a sample has the clock of its own access, not of the next */
}

static uint64_t bulk_blocks(const uint64_t* at) {
    uint64_t shift = process.stream->plan.block_shift;
    return at[3] == 0 ? 0 : shift == 0 ? 1 : ((at[2] + at[3] - 1) >> shift) - (at[2] >> shift) + 1;
}
static void bulk(page_reader* r, const uint64_t* at) {
    uint64_t blocks = bulk_blocks(at), block = at[2] >> r->shift;
    uint32_t write = at[0] & REVISIT_WRITE;
    r->s->position = 0;
    if (!r->is_on && blocks < r->s->to_next) {
        r->s->to_next -= blocks;
        return;
    }
    for (uint64_t i = 0; i < blocks; i++, block++) {
        if (r->is_on) one_block(r, block, at[2], at[3], at[1], write);
        r->analyzed += (uint64_t)r->is_on;
        if (--r->s->to_next) continue;
        r->is_on = 1;
        if (choose_block(r, 0, block, at[1])) count_chosen(r);
        r->s->to_next = revisit_gap(r->s);
    }
}

uint32_t revisit_record_words(uint64_t first) {
    uint64_t n = REVISIT_N(first), text = (n + 7) / 8;
    switch (REVISIT_TAG(first)) {
        case REVISIT_PROCESS:
            return (uint32_t)(3 + text);
        case REVISIT_MODULE:
            return (uint32_t)(4 + text);
        case REVISIT_DEFINE_BLOCK:
            return (uint32_t)(2 + 2 * n);
        case REVISIT_DEFINE_SITE:
            return (uint32_t)(2 + text);
        case REVISIT_REGION_BEGIN:
        case REVISIT_REGION_END:
            return (uint32_t)(1 + text);
        case REVISIT_BULK:
            return 4;
        case REVISIT_UNLOAD:
        case REVISIT_STACK:
        case REVISIT_ALLOC:
        case REVISIT_ALLOC_SITE:
        case REVISIT_MAP_SITE:
            return 3;
        case REVISIT_THREAD_START:
        case REVISIT_ENTER:
        case REVISIT_ENTER_SITE:
        case REVISIT_SYNC:
        case REVISIT_END:
            return 2;
        default:
            return 1;
    }
}

/* The upper half tells where a derived access is. */
static uint64_t site_of(const code_block* code, uint32_t i) {
    return (uint32_t)code->definition[3 + 2 * i] + code->site_base;
}

/* A block of code whose reads nobody waits for: its writes are for others to know. */
static void writes_of(page_reader* r, const code_block* code, const uint64_t* at, uint32_t count) {
    uint64_t begin = r->s->page_at;
    for (uint32_t i = 0; i < count; i++) {
        if (i < 63 && !(code->writes >> i & 1)) continue;
        uint64_t what = code->definition[2 + 2 * i];
        if (!(what >> 32 & REVISIT_WRITE) || at[1 + i] == REVISIT_NO_ACCESS) continue;
        uint64_t first = at[1 + i] >> r->shift, last = first;
        if (r->shift && (uint32_t)what) last = (at[1 + i] + (uint32_t)what - 1) >> r->shift;
        uint64_t site = site_of(code, i);
        r->s->page_at = begin + i;
        for (uint64_t block = first; block <= last; block++)
            log_write(r->s, block, site, parts_of(block, at[1 + i], (uint32_t)what, r->shift));
    }
    r->s->page_at = begin + count;
}

static void block_of_code(page_reader* r, const code_block* code, const uint64_t* at, uint32_t count) {
    sampler* s = r->s;
    uint32_t i = 0;
    if (count < s->to_next) {
        int concerned = r->is_shared || r->st->open.count || r->st->lost.count;
        if (!r->is_on || !concerned) {
            s->to_next -= count;
            r->analyzed += r->is_on ? count : 0;
            if (r->is_on && r->is_private && code->writes)
                writes_of(r, code, at, count);
            else
                s->page_at += count;
            return;
        }
    } else if (!r->is_on) {
        i = (uint32_t)(s->to_next - 1);
        s->to_next = 1;
        s->page_at += i;
        r->is_on = 1;
    }
    r->analyzed += count - i;
    const table* uses = &r->st->last_uses;
    s->block_position = s->recent_base ? s->recent_base + (uint64_t)(at - r->page) : 0;
    for (; i < count; i++) {
        uint64_t what = code->definition[2 + 2 * i];
        if (i + 6 < count && uses->entries)
            __builtin_prefetch(&uses->entries[hash(at[7 + i] >> r->shift) >> uses->shift]);
        if (what >> 32 & REVISIT_GUARDED && at[1 + i] == REVISIT_NO_ACCESS) {
            if (--s->to_next == 0) {
                count_chosen(r);
                s->to_next = revisit_gap(s);
            }
            continue;
        }
        s->position = s->block_position ? s->block_position + 1 + i : 0;
        one_access(r, at[1 + i], (uint32_t)what, site_of(code, i), what >> 32 & REVISIT_WRITE);
    }
}

/* Regions open after the record. */
static uint32_t regions_after(const uint64_t* at, uint32_t open) {
    uint64_t bytes = REVISIT_N(*at);
    if (REVISIT_TAG(*at) != REVISIT_REGION_BEGIN && REVISIT_TAG(*at) != REVISIT_REGION_END) return open;
    for (const char* name = common->regions; name && *name;) {
        size_t length = strcspn(name, "\n");
        if (length == bytes && memcmp(name, at + 1, bytes) == 0)
            return REVISIT_TAG(*at) == REVISIT_REGION_BEGIN ? open + 1 : open - (open > 0);
        name += length + (name[length] != 0);
    }
    return open;
}

/* An access by code that counts still: nobody knows of what. */
static void pass_over(page_reader* r) {
    r->s->page_at++;
    if (--r->s->to_next == 0) r->s->to_next = revisit_gap(r->s);
}

static void read_page(page_reader* r, const uint64_t* at, const uint64_t* end, uint32_t open) {
    while (at < end) {
        if (*at & REVISIT_BLOCK_BIT) {
            uint64_t id = REVISIT_BLOCK_ID(*at);
            uint32_t count = REVISIT_BLOCK_COUNT(*at);
            if (id >= MOST_BLOCKS || !common->blocks[id].definition || at + 1 + count > end) return;
            if (open) block_of_code(r, &common->blocks[id], at, count);
            at += 1 + count;
        } else {
            if (REVISIT_TAG(*at) == REVISIT_BULK && open) bulk(r, at);
            open = regions_after(at, open);
            if (!*at && open) pass_over(r);
            revisit_follow_call(r->s, at);
            at += *at ? revisit_record_words(*at) : 1;
        }
    }
}

/* Counts a page's accesses; sends on what is not about accesses. */
static uint64_t count_page(revisit_thread* self, sampler* s, const uint64_t* at, const uint64_t* end) {
    uint64_t sum = 0;
    uint32_t open = s->inside;
    while (at < end) {
        if (*at & REVISIT_BLOCK_BIT) {
            uint32_t count = REVISIT_BLOCK_COUNT(*at);
            sum += open ? count : 0;
            at += 1 + count;
        } else {
            uint32_t words = *at ? revisit_record_words(*at) : 1;
            if (!*at) sum += open != 0;
            if (REVISIT_TAG(*at) == REVISIT_BULK)
                sum += open ? bulk_blocks(at) : 0;
            else if (REVISIT_TAG(*at) && REVISIT_TAG(*at) < REVISIT_TAGS &&
                     REVISIT_TAG(*at) != REVISIT_SYNC && REVISIT_TAG(*at) != REVISIT_DEFINE_BLOCK &&
                     REVISIT_TAG(*at) != REVISIT_ENTER_SITE && REVISIT_TAG(*at) != REVISIT_LEAVE &&
                     words <= (size_t)(end - at)) {
                s->counts_last = 0;
                revisit_out_copy(self, s, at, words);
                open = regions_after(at, open);
            }
            at += words;
        }
    }
    s->inside = open;
    return sum;
}

/* A sample that another thread has found in its page began while this one filled pages that it only
   counted: what was written there may have taken the sample's block. */
static void keep_page(sampler* s, const uint64_t* at, const uint64_t* end, uint32_t open,
                      uint64_t step) {
    uint64_t words = (uint64_t)(end - at), i = s->kept_next % PAGES_KEPT;
    if (words > KEPT_WORDS) return;
    s->kept[i].begin = s->page_begin;
    s->kept[i].step = step;
    s->kept[i].words = words;
    s->kept[i].open = open;
    memcpy(s->kept[i].word, at, words * 8);
    memcpy(&s->kept[i].calls, s->calls,
           offsetof(call_stack, frame) + s->calls->depth * sizeof *s->calls->frame);
    if (++s->kept_next - s->kept_first > PAGES_KEPT) s->kept_first = s->kept_next - PAGES_KEPT;
}
static void log_kept(page_reader* r) {
    sampler* s = r->s;
    uint64_t begin = s->page_begin;
    call_stack* calls = s->calls;
    for (; s->kept_first < s->kept_next; s->kept_first++, s->page++) {
        uint64_t i = s->kept_first % PAGES_KEPT;
        const uint64_t *at = s->kept[i].word, *end = at + s->kept[i].words;
        uint32_t open = s->kept[i].open;
        s->page_begin = s->kept[i].begin;
        s->page_step = s->kept[i].step;
        s->page_at = 0;
        s->calls = &s->kept[i].calls;
        while (at < end) {
            if (*at & REVISIT_BLOCK_BIT) {
                uint64_t id = REVISIT_BLOCK_ID(*at);
                uint32_t count = REVISIT_BLOCK_COUNT(*at);
                if (id >= MOST_BLOCKS || !common->blocks[id].definition || at + 1 + count > end) break;
                if (open && common->blocks[id].writes)
                    writes_of(r, &common->blocks[id], at, count);
                else
                    s->page_at += count;
                at += 1 + count;
                continue;
            }
            if (REVISIT_TAG(*at) == REVISIT_BULK && open && *at & REVISIT_WRITE)
                for (uint64_t n = 0, blocks = bulk_blocks(at); n < blocks && n < SEEN_BLOCKS; n++) {
                    uint64_t block = (at[2] >> r->shift) + n;
                    log_write(s, block, at[1], parts_of(block, at[2], at[3], r->shift));
                }
            open = regions_after(at, open);
            revisit_follow_call(s, at);
            at += *at ? revisit_record_words(*at) : 1;
        }
    }
    s->calls = calls;
    s->page_begin = begin;
}

/* Calls of a page that is only counted. */
static void follow_calls(sampler* s, const uint64_t* at, const uint64_t* end) {
    if (!(process.stream->want & REVISIT_WANT_CALLS)) return;
    while (at < end) {
        revisit_follow_call(s, at);
        at += *at & REVISIT_BLOCK_BIT ? 1 + REVISIT_BLOCK_COUNT(*at)
              : *at                   ? revisit_record_words(*at)
                                      : 1;
    }
}

static uint64_t step_of(const sampler* s, uint64_t accesses) {
    return accesses ? ((s->last_clock - s->page_begin) << 16) / accesses : 0;
}

static void analyze_page(revisit_thread* self, sampler* s, const uint64_t* at, const uint64_t* end,
                         uint32_t open, uint64_t accesses, page_reader* r) {
    uint32_t want = process.stream->want;
    int in_turn = want & REVISIT_WANT_IN_TURN && want & REVISIT_WANT_SHARED;
    *r = (page_reader){self, s, &s->own, &s->limit, is_on(), 0, 0, process.stream->plan.block_shift,
                       0,    0, at};
    if (in_turn) {
        revisit_wait_turn();
        r->st = &common->all;
        r->limit = &common->limit;
        revisit_thin(r->st, &common->all_level);
        s->own_level = common->all_level;
    } else if (want & REVISIT_WANT_SHARED) {
        r->is_shared = 1;
        revisit_thin_shared(s);
        revisit_notice(s);
    } else {
        r->is_private = log_ready(s);
        if (r->is_on && r->is_private) log_kept(r);
        s->kept_first = s->kept_next;
        revisit_thin(r->st, &s->own_level);
        r->is_on |= s->own.lost.count != 0;
        revisit_read_logs(s);
        revisit_settle_pending(self, s, 0);
        s->known[s->page % PAGES_KNOWN].first = s->own.now + 1;
        s->known[s->page % PAGES_KNOWN].begin = s->page_begin;
    }
    r->page = at;
    s->page_at = 0;
    s->page_step = step_of(s, accesses);
    read_page(r, at, end, open);
    if (r->is_shared) {
        revisit_prune_shared(self, s);
    } else {
        revisit_prune(self, s, r->st, r->limit);
    }
    if (in_turn) revisit_end_turn();
    log_publish(s);
}

static void set_near(sampler* s, int near) {
    if (near == s->near) return;
    s->near = near;
    __atomic_add_fetch(&common->near, near ? 1 : -1, __ATOMIC_RELAXED);
}
void revisit_sampler_is_far(sampler* s) {
    set_near(s, 0);
}

/* Others hear of a sample before it is chosen, and write what they do by the time it is: one that was
   counting would miss what it did to it. */
uint64_t revisit_sampler_may_count(revisit_thread* self) {
    sampler* s = self->sampler;
    if (!s || s->busy) return 0;
    int counts_down = s->inside != 0;
    set_near(s, counts_down && s->to_next <= NEAR);
    if (s->near || s->pendings || s->own.lost.count || is_on() ||
        __atomic_load_n(&common->near, __ATOMIC_RELAXED) > 0)
        return 0;
    uint64_t far = counts_down ? s->to_next - NEAR : REVISIT_COUNTED_MAX;
    return far < REVISIT_COUNTED_MAX ? far : REVISIT_COUNTED_MAX;
}

void revisit_sampler_count(revisit_thread* self, uint64_t accesses) {
    sampler* s = self->sampler;
    if (!s || s->busy || !s->inside || !accesses) return;
    s->busy = 1;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    s->to_next -= accesses < s->to_next ? accesses : s->to_next - 1;
    s->last_clock = clock_now();
    if (process.stream->want & REVISIT_WANT_SHARED) revisit_recent_progress(s, accesses);
    if (!__atomic_load_n(&common->looked_away, __ATOMIC_RELAXED))
        __atomic_store_n(&common->looked_away, 1, __ATOMIC_RELAXED);
    revisit_out_counts(self, s, accesses, 0, 0);
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    s->busy = 0;
}

/* Whose words do not tell all accesses; null for any other record. */
static const code_block* derived_block(uint64_t first) {
    uint64_t id = REVISIT_BLOCK_ID(first);
    if (!(first & REVISIT_BLOCK_BIT) || id >= MOST_BLOCKS) return NULL;
    const code_block* code = &common->blocks[id];
    return code->definition && code->words < REVISIT_N(code->definition[0]) ? code : NULL;
}
static uint32_t words_of(uint64_t first) {
    if (first & REVISIT_BLOCK_BIT) return 1 + REVISIT_BLOCK_COUNT(first);
    return first ? revisit_record_words(first) : 1;
}

/* How many words a page has when all its accesses have one. */
static uint64_t expanded_words(const uint64_t* at, const uint64_t* end) {
    uint64_t sum = 0;
    for (; at < end; at += words_of(*at)) {
        const code_block* code = derived_block(*at);
        sum += code ? 1 + REVISIT_N(code->definition[0]) : words_of(*at);
    }
    return sum;
}

/* A block as it would be without derived accesses; how many words. */
static uint32_t expand_block(const code_block* code, const uint64_t* at, uint64_t* to) {
    uint32_t told = REVISIT_BLOCK_COUNT(*at), used = 0, i = 0;
    for (; i < REVISIT_N(code->definition[0]); i++) {
        uint64_t what = code->definition[2 + 2 * i];
        if (what >> 32 & REVISIT_DERIVED)
            to[1 + i] = at[1 + REVISIT_DERIVED_WORD(what)] +
                        (uint64_t)REVISIT_DERIVED_OFFSET(code->definition[3 + 2 * i]);
        else if (used < told)
            to[1 + i] = at[1 + used++];
        else
            break;
    }
    to[0] = REVISIT_BLOCK(REVISIT_BLOCK_ID(*at), i);
    return 1 + i;
}

/* As many of a page's records as a page may have words, expanded; the end of what is read. */
static const uint64_t* expand_some(sampler* s, const uint64_t* at, const uint64_t* end,
                                   uint32_t* words) {
    *words = 0;
    while (at < end) {
        const code_block* code = derived_block(*at);
        uint32_t own = words_of(*at);
        uint64_t most = code ? 1 + REVISIT_N(code->definition[0]) : own;
        if (own > (size_t)(end - at)) own = (uint32_t)(end - at), code = NULL, most = own;
        if (*words + most > KEPT_WORDS) break;
        if (code)
            *words += expand_block(code, at, s->expanded + *words);
        else
            memcpy(s->expanded + *words, at, own * 8), *words += own;
        at += own;
    }
    return at;
}

static void take_page(revisit_thread* self, sampler* s, const uint64_t* at, const uint64_t* end,
                      uint64_t clock);

/* A page with derived accesses is taken as several without: their clocks share its time. */
void revisit_sampler_take(revisit_thread* self, const uint64_t* at, const uint64_t* end) {
    sampler* s = self->sampler;
    if (!s || s->busy) return; /* a handler that interrupted us here is not sampled */
    s->busy = 1;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    uint64_t begin = s->last_clock, now = clock_now(), done = 0, all = expanded_words(at, end);
    int is_expanded = all > (uint64_t)(end - at);
    while (is_expanded && at < end) {
        uint32_t words;
        const uint64_t *read = expand_some(s, at, end, &words), *from = s->expanded;
        if (read == at) { /* a record longer than a page: taken as it is */
            words = words_of(*at);
            read = at + words;
            from = at;
        }
        done += words;
        take_page(self, s, from, from + words, begin + (now - begin) * done / all);
        at = read;
    }
    if (!is_expanded) take_page(self, s, at, end, now);
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    s->busy = 0;
}

static void take_page(revisit_thread* self, sampler* s, const uint64_t* at, const uint64_t* end,
                      uint64_t clock) {
    uint32_t open = s->inside;
    uint64_t accesses = count_page(self, s, at, end);
    s->calls = self->depth ? &s->no_calls : &s->own_calls;
    s->page++;
    s->page_begin = s->last_clock;
    s->last_clock = clock;
    if (s->log) __atomic_store_n(&s->log->page_end, s->last_clock, __ATOMIC_RELAXED);
    if (process.stream->want & REVISIT_WANT_SHARED) {
        revisit_recent_progress(s, accesses);
        if (open) revisit_recent_keep(s, at, end);
    }
    page_reader r = {.analyzed = 0};
    if (accesses >= s->to_next || is_on() || s->pendings || s->own.lost.count)
        analyze_page(self, s, at, end, open, accesses, &r);
    else {
        s->to_next -= accesses;
        if (!(process.stream->want & REVISIT_WANT_SHARED))
            keep_page(s, at, end, open, step_of(s, accesses));
        follow_calls(s, at, end);
        if (!__atomic_load_n(&common->looked_away, __ATOMIC_RELAXED))
            __atomic_store_n(&common->looked_away, 1, __ATOMIC_RELAXED);
    }
    if (accesses || s->told_level != s->own_level)
        revisit_out_counts(self, s, accesses, r.analyzed, r.chosen);
}
