/** Where the labels at the ends of a chart's lines go. */

/** Pixels from one line of text to the next. */
const LINE = 14;

/** Where a label would be: `y` is the lower edge of its text. */
export interface Label {
  left: number;
  right: number;
  y: number;
}

/** The labels' y, such that none lies on another (the upper one gives way) and none is above the canvas. */
export function spread(labels: readonly Label[]): number[] {
  const ys = labels.map(({y}) => y);
  const upwards = labels.map((_, i) => i).sort((a, b) => labels[b].y - labels[a].y);
  upwards.forEach((i, rank) => {
    for (const below of upwards.slice(0, rank)) {
      const beside = labels[i].right < labels[below].left || labels[i].left > labels[below].right;
      if (!beside) ys[i] = Math.min(ys[i], ys[below] - LINE);
    }
  });
  const above = LINE - Math.min(LINE, ...ys);
  return ys.map((y) => y + above);
}
