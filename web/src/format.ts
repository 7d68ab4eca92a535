// Figures as people read them; the same words as the terminal report.

const kBytes = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB'];
const kCounts = ['', 'K', 'M', 'G', 'T', 'P'];

function withUnit(value: number, step: number, units: string[]): string {
  let unit = 0;
  while (unit + 1 < units.length && Math.abs(value) >= step) {
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
export const count = (value: number) => withUnit(value, 1000, kCounts);

// A distance as the memory it spans; plain blocks when a block is a bare address.
export function span(blocks: number, granularity: number): string {
  return granularity === 1 ? count(blocks) : bytes(blocks * granularity);
}

export function percent(share: number, digits = 2): string {
  const value = 100 * share;
  if (value > 0 && value < 0.01) return '<0.01 %';
  return `${value.toFixed(digits)} %`;
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
