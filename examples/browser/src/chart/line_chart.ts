/** A small line chart on a canvas: a few series over one axis from 0, drawn again as they grow. */
import {cssColour, onColoursChange} from '../colours';
import {spread} from './labels';
import type {Series} from './series';
import {ticks} from './ticks';

export interface Line {
  /** Drawn at the line's end. */
  label: string;
  series: Series;
  /** Name of a colour in the style sheet. */
  colour: string;
  /** Lengths of dash and gap: lines must differ without their colours, too. */
  dash: number[];
}

interface Point {
  x: number;
  y: number;
}

interface Options {
  xLabel: string;
  /** Of a number on the y axis. */
  format(y: number): string;
  /** The y axis reaches this at least. */
  least: number;
}

const FONT = '12px system-ui, sans-serif';
/** Pixels between two drawings' turns while data comes in. */
const REDRAW_EVERY = 150;
const PIXELS_PER_POINT = 3;
const MARGIN = {left: 62, right: 14, top: 14, bottom: 36};

export class LineChart {
  private waiting = false;

  constructor(
    private readonly canvas: HTMLCanvasElement,
    private readonly lines: Line[],
    private readonly options: Options,
  ) {
    new ResizeObserver(() => this.draw()).observe(canvas);
    onColoursChange(() => this.draw());
  }

  /** Draws soon, once for any number of calls. */
  update(): void {
    if (this.waiting) return;
    this.waiting = true;
    setTimeout(() => {
      this.waiting = false;
      this.draw();
    }, REDRAW_EVERY);
  }

  private draw(): void {
    const {canvas, options} = this;
    const {clientWidth: width, clientHeight: height} = canvas;
    const pen = canvas.getContext('2d');
    if (pen === null || width === 0) return;
    const scale = devicePixelRatio || 1;
    canvas.width = Math.round(width * scale);
    canvas.height = Math.round(height * scale);
    pen.scale(scale, scale);
    pen.font = FONT;

    const plot = {width: width - MARGIN.left - MARGIN.right, height: height - MARGIN.top - MARGIN.bottom};
    const xTicks = ticks(Math.max(10, ...this.lines.map(({series}) => series.lastX)), width < 420 ? 3 : 5);
    const end = xTicks.at(-1)!;
    const curves = this.lines.map(({series}) =>
      series.binned(Math.max(10, Math.round(plot.width / PIXELS_PER_POINT)), end),
    );
    const yTicks = ticks(Math.max(options.least, ...curves.map(reach)), 4);
    const x = (value: number) => MARGIN.left + (value / end) * plot.width;
    const y = (value: number) => MARGIN.top + plot.height * (1 - value / yTicks.at(-1)!);

    pen.strokeStyle = cssColour('grid');
    pen.fillStyle = cssColour('muted');
    pen.lineWidth = 1;
    pen.textBaseline = 'middle';
    pen.textAlign = 'right';
    for (const tick of yTicks) {
      segment(pen, MARGIN.left, y(tick), width - MARGIN.right, y(tick));
      pen.fillText(options.format(tick), MARGIN.left - 8, y(tick));
    }
    pen.textBaseline = 'top';
    pen.textAlign = 'center';
    for (const tick of xTicks) {
      pen.fillText(tick.toLocaleString('en-US'), Math.min(x(tick), width - 20), height - MARGIN.bottom + 6);
    }
    pen.textAlign = 'right';
    pen.fillText(options.xLabel, width - MARGIN.right, height - 14);
    const drawn = this.lines.flatMap((line, i) => {
      const points = curves[i].map((point) => ({x: x(point.x), y: y(point.y)}));
      this.drawLine(pen, line, points);
      return points.length === 0 ? [] : [{line, end: points[points.length - 1]}];
    });
    this.drawLabels(pen, drawn);
  }

  private drawLine(pen: CanvasRenderingContext2D, line: Line, points: Point[]): void {
    const last = points.at(-1);
    if (last === undefined) return;
    pen.strokeStyle = cssColour(line.colour);
    pen.lineWidth = 2;
    pen.lineJoin = 'round';
    pen.setLineDash(line.dash);
    pen.beginPath();
    for (const {x, y} of points) pen.lineTo(x, Math.max(y, 1));
    pen.stroke();
    pen.setLineDash([]);
    pen.fillStyle = cssColour(line.colour);
    pen.beginPath();
    pen.arc(last.x, last.y, 3, 0, 2 * Math.PI);
    pen.fill();
  }

  private drawLabels(pen: CanvasRenderingContext2D, drawn: {line: Line; end: Point}[]): void {
    pen.textBaseline = 'bottom';
    pen.textAlign = 'left';
    const labels = drawn.map(({line, end}) => {
      const {width} = pen.measureText(line.label);
      const left = end.x > MARGIN.left + 90 ? end.x - 2 - width : end.x + 6;
      return {left, right: left + width, y: end.y - 6};
    });
    spread(labels).forEach((y, i) => {
      pen.fillStyle = cssColour(drawn[i].line.colour);
      pen.fillText(drawn[i].line.label, labels[i].left, y);
    });
  }
}

/** What the axis must reach for a curve: its last value, and all but its few highest, which are cut off. */
function reach(points: readonly Point[]): number {
  const sorted = points.map(({y}) => y).sort((a, b) => a - b);
  return Math.max(0, 1.1 * (sorted[Math.floor(0.95 * (sorted.length - 1))] ?? 0), points.at(-1)?.y ?? 0);
}

function segment(pen: CanvasRenderingContext2D, x1: number, y1: number, x2: number, y2: number): void {
  pen.beginPath();
  pen.moveTo(x1, Math.round(y1) + 0.5);
  pen.lineTo(x2, Math.round(y2) + 0.5);
  pen.stroke();
}
