/** Numbers for people. */

export const count = (n: number): string => n.toLocaleString('en-US', {maximumFractionDigits: 0});

/** `1 character`, `2,000 characters`. */
export const counted = (n: number, noun: string): string => `${count(n)} ${noun}${n === 1 ? '' : 's'}`;

/** In the place of a figure that is not known (yet). */
export const UNKNOWN = '\u2013';

/** `33.8 kB`, `41.0 MB`: powers of a thousand. */
export function bytes(n: number): string {
  if (n < 1000) return `${n} B`;
  return n < 999_950 ? `${(n / 1000).toFixed(1)} kB` : `${(n / 1e6).toFixed(1)} MB`;
}

/** `0.84 ms`, `12.3 ms`, `1.20 s`, `3 min 05 s`. */
export function duration(ms: number): string {
  if (ms < 10) return `${ms.toFixed(2)} ms`;
  if (ms < 1000) return `${ms.toFixed(ms < 100 ? 1 : 0)} ms`;
  const seconds = ms / 1000;
  if (seconds < 60) return `${seconds.toFixed(seconds < 10 ? 2 : 1)} s`;
  const rest = Math.round(seconds);
  return `${Math.floor(rest / 60)} min ${String(rest % 60).padStart(2, '0')} s`;
}
