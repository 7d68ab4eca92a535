// A small program as a newcomer has it, with everything a profile can hold: source, call paths, data, threads, phases,
// sharing, samples. Its figures are made up, but fit together.
import {join} from 'node:path';

export const kSource = `#include <stdlib.h>

struct particle { double x, v, mass; char name[40]; };

static struct particle *particles;
static long hits[8];

void move(int n, double dt) {
    for (int i = 0; i < n; i++)
        particles[i].x += dt * particles[i].v;
}

double energy(int n) {
    double sum = 0;
    for (int i = 0; i < n; i++)
        sum += particles[i].mass * particles[i].v * particles[i].v;
    return sum;
}

void count(int thread) {
    hits[thread]++;
}

int main(void) {
    int n = 100000;
    particles = calloc(n, sizeof(struct particle));
    for (int step = 0; step < 50; step++) {
        move(n, 0.01);
        energy(n);
    }
}
`;

const far = (count, low = 65536) => ({cold: 0, invalidated: 0, bins: [[low, 2 * low, count]]});
const near = (hits, misses, cold = 0, invalidated = 0) => ({cold, invalidated, bins: [[0, 1, hits], [65536, 131072, misses]]});

export function profile(folder, {sampled = false, moved = 900000} = {}) {
  const file = join(folder, 'particles.c'), frame = (name, line) => ({module: 'particles', function: name, file, line});
  const object = 'heap main (particles.c:26)';
  const sites = [
    {id: 1, offset: 16, ...frame('move', 10), loop: frame('move', 9), data: object, member: 'particle.x', member_offset: 0, accesses: 5000000, writes: 2500000, reuse: near(4000000, moved, 100000), time_share: 0.6, regular: 0.98},
    {id: 2, offset: 32, ...frame('energy', 16), loop: frame('energy', 15), data: object, member: 'particle.mass', member_offset: 16, accesses: 5000000, reuse: near(4200000, 800000), time_share: 0.3, regular: 0.97},
    {id: 3, offset: 48, ...frame('count', 21), data: 'global hits', accesses: 400000, writes: 200000, reuse: near(340000, 0, 8, 60000), time_share: 0.05},
    {id: 4, offset: 64, ...frame('main', 26), data: object, accesses: 100, reuse: near(90, 10), time_share: 0.01},
  ];
  const total = sites.reduce((sum, site) => ({hits: sum.hits + site.reuse.bins[0][2], misses: sum.misses + site.reuse.bins[1][2],
    cold: sum.cold + site.reuse.cold, invalidated: sum.invalidated + site.reuse.invalidated}), {hits: 0, misses: 0, cold: 0, invalidated: 0});
  const reuse = near(total.hits, total.misses, total.cold, total.invalidated);
  if (sampled) reuse.error = {cold: 9000, invalidated: 4000, bins: [110000, 105000]};
  const accesses = total.hits + total.misses + total.cold + total.invalidated;
  const side = (thread, from, write = true) => ({site: 3, thread, write, bytes: [[from, from + 8]], object: 'global hits', offset: from, ...frame('count', 21)});
  return {
    schema: 'revisit/profile@1', method: sampled ? 'watch' : 'exact', model: 'private', granularity: 64, accesses, distinct: 100000,
    command: ['./particles'], machine: 'a test', ...sampled ? {sampled: {period: 5000, samples: 2080, pruned: 0}, clock: 'instructions, counted'} : {},
    reuse,
    threads: [0, 1].map(id => ({id, accesses: accesses / 2, reuse: near(total.hits / 2, total.misses / 2, total.cold / 2, total.invalidated / 2)})),
    sites,
    contexts: [{parent: 0}, {parent: 0, module: '/lib/libc.so.6', function: '__libc_start_call_main', offset: 8}, {parent: 1, offset: 4, ...frame('main', 28)}, {parent: 1, offset: 8, ...frame('main', 29)}],
    pairs: [{use: 2, reuse: 1, use_context: 3, reuse_context: 2, count: moved, distances: far(moved)}, {use: 1, reuse: 2, use_context: 2, reuse_context: 3, count: 800000, distances: far(800000)}],
    objects: [{kind: 'heap', name: 'main (particles.c:26)', bytes: 6400000, type: 'particle', type_bytes: 64, context: 2, accesses: 10000100, reuse: near(8200090, moved + 800010, 100000)},
              {kind: 'global', name: 'hits', bytes: 64, accesses: 400000, reuse: near(340000, 0, 8, 60000)}],
    phases: Array.from({length: 20}, (_, i) => ({begin: i * accesses / 20, end: (i + 1) * accesses / 20, distinct: 100000, reuse: near(500000, i < 10 ? 0 : 170000, i === 0 ? 100000 : 0),
      sites: i < 10 ? [{site: 1, accesses: 500000, reuse: near(500000, 0, i === 0 ? 100000 : 0)}]
        : [{site: 1, accesses: 400000, reuse: near(300000, 100000)}, {site: 2, accesses: 270000, reuse: near(200000, 70000)}]})),
    sharing: [{line: 4210752, object: 'global hits', offset: 0, writer: side(0, 0), victim: side(1, 8), count: 40000, false_sharing: true},
              {line: 4210752, object: 'global hits', offset: 8, writer: side(1, 8), victim: side(0, 0), count: 20000, false_sharing: true}],
  };
}
