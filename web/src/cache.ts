// What a cache makes of reuse distances: the same model as src/models/cache.cpp, to the last digits.
//
// Fully associative: hit iff the distance is below the number of blocks. Set-associative (SDCM): the
// distance D puts Binomial(D, ways/blocks) blocks into the same set; hit iff fewer than `ways` did.
// Far from the place where hits turn into misses the binomial's tail is below 1e-13 (Chernoff), and the
// sum is not run: that leaves a few dozen bins, so a slider answers in milliseconds.

import {edges, highOf, Histogram, lowOf} from './data';

export interface Cache {
  name: string;
  bytes: number;
  ways: number;  // 0 = fully associative
  line: number;
}

const kPointsPerBin = 64;
const kCertain = 30;  // e^-30 = 1e-13

export const blocksOf = (cache: Cache) => Math.floor(cache.bytes / cache.line);
const waysOf = (cache: Cache) => cache.ways === 0 ? blocksOf(cache) : Math.min(cache.ways, blocksOf(cache));

function setAssociativeHit(distance: number, ways: number, blocks: number): number {
  if (distance < ways) return 1;
  const share = ways / blocks;
  if (share >= 1) return distance < blocks ? 1 : 0;
  const level = ways / distance;
  if (level < 1) {
    const divergence = distance * (level * Math.log(level / share) + (1 - level) * Math.log((1 - level) / (1 - share)));
    if (divergence > kCertain) return level > share ? 1 : 0;
  }
  let logTerm = distance * Math.log1p(-share);
  const logOdds = Math.log(share) - Math.log1p(-share);
  let sum = 0;
  for (let a = 0; a < ways; ++a) {
    sum += Math.exp(logTerm);
    logTerm += Math.log((distance - a) / (a + 1)) + logOdds;
  }
  return Math.min(1, sum);
}

export function binHitProbability(cache: Cache, low: number, high: number): number {
  const blocks = blocksOf(cache), ways = waysOf(cache), width = high - low;
  if (blocks <= 0) return 0;
  if (ways >= blocks) return Math.max(0, Math.min(1, (blocks - low) / width));
  const points = Math.min(width, kPointsPerBin);
  let sum = 0;
  for (let i = 0; i < points; ++i) sum += setAssociativeHit(low + (i + 0.5) * width / points - 0.5, ways, blocks);
  return sum / points;
}

// One cache against many histograms that share their edges.
export class HitTable {
  private known: Float64Array;
  constructor(readonly cache: Cache) {
    this.known = new Float64Array(edges.length / 2).fill(-1);
  }
  probability(edge: number): number {
    let value = this.known[edge]!;
    if (value < 0) {
      value = binHitProbability(this.cache, edges[2 * edge]!, edges[2 * edge + 1]!);
      this.known[edge] = value;
    }
    return value;
  }
  hits(histogram: Histogram): number {
    const packed = histogram.packed;
    let sum = 0;
    for (let i = 2; i < packed.length; i += 2) sum += packed[i + 1]! * this.probability(packed[i]!);
    return sum;
  }
  misses(histogram: Histogram): number {
    return Math.max(0, histogram.total - this.hits(histogram));
  }
  // What of its reuses misses, bin by bin.
  missed(histogram: Histogram): Histogram {
    const packed = [histogram.cold, histogram.invalidated];
    for (let i = 0; i < histogram.bins; ++i) {
      const left = histogram.count(i) * (1 - this.probability(histogram.edge(i)));
      if (left > 0) packed.push(histogram.edge(i), left);
    }
    return new Histogram(packed);
  }
}

export interface Prediction { hitRate: number; missRate: number; error: number }

export function predict(histogram: Histogram, cache: Cache, table = new HitTable(cache)): Prediction {
  if (histogram.total <= 0) return {hitRate: 0, missRate: 0, error: 0};
  const hitRate = table.hits(histogram) / histogram.total;
  let variance = 0;
  if (histogram.errors)
    for (let i = 0; i < histogram.bins; ++i) variance += (histogram.error(i) * table.probability(histogram.edge(i))) ** 2;
  const error = histogram.beyondError(blocksOf(cache)) || Math.sqrt(variance);
  return {hitRate, missRate: 1 - hitRate, error: error / histogram.total};
}

// Miss ratio of a fully associative cache of every size worth telling apart, with its 95 % half-width.
export interface CurvePoint { blocks: number; missRate: number; error: number }

export function missRatioCurve(histogram: Histogram): CurvePoint[] {
  const out: CurvePoint[] = [];
  if (histogram.total <= 0) return out;
  let hits = 0, variance = 0;
  out.push({blocks: 0, missRate: 1, error: 0});
  for (let i = 0; i < histogram.bins; ++i) {
    const low = lowOf(histogram.edge(i)), high = highOf(histogram.edge(i));
    const errorAt = (blocks: number) => (histogram.beyondError(blocks) || Math.sqrt(variance)) / histogram.total;
    if (low > out[out.length - 1]!.blocks) out.push({blocks: low, missRate: 1 - hits / histogram.total, error: errorAt(low)});
    hits += histogram.count(i);
    variance += histogram.error(i) ** 2;
    out.push({blocks: high, missRate: 1 - hits / histogram.total, error: errorAt(high)});
  }
  return out;
}

// The same for caches with a given number of ways, at sizes in steps of a quarter octave: what the chosen cache lies on.
export function associativeCurve(histogram: Histogram, ways: number, line: number, low: number, high: number): CurvePoint[] {
  if (ways === 0) return missRatioCurve(histogram);
  const out: CurvePoint[] = [];
  for (let blocks = Math.max(low, ways); blocks <= high * 1.001; blocks *= 2 ** 0.25) {
    const whole = Math.max(ways, Math.round(blocks / ways) * ways);
    const {missRate, error} = predict(histogram, {name: '', bytes: whole * line, ways, line});
    if (!out.length || whole > out[out.length - 1]!.blocks) out.push({blocks: whole, missRate, error});
  }
  return out;
}

export function curveAt(curve: CurvePoint[], blocks: number): number {
  const after = curve.findIndex(point => point.blocks >= blocks);
  if (after < 0) return curve.length ? curve[curve.length - 1]!.missRate : 0;
  const right = curve[after]!;
  if (after === 0 || right.blocks === blocks) return right.missRate;
  const left = curve[after - 1]!;
  return left.missRate + (blocks - left.blocks) / (right.blocks - left.blocks) * (right.missRate - left.missRate);
}
