// Figures as people read them; the same words as the terminal report.

const kBytes = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB'];
const kCounts = ['', 'K', 'M', 'G', 'T', 'P'];

function withUnit(value: number, step: number, units: string[]): string {
  let unit = 0;
  // 999.6 K is shown as 1 M, not as 1000 K.
  while (unit + 1 < units.length && Math.abs(value) >= (unit === 0 ? step : step - 0.5)) {
    value /= step;
    ++unit;
  }
  const digits = unit === 0 && Number.isInteger(value) ? String(value) : trim(value);
  return units[unit] ? `${digits} ${units[unit]}` : digits;
}

function trim(value: number): string {
  const size = Math.abs(value);
  const text = value.toFixed(size >= 100 ? 0 : size >= 10 ? 1 : 2);
  return text.includes('.') ? text.replace(/\.?0+$/, '') : text;
}

export const bytes = (value: number) => withUnit(value, 1024, kBytes);
// Counts are whole: an estimate's fraction says nothing.
export const count = (value: number) => value > 0 && value < 0.5 ? '<1' : withUnit(Math.abs(value) < 1000 ? Math.round(value) + 0 : value, 1000, kCounts);

// A distance as the memory it spans; plain blocks when a block is a bare address.
export function span(blocks: number, granularity: number): string {
  return granularity === 1 ? count(blocks) : bytes(blocks * granularity);
}

export function percent(share: number, digits = 2): string {
  const value = 100 * share, least = 10 ** -digits;
  if (value > 0 && value < least) return `<${least.toFixed(digits)} %`;
  return `${(Math.abs(value) < 0.5 * least ? 0 : value).toFixed(digits)} %`;
}

// No more digits than a 95 % half-width allows, as in src/report/words.cpp; exact figures have three.
export function withError(share: number, error: number): string {
  return error > 0 ? `${(100 * share).toFixed(Math.max(0, Math.min(2, -Math.floor(Math.log10(100 * error)))))} %` : percent(share, 2);
}

export function signed(value: number, show: (size: number) => string): string {
  return value === 0 ? '0' : (value < 0 ? '−' : '+') + show(Math.abs(value));
}

export const fileName = (path: string) => path.slice(path.lastIndexOf('/') + 1);

// 1048576 → "1M", as --cache takes it.
export function sizeSpec(value: number): string {
  for (const [suffix, unit] of [['G', 2 ** 30], ['M', 2 ** 20], ['K', 2 ** 10]] as const)
    if (value >= unit && Number.isInteger(value / unit)) return `${value / unit}${suffix}`;
  return String(value);
}
