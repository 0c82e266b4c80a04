/** Points in each median that is drawn, where there are so many. */
const SMOOTH = 16;

/** A growing list of points with increasing x. */
export class Series {
  private xs: Float64Array = new Float64Array(1024);
  private ys: Float64Array = new Float64Array(1024);
  length = 0;

  push(x: number, y: number): void {
    if (this.length === this.xs.length) {
      this.xs = grown(this.xs);
      this.ys = grown(this.ys);
    }
    this.xs[this.length] = x;
    this.ys[this.length++] = y;
  }

  clear(): void {
    this.length = 0;
  }

  get lastX(): number {
    return this.length === 0 ? 0 : this.xs[this.length - 1];
  }

  get lastY(): number {
    return this.length === 0 ? 0 : this.ys[this.length - 1];
  }

  /** The median y of the last `count` points; 0 when there are none. */
  recent(count: number): number {
    return medianOf(this.ys, Math.max(0, this.length - count), this.length);
  }

  /** The median y of the points with `from` <= x < `to`; null when there are none. */
  between(from: number, to: number): number | null {
    const start = this.firstAtLeast(from);
    const end = this.firstAtLeast(to);
    return start === end ? null : medianOf(this.ys, start, end);
  }

  /**
   * At most `bins` points for drawing: the medians of equal stretches of [0, end), and of SMOOTH points at least, each at
   * the x of its last point. A median, because single tokens wait for whatever else the machine does.
   */
  binned(bins: number, end: number): {x: number; y: number}[] {
    const points: {x: number; y: number}[] = [];
    let from = 0;
    for (let bin = 1; bin <= bins && from < this.length; bin++) {
      const to = bin === bins ? this.length : this.firstAtLeast((end * bin) / bins);
      if (to > from) {
        const start = Math.max(0, Math.min(from, to - SMOOTH));
        points.push({x: this.xs[to - 1], y: medianOf(this.ys, start, to)});
      }
      from = to;
    }
    return points;
  }

  /** Index of the first point with at least this x, by bisection. */
  private firstAtLeast(x: number): number {
    let [low, high] = [0, this.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.xs[middle] < x) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}

function grown(values: Float64Array): Float64Array {
  const more = new Float64Array(2 * values.length);
  more.set(values);
  return more;
}

function medianOf(values: Float64Array, from: number, to: number): number {
  if (to === from) return 0;
  const sorted = values.slice(from, to).sort();
  const middle = sorted.length >> 1;
  return sorted.length % 2 === 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}
