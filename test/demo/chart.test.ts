/** What the demo page's charts draw. */
import {spread} from '../../examples/browser/src/chart/labels';
import {Series} from '../../examples/browser/src/chart/series';
import {ticks} from '../../examples/browser/src/chart/ticks';

function seriesOf(length: number, y: (x: number) => number): Series {
  const series = new Series();
  for (let x = 1; x <= length; x++) series.push(x, y(x));
  return series;
}

test('a series of any length is drawn as at most the bins asked for, with its ends', () => {
  const series = seriesOf(50_000, (x) => x);
  const points = series.binned(100, 50_000);
  expect(points).toHaveLength(100);
  expect(points[0]).toEqual({x: 499, y: 250});
  expect(points.at(-1)!.x).toBe(50_000);
});

test('a single slow token does not move the line', () => {
  const series = seriesOf(1000, (x) => (x === 500 ? 1e6 : 2));
  expect(series.binned(50, 1000).every(({y}) => y === 2)).toBe(true);
  expect(series.recent(100)).toBe(2);
  expect(series.between(490, 511)).toBe(2);
});

test('a series says where nothing was measured, and starts again when cleared', () => {
  const series = seriesOf(10, (x) => x);
  expect(series.between(11, 20)).toBeNull();
  expect([series.lastX, series.lastY, series.recent(3)]).toEqual([10, 10, 9]);
  series.clear();
  expect([series.length, series.lastX, series.recent(3), series.binned(10, 1)]).toEqual([0, 0, 0, []]);
});

test.each([
  ['apart, they stay', [{y: 50}, {y: 90}], [50, 90]],
  ['the upper one of two that are close gives way', [{y: 90}, {y: 86}], [90, 76]],
  ['of two at the same height, too', [{y: 90}, {y: 90}], [90, 76]],
  ['beside one another they stay', [{y: 90}, {y: 90, left: 60, right: 90}], [90, 90]],
  ['none is above the canvas', [{y: 8}, {y: 10}], [14, 28]],
  ['a third gives way to both', [{y: 90}, {y: 88}, {y: 80}], [90, 76, 62]],
])('labels of lines: %s', (_, labels, expected) => {
  expect(spread(labels.map((label) => ({left: 0, right: 50, ...label})))).toEqual(expected);
});

test.each([
  [7, [0, 2, 4, 6, 8]],
  [0.3, [0, 0.1, 0.2, 0.3]],
  [41_000_000, [0, 20_000_000, 40_000_000, 60_000_000]],
  [5, [0, 2, 4, 6]],
])('an axis up to %d has round numbers', (top, expected) => {
  expect(ticks(top, 4)).toEqual(expected);
});
