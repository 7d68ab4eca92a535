/* Chance: how far it is to the next sample, and when to give one up.
 *
 * Gaps between samples are geometric and every thread's own, hence every access is as likely as any
 * other. Where a number of samples is wanted, the length of the run is not known beforehand: it begins
 * with a high rate, and whenever there are twice as many samples, the level rises by one, which halves
 * the rate and drops every other sample (stream.h says which). A sample that is deeper than 99 % of
 * those before it is given up, but never more than 1 % of all: near reuses end first, and a limit taken
 * from those alone would give most far ones up.
 */
#define _GNU_SOURCE
#include "record/clang/sampler_state.h"

static uint64_t next_random(sampler* s) {
    uint64_t z = s->random += 0x9e3779b97f4a7c15ull;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ z >> 27) * 0x94d049bb133111ebull;
    return z ^ z >> 31;
}
/* Of 0 < x ≤ 1, without the mathematical library: x = m·2^e, and ln m = 2 artanh((m − 1)/(m + 1)). */
static double logarithm(double x) {
    int exponent = 0;
    while (x < 0.70710678118654752) x *= 2, exponent--;
    double q = (x - 1) / (x + 1), term = q, sum = 0;
    for (int k = 1; k < 24; k += 2, term *= q * q) sum += term / k;
    return 2 * sum + exponent * 0.69314718055994531;
}
uint64_t revisit_gap(sampler* s) {
    uint32_t level = __atomic_load_n(&common->level, __ATOMIC_RELAXED);
    double rate = process.stream->plan.rate;
    s->next_level = level;
    for (; level; level--) rate /= 2;
    if (rate >= 1) return 1;
    /* 1 − rate has no digits left for small ones. */
    double scale = rate < 1e-4 ? -1 / (rate + rate * rate / 2) : 1 / logarithm(1 - rate);
    double u = (double)((next_random(s) >> 11) + 1) * 0x1p-53;
    double skipped = logarithm(u) * scale;
    return skipped > 1e18 ? 1ull << 60 : 1 + (uint64_t)skipped;
}

/* One more sample. */
void revisit_count_sample(sampler* s) {
    uint64_t wanted = process.stream->plan.wanted;
    if (!wanted) return;
    uint32_t level = s->next_level;
    if (__atomic_add_fetch(&common->samples, 1, __ATOMIC_RELAXED) > 2 * wanted) revisit_raise(level);
}
/* By one, whoever else asks for it at the same level. */
void revisit_raise(uint32_t level) {
    if (level + 1 >= REVISIT_MOST_LEVELS) return;
    if (__atomic_compare_exchange_n(&common->level, &level, level + 1, 0, __ATOMIC_RELAXED,
                                    __ATOMIC_RELAXED))
        __atomic_store_n(&common->samples, __atomic_load_n(&common->samples, __ATOMIC_RELAXED) / 2,
                         __ATOMIC_RELAXED);
}

static uint32_t limit_bin(uint64_t depth) {
    if (depth < LIMIT_OCTAVE) return (uint32_t)depth;
    uint32_t width = 63 - (uint32_t)__builtin_clzll(depth);
    return (width - 2) * LIMIT_OCTAVE + (uint32_t)(depth >> (width - 3) & 7);
}
static uint64_t limit_top(uint32_t bin) {
    if (bin < LIMIT_OCTAVE) return bin;
    uint32_t width = bin / LIMIT_OCTAVE + 2;
    return ((uint64_t)(8 + bin % LIMIT_OCTAVE + 1) << (width - 3)) - 1;
}
void revisit_limit_add(depth_limit* limit, uint64_t depth) {
    limit->seen[limit_bin(depth)]++;
    limit->count++;
}
int revisit_limit_exceeded(depth_limit* limit, uint64_t depth) {
    double share = process.stream->plan.prune_share;
    if (share >= 1 || limit->count < process.stream->plan.prune_after || limit->count == 0) return 0;
    if ((double)(limit->given_up + 1) > (1 - share) * (double)limit->count) return 0;
    if ((double)limit->count > 1.02 * (double)limit->counted) {
        double below = 0;
        limit->counted = limit->count;
        for (uint32_t bin = 0; bin < 64 * LIMIT_OCTAVE; bin++) {
            below += limit->seen[bin];
            limit->limit = limit_top(bin);
            if (below >= share * (double)limit->count) break;
        }
    }
    return depth > limit->limit;
}
