/** What the state holds: S of each head as a heat map, and the weights that its last query gives to recent characters. */
import {diverging, onColoursChange} from '../colours';
import {element, make} from '../dom';
import {counted} from '../format';
import type {Look} from '../worker/protocol';
import {drawMatrix} from './heat_map';

export class StateView {
  private latest: Look | null = null;
  private canvases: HTMLCanvasElement[] = [];

  constructor() {
    onColoursChange(() => this.draw());
  }

  show(look: Look): void {
    this.latest = look;
    this.draw();
  }

  clear(): void {
    this.latest = null;
    this.canvases = [];
    for (const id of ['heat-maps', 'recent', 'state-caption']) element(id).replaceChildren();
  }

  private draw(): void {
    const look = this.latest;
    if (look === null) return;
    const {heads, features, values, position} = look;
    if (this.canvases.length !== heads) this.makeCanvases(look);
    const colour = diverging();
    for (let head = 0; head < heads; head++) {
      const offset = head * features * values;
      const part = look.s.subarray(offset, offset + features * values);
      const largest = part.reduce((most, x) => Math.max(most, Math.abs(x)), 1e-30);
      // The square root lets small entries show beside large ones.
      drawMatrix(this.canvases[head], {values: part, offset: 0, rows: features, columns: values}, (x) =>
        colour(Math.sign(x) * Math.sqrt(Math.abs(x) / largest)),
      );
    }
    element('state-caption').textContent =
      `After ${counted(position, 'token')}, layer ${look.layer + 1}: ${counted(heads, 'head')}, ${features} features by ${values} values each.`;
    this.drawRecent(look);
  }

  private makeCanvases({heads}: Look): void {
    this.canvases = Array.from({length: heads}, (_, head) => {
      const canvas = make('canvas', {className: 'heat'});
      canvas.setAttribute('role', 'img');
      canvas.setAttribute('aria-label', `The state S of head ${head + 1}`);
      return canvas;
    });
    element('heat-maps').replaceChildren(
      ...this.canvases.map((canvas, head) =>
        make('figure', {}, canvas, make('figcaption', {}, `Head ${head + 1}`)),
      ),
    );
  }

  /** A row for each head; a cell's shade is the weight, of the row's largest. */
  private drawRecent({heads, weights, share, recent}: Look): void {
    const row = (head: number) => {
      const part = weights.subarray(head * recent.length, (head + 1) * recent.length);
      const largest = part.reduce((most, x) => Math.max(most, x), 1e-30);
      const cells = recent.map((character, i) => {
        const cell = make('td', {}, visible(character));
        cell.style.setProperty('--weight', (part[i] / largest).toFixed(3));
        cell.title = `${(100 * part[i]).toFixed(1)} %`;
        return cell;
      });
      const part100 = (100 * share[head]).toFixed(0);
      return make(
        'tr',
        {},
        make('th', {scope: 'row'}, `Head ${head + 1}`),
        ...cells,
        make('td', {className: 'share'}, `${part100} %`),
      );
    };
    element('recent').replaceChildren(...Array.from({length: heads}, (_, head) => row(head)));
    const scroller = element('recent-scroll');
    scroller.scrollLeft = scroller.scrollWidth;
  }
}

const visible = (character: string) =>
  ({' ': '\u00A0', '\n': '\u21B5', '\t': '\u21E5'})[character] ?? character;
