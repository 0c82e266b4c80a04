/** A line plot as SVG text; each axis linear or logarithmic. */
const [WIDTH, HEIGHT] = [760, 440];
const BOX = {left: 72, right: 220, top: 44, bottom: 54};
const COLOURS = [
  '#0b62a4',
  '#c2410c',
  '#15803d',
  '#7c3aed',
  '#b91c1c',
  '#0e7490',
  '#a16207',
  '#525252',
  '#db2777',
  '#4d7c0f',
  '#1e3a8a',
  '#9f1239',
  '#57534e',
];
const LABEL_GAP = 15;

const escaped = (text) =>
  String(text).replace(/[&<>]/g, (c) => ({'&': '&amp;', '<': '&lt;', '>': '&gt;'})[c]);
const label = (x) =>
  x !== 0 && (Math.abs(x) >= 1e5 || Math.abs(x) < 1e-3)
    ? x.toExponential(0)
    : String(Number(x.toPrecision(3)));

/** Steps of 1, 2 or 5 times a power of ten that make about five ticks. */
function linearTicks(low, high) {
  const rough = (high - low || 1) / 5;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((n) => n * power).find((s) => s >= rough);
  const first = Math.floor(low / step + 1e-9);
  const last = Math.ceil(high / step - 1e-9);
  return Array.from({length: last - first + 1}, (_, i) => (first + i) * step);
}

function logTicks(low, high, base) {
  const power = (x) => Math.log(x) / Math.log(base);
  const first = Math.floor(power(low) + 1e-9);
  const last = Math.max(first + 1, Math.ceil(power(high) - 1e-9));
  return Array.from({length: last - first + 1}, (_, i) => base ** (first + i));
}

function scaleOf(values, {log = 0, include = []}, from, to) {
  const all = [...values, ...include];
  const [low, high] = [Math.min(...all), Math.max(...all)];
  const ticks = log ? logTicks(low, high, log) : linearTicks(low, high);
  const f = log ? Math.log : (x) => x;
  const [a, b] = [f(ticks[0]), f(ticks.at(-1))];
  return {at: (x) => from + ((f(x) - a) / (b - a)) * (to - from), ticks};
}

/**
 * @param series [{name, points: [[x, y]], dashed?}]; empty ones are left out
 * @param x {title, log?, include?}: log is the base of a logarithmic axis
 */
export function linePlot({title, x, y, series}) {
  const shown = series.filter(({points}) => points.length > 0);
  const all = shown.flatMap(({points}) => points);
  const right = WIDTH - BOX.right;
  const bottom = HEIGHT - BOX.bottom;
  const xs = scaleOf(
    all.map(([a]) => a),
    x,
    BOX.left,
    right,
  );
  const ys = scaleOf(
    all.map(([, b]) => b),
    y,
    bottom,
    BOX.top,
  );
  const text = (a, b, content, more = '') =>
    `<text x="${a.toFixed(1)}" y="${b.toFixed(1)}" ${more}>${escaped(content)}</text>`;
  const line = (a, b, c, d) =>
    `<line x1="${a.toFixed(1)}" y1="${b.toFixed(1)}" x2="${c.toFixed(1)}" y2="${d.toFixed(1)}" stroke="#d4d4d4"/>`;
  const grid = [
    ...xs.ticks.flatMap((t) => [
      line(xs.at(t), BOX.top, xs.at(t), bottom),
      text(xs.at(t), bottom + 18, label(t), 'text-anchor="middle"'),
    ]),
    ...ys.ticks.flatMap((t) => [
      line(BOX.left, ys.at(t), right, ys.at(t)),
      text(BOX.left - 8, ys.at(t) + 4, label(t), 'text-anchor="end"'),
    ]),
  ];
  const lines = shown.map(({points, dashed}, i) => {
    const colour = COLOURS[i % COLOURS.length];
    const at = points.map(([a, b]) => `${xs.at(a).toFixed(1)},${ys.at(b).toFixed(1)}`);
    const dots =
      points.length > 40
        ? []
        : at.map((p) => `<circle cx="${p.split(',')[0]}" cy="${p.split(',')[1]}" r="3" fill="${colour}"/>`);
    return [
      `<polyline points="${at.join(' ')}" fill="none" stroke="${colour}" stroke-width="2"${dashed ? ' stroke-dasharray="6 3"' : ''}/>`,
      ...dots,
    ].join('');
  });
  // Names beside the lines' ends, moved apart where they would cover each other.
  const ends = shown
    .map(({name, points}, i) => ({name, i, y: ys.at(points.at(-1)[1]) + 4}))
    .sort((a, b) => a.y - b.y);
  for (let i = 1; i < ends.length; i++) ends[i].y = Math.max(ends[i].y, ends[i - 1].y + LABEL_GAP);
  const over = Math.max(0, (ends.at(-1)?.y ?? 0) - bottom);
  const names = ends.map(({name, i, y: height}) =>
    text(right + 10, height - over, name, `fill="${COLOURS[i % COLOURS.length]}"`),
  );
  const middle = (BOX.top + bottom) / 2;
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${HEIGHT}" font-family="sans-serif" font-size="12">`,
    `<title>${escaped(title)}</title>`,
    `<rect width="${WIDTH}" height="${HEIGHT}" fill="white"/>`,
    text(BOX.left, 24, title, 'font-size="15" font-weight="bold"'),
    ...grid,
    ...lines,
    ...names,
    text((BOX.left + right) / 2, HEIGHT - 14, x.title, 'text-anchor="middle"'),
    text(16, middle, y.title, `text-anchor="middle" transform="rotate(-90 16 ${middle})"`),
    '</svg>\n',
  ].join('\n');
}
