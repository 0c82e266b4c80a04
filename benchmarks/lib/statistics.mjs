/** Medians and their spread. */

export function median(values) {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 === 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

/** Median of the processes' medians; least and largest of all timings. */
export function summarise(processes) {
  const all = processes.flat();
  return {
    median: median(processes.map(median)),
    min: Math.min(...all),
    max: Math.max(...all),
    timings: all.length,
  };
}

/**
 * How many times faster `ours` is than `other`, taken within each process: median, least, largest. Results that count their
 * operations (`flops`) are compared by their rates.
 */
export function ratioOf(ours, other) {
  const work = (ours.flops ?? 1) / (other.flops ?? 1);
  const ratios = ours.processes.map((timings, i) => (median(other.processes[i]) / median(timings)) * work);
  return {median: median(ratios), min: Math.min(...ratios), max: Math.max(...ratios)};
}
