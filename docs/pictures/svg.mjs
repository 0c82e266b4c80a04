/** A few SVG marks for the guides' pictures: text, lines, heat maps and charts. Numbers are rounded, so that files stay small. */

const FONT = 'font-family="system-ui, sans-serif" font-size="12"';
export const COLOURS = ['#1f5fa8', '#c2410c', '#2f7d32', '#7b3fa0', '#8a6d00'];

const round = (x) => Number(x.toFixed(2));
const escaped = (text) => text.replace(/&/g, '&amp;').replace(/</g, '&lt;');

/** A whole picture on white, so that it reads on dark pages too. `title` is what a screen reader says. */
export const picture = (width, height, title, marks) =>
  `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img">
<title>${escaped(title)}</title>
<rect width="${width}" height="${height}" fill="#ffffff"/>
${marks.flat(Number.POSITIVE_INFINITY).join('\n')}
</svg>
`;

export const text = (x, y, content, {anchor = 'middle', size = 12, colour = '#222222', rotate} = {}) =>
  `<text x="${round(x)}" y="${round(y)}" text-anchor="${anchor}" fill="${colour}" ${FONT.replace('12', size)}${
    rotate === undefined ? '' : ` transform="rotate(${rotate} ${round(x)} ${round(y)})"`
  }>${escaped(content)}</text>`;

export const line = (x1, y1, x2, y2, colour = '#222222') =>
  `<line x1="${round(x1)}" y1="${round(y1)}" x2="${round(x2)}" y2="${round(y2)}" stroke="${colour}"/>`;

const mix = (from, to, t) =>
  `#${from
    .map((value, i) =>
      Math.round(value + (to[i] - value) * t)
        .toString(16)
        .padStart(2, '0'),
    )
    .join('')}`;
const WHITE = [255, 255, 255];
const BLUE = [24, 78, 140];
const RED = [176, 52, 20];

/** White for 0, blue for positive and red for negative values; full colour at `most`. */
export const colourOf = (value, most) =>
  mix(WHITE, value < 0 ? RED : BLUE, Math.min(1, Math.abs(value) / most));

/** rows[i][j] as squares of `cell`, with a frame and a title above. Cells of 0 are left white. */
export function heatMap(x, y, rows, {cell, most, title, colour = colourOf}) {
  const [height, width] = [rows.length * cell, rows[0].length * cell];
  return [
    text(x + width / 2, y - 8, title),
    rows.flatMap((row, i) =>
      row.flatMap((value, j) => {
        const fill = colour(value, most);
        return fill === '#ffffff'
          ? []
          : `<rect x="${round(x + j * cell)}" y="${round(y + i * cell)}" width="${cell}" height="${cell}" fill="${fill}"/>`;
      }),
    ),
    `<rect x="${round(x)}" y="${round(y)}" width="${width}" height="${height}" fill="none" stroke="#888888"/>`,
  ];
}

/**
 * Lines in a frame with ticks. series: {name, points: [[x, y]], label?: [x, y]}, named at `label`. An axis: {label, ticks: [[value, text]], log}.
 */
export function chart(left, top, width, height, {title, x, y, series}) {
  const scale = ({ticks, log}, from, to) => {
    const f = log ? Math.log10 : (value) => value;
    const [low, high] = [f(ticks[0][0]), f(ticks.at(-1)[0])];
    return (value) => from + ((f(value) - low) / (high - low)) * (to - from);
  };
  const atX = scale(x, left, left + width);
  const atY = scale(y, top + height, top);
  return [
    text(left + width / 2, top - 12, title, {size: 13}),
    x.ticks.map(([value, label]) => [
      line(atX(value), top, atX(value), top + height, '#dddddd'),
      text(atX(value), top + height + 16, label),
    ]),
    y.ticks.map(([value, label]) => [
      line(left, atY(value), left + width, atY(value), '#dddddd'),
      text(left - 6, atY(value) + 4, label, {anchor: 'end'}),
    ]),
    `<rect x="${left}" y="${top}" width="${width}" height="${height}" fill="none" stroke="#888888"/>`,
    text(left + width / 2, top + height + 34, x.label),
    text(left - 62, top + height / 2, y.label, {rotate: -90}),
    series.map(({name, points, label}, i) => {
      const colour = COLOURS[i % COLOURS.length];
      const path = points.map(([px, py]) => `${round(atX(px))},${round(atY(py))}`).join(' ');
      const [lx, ly] = label ?? points.at(-1);
      return [
        `<polyline points="${path}" fill="none" stroke="${colour}" stroke-width="2"/>`,
        text(atX(lx) - 4, atY(ly) - 6, name, {anchor: 'end', colour}),
      ];
    }),
  ];
}
