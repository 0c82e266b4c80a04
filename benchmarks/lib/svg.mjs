/** A log-log line plot as SVG text. */
const [WIDTH, HEIGHT] = [760, 460];
const BOX = {left: 70, right: 230, top: 46, bottom: 52};
const COLOURS = ['#0b62a4', '#c2410c', '#15803d', '#7c3aed', '#b91c1c', '#0e7490', '#a16207', '#525252'];
const DASHES = ['', '', '', '6 3', '6 3', '6 3', '2 3', '2 3'];
const LABEL_GAP = 16;

const escaped = (text) => text.replace(/[&<>]/g, (c) => ({'&': '&amp;', '<': '&lt;', '>': '&gt;'})[c]);
const label = (x) =>
  Number.isInteger(x) && x < 1e6
    ? String(x)
    : x >= 1e6 || x < 1e-3
      ? x.toExponential(0)
      : String(Number(x.toPrecision(2)));

/** Maps values between the powers of `base` that enclose them onto pixels. */
function scale(values, base, from, to) {
  const power = (x) => Math.log(x) / Math.log(base);
  const low = Math.floor(power(Math.min(...values)) + 1e-9);
  const high = Math.max(low + 1, Math.ceil(power(Math.max(...values)) - 1e-9));
  return {
    at: (x) => from + ((power(x) - low) / (high - low)) * (to - from),
    ticks: Array.from({length: high - low + 1}, (_, i) => base ** (low + i)),
  };
}

/** Where the names at the lines' ends go, so that none covers another. */
function spreadLabels(ends) {
  const sorted = [...ends].sort((a, b) => a.y - b.y);
  for (let i = 1; i < sorted.length; i++) sorted[i].y = Math.max(sorted[i].y, sorted[i - 1].y + LABEL_GAP);
  const over = (sorted.at(-1)?.y ?? 0) - (HEIGHT - BOX.bottom);
  if (over > 0) for (const end of sorted) end.y -= over;
  return sorted;
}

/** @param series [{name, points: [[x, y]]}], all positive; empty ones are left out */
export function logPlot({title, x: xTitle, y: yTitle, series}) {
  const shown = series.filter(({points}) => points.length > 0);
  const all = shown.flatMap(({points}) => points);
  const x = scale(
    all.map(([value]) => value),
    2,
    BOX.left,
    WIDTH - BOX.right,
  );
  const y = scale(
    all.map(([, value]) => value),
    10,
    HEIGHT - BOX.bottom,
    BOX.top,
  );
  const line = (x1, y1, x2, y2) => `<line x1="${x1}" y1="${y1}" x2="${x2}" y2="${y2}" stroke="#d4d4d4"/>`;
  const text = (at, content, more = '') =>
    `<text x="${at[0].toFixed(1)}" y="${at[1].toFixed(1)}" ${more}>${escaped(content)}</text>`;
  const grid = [
    ...x.ticks.flatMap((value) => [
      line(x.at(value), BOX.top, x.at(value), HEIGHT - BOX.bottom),
      text([x.at(value), HEIGHT - BOX.bottom + 18], label(value), 'text-anchor="middle"'),
    ]),
    ...y.ticks.flatMap((value) => [
      line(BOX.left, y.at(value), WIDTH - BOX.right, y.at(value)),
      text([BOX.left - 8, y.at(value) + 4], label(value), 'text-anchor="end"'),
    ]),
  ];
  const style = (i) => ({colour: COLOURS[i % COLOURS.length], dash: DASHES[i % DASHES.length]});
  const lines = shown.map(({points}, i) => {
    const {colour, dash} = style(i);
    const places = points.map(([a, b]) => `${x.at(a).toFixed(1)},${y.at(b).toFixed(1)}`);
    const dots = places.map(
      (place) => `<circle cx="${place.split(',')[0]}" cy="${place.split(',')[1]}" r="3" fill="${colour}"/>`,
    );
    const path = `<polyline points="${places.join(' ')}" fill="none" stroke="${colour}" stroke-width="2" stroke-dasharray="${dash}"/>`;
    return [path, ...dots].join('');
  });
  const ends = shown.map(({name, points}, i) => ({
    name,
    i,
    x: x.at(points.at(-1)[0]),
    y: y.at(points.at(-1)[1]) + 4,
  }));
  const names = spreadLabels(ends).map(({name, i, y: height}) =>
    text([WIDTH - BOX.right + 10, height], name, `fill="${style(i).colour}"`),
  );
  const middle = (BOX.left + WIDTH - BOX.right) / 2;
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${HEIGHT}" font-family="sans-serif" font-size="12">`,
    `<rect width="${WIDTH}" height="${HEIGHT}" fill="white"/>`,
    text([BOX.left, 24], title, 'font-size="15" font-weight="bold"'),
    ...grid,
    ...lines,
    ...names,
    text([middle, HEIGHT - 14], xTitle, 'text-anchor="middle"'),
    text(
      [16, (BOX.top + HEIGHT - BOX.bottom) / 2],
      yTitle,
      `text-anchor="middle" transform="rotate(-90 16 ${(BOX.top + HEIGHT - BOX.bottom) / 2})"`,
    ),
    '</svg>\n',
  ].join('\n');
}
