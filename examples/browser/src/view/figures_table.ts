/** The charts' figures as a table, at doubling positions: for those who do not see the charts, and for copying. */
import {element, make} from '../dom';
import {bytes, count, duration, UNKNOWN} from '../format';
import type {TextColumn} from './text_column';

const FIRST = 16;

export function updateTable(linear: TextColumn, softmax: TextColumn): void {
  const end = Math.max(linear.bytes.lastX, softmax.bytes.lastX);
  const rows: HTMLTableRowElement[] = [];
  for (let position = FIRST; position <= end; position *= 4) {
    const cells = [linear, softmax].flatMap((column) => {
      const near = (series: TextColumn['bytes']) => series.between(position * 0.9, position * 1.1 + 1);
      const [ms, size] = [near(column.milliseconds), near(column.bytes)];
      return [ms === null ? 'not reached' : duration(ms), size === null ? UNKNOWN : bytes(size)];
    });
    const head = make('th', {scope: 'row'}, count(position));
    rows.push(make('tr', {}, head, ...cells.map((cell) => make('td', {}, cell))));
  }
  element('figures').replaceChildren(...rows);
}
