/** One side's column: its text as it grows, and its figures. */
import {Series} from '../chart/series';
import {element, make} from '../dom';
import {bytes, count, counted, duration, UNKNOWN} from '../format';
import type {Ended, ModelFacts, Side, Written} from '../worker/protocol';

/** Tokens over which "now" is taken. */
const NOW = 64;
const MILESTONES = [1, 1000, 20_000];
/** A column follows its end unless somebody scrolled up by more than this (pixels). */
const FOLLOW = 40;

export class TextColumn {
  readonly milliseconds = new Series();
  readonly bytes = new Series();
  /** What was written, without the prompt. */
  text = '';
  private readonly box: HTMLElement;
  private line: Text = document.createTextNode('');
  private spent = 0;
  private made = 0;

  constructor(private readonly side: Side) {
    this.box = element(`${side}-text`);
  }

  showModel(facts: ModelFacts, origin: string): void {
    const {parameters, featureMap, layers, heads} = facts;
    element(`${this.side}-model`).textContent =
      `${featureMap === null ? '' : `${featureMap} features, `}${counted(layers, 'layer')} of ${counted(heads, 'head')}, ` +
      `${count(parameters)} weights, ${origin}`;
  }

  start(prompt: string): void {
    this.milliseconds.clear();
    this.bytes.clear();
    this.text = '';
    this.spent = 0;
    this.made = 0;
    this.box.replaceChildren();
    this.newLine(make('span', {className: 'prompt'}, prompt));
    this.box.setAttribute('aria-busy', 'true');
    for (const name of ['now', 'size', 'position']) this.figure(name, UNKNOWN);
    for (const milestone of MILESTONES) this.figure(`to-${milestone}`, UNKNOWN);
    this.figure('end', '');
  }

  add({text, positions, milliseconds, bytes: sizes}: Written): void {
    const follow = this.box.scrollHeight - this.box.scrollTop - this.box.clientHeight < FOLLOW;
    this.text += text;
    const [first, ...lines] = text.split('\n');
    this.line.appendData(first);
    for (const line of lines) {
      this.newLine();
      this.line.appendData(line);
    }
    if (follow) this.box.scrollTop = this.box.scrollHeight;
    positions.forEach((position, i) => {
      this.milliseconds.push(position, milliseconds[i]);
      this.bytes.push(position, sizes[i]);
      this.spent += milliseconds[i];
      if (MILESTONES.includes(++this.made)) this.figure(`to-${this.made}`, duration(this.spent));
    });
    this.figure('now', duration(this.milliseconds.recent(NOW)));
    this.figure('size', bytes(this.bytes.lastY));
    this.figure('position', count(this.bytes.lastX));
  }

  ended({end, position, reason}: Ended): void {
    this.box.setAttribute('aria-busy', 'false');
    const full = `The cache is full after ${counted(position, 'token')}; it has no room for another.`;
    const failed = `Ended at position ${count(position)}: ${reason}`;
    this.figure('end', end === 'full' ? full : end === 'failed' ? failed : '');
  }

  clear(): void {
    this.start('');
    this.box.setAttribute('aria-busy', 'false');
    this.box.replaceChildren();
  }

  /** A block for each line: the browser then lays out the last one only, however long the text. */
  private newLine(...before: Node[]): void {
    this.line = document.createTextNode('');
    this.box.append(make('div', {}, ...before, this.line));
  }

  private figure(name: string, text: string): void {
    element(`${this.side}-${name}`).textContent = text;
  }
}
