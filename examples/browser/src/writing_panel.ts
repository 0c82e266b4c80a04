/** Writing: the form, the two columns, the charts and the view into the state. */
import {LineChart} from './chart/line_chart';
import {button, element, input} from './dom';
import {bytes, count, counted} from './format';
import {settings, writeAddress} from './settings';
import {updateTable} from './view/figures_table';
import {StateView} from './view/state_view';
import {TextColumn} from './view/text_column';
import type {BackendName, EventOf, ModelFacts, Side, WriteOptions} from './worker/protocol';
import type {WorkerClient} from './worker_client';

/** A reader is told how far it is, but not for every character. */
const SAY_EVERY = 2000;

export class WritingPanel {
  private readonly columns: Record<Side, TextColumn> = {
    linear: new TextColumn('linear'),
    softmax: new TextColumn('softmax'),
  };
  private readonly view = new StateView();
  private readonly charts: LineChart[];
  private running: Promise<void> | null = null;
  private said = 0;

  constructor(
    private readonly worker: WorkerClient,
    private readonly backend: () => BackendName,
    private readonly say: (text: string) => void,
    private readonly onBusy: (busy: boolean) => void,
  ) {
    const lines = (name: 'milliseconds' | 'bytes') => [
      {label: 'softmax', series: this.columns.softmax[name], colour: 'softmax', dash: [6, 4]},
      {label: 'linear', series: this.columns.linear[name], colour: 'linear', dash: []},
    ];
    this.charts = [
      new LineChart(element<HTMLCanvasElement>('time-chart'), lines('milliseconds'), {
        ...{xLabel: 'position', least: 0.5},
        format: (y) => `${Number(y.toPrecision(3))} ms`,
      }),
      new LineChart(element<HTMLCanvasElement>('bytes-chart'), lines('bytes'), {
        ...{xLabel: 'position', least: 50_000},
        format: (y) => (y === 0 ? '0' : bytes(y).replace('.0', '')),
      }),
    ];
    element('writing-form').addEventListener('submit', (event) => {
      event.preventDefault();
      this.running ??= this.write().finally(() => {
        this.running = null;
      });
    });
    button('stop').addEventListener('click', () => void worker.call('stop', null));
    button('copy').addEventListener('click', () => void this.copy());
    input('layer').addEventListener('change', () => void worker.call('look', Number(input('layer').value)));
    input('beside').addEventListener('change', () => this.showSides());
    this.showSides();
    this.showBusy(false);
  }

  showModel(side: Side, facts: ModelFacts, origin: string): void {
    this.columns[side].showModel(facts, origin);
    this.columns[side].clear();
    if (side === 'linear') {
      const layers = Array.from(
        {length: facts.layers},
        (_, layer) => new Option(`Layer ${layer + 1}`, `${layer}`),
      );
      element<HTMLSelectElement>('layer').replaceChildren(...layers);
      void this.worker.call('look', 0);
      this.view.clear();
    }
  }

  /** Ends writing, if it is going on. */
  async stop(): Promise<void> {
    if (this.running !== null) await this.worker.call('stop', null);
    await this.running;
  }

  private async write(): Promise<void> {
    const options = settings();
    writeAddress(this.backend());
    this.showBusy(true);
    this.said = 0;
    this.say('Writing.');
    this.start(options);
    try {
      const {leftOut} = await this.worker.call('write', options, (event) => this.show(event));
      const note =
        leftOut === '' ? '' : ` The models do not know ${[...leftOut].join(' ')}; left out of the prompt.`;
      this.say(`Done: ${counted(this.columns.linear.milliseconds.length, 'character')}.${note}`);
    } catch (error) {
      this.say((error as Error).message);
    } finally {
      this.showBusy(false);
      this.describeCharts();
    }
  }

  private start({prompt}: WriteOptions): void {
    this.showSides();
    for (const side of ['linear', 'softmax'] as const) this.columns[side].start(prompt);
    if (!input('beside').checked) this.columns.softmax.clear();
    this.view.clear();
    for (const chart of this.charts) chart.update();
  }

  private show(event: EventOf<'write'>): void {
    switch (event.event) {
      case 'written':
        this.columns[event.side].add(event);
        for (const chart of this.charts) chart.update();
        this.sayProgress();
        break;
      case 'look':
        this.view.show(event);
        break;
      case 'ended':
        this.columns[event.side].ended(event);
    }
  }

  private sayProgress(): void {
    const {linear, softmax} = this.columns;
    updateTable(linear, softmax);
    const made = linear.milliseconds.length;
    if (made >= this.said + SAY_EVERY) {
      this.said = made - (made % SAY_EVERY);
      this.say(`Writing: ${counted(this.said, 'character')}.`);
    }
  }

  private describeCharts(): void {
    const {linear, softmax} = this.columns;
    const side = (name: string, column: TextColumn) =>
      column.milliseconds.length === 0
        ? ''
        : `${name}: ${column.milliseconds.recent(64).toFixed(2)} ms a token and ${bytes(column.bytes.lastY)} at position ${count(column.bytes.lastX)}. `;
    const text = side('Linear', linear) + side('Softmax', softmax);
    for (const id of ['time-chart', 'bytes-chart']) {
      const canvas = element(id);
      canvas.setAttribute(
        'aria-label',
        `${canvas.dataset['title']}. ${text}The table below has the figures.`,
      );
    }
  }

  private async copy(): Promise<void> {
    const {linear, softmax} = this.columns;
    const texts = [linear.text, ...(softmax.text === '' ? [] : [`\n\nsoftmax:\n${softmax.text}`])];
    try {
      await navigator.clipboard.writeText(texts.join(''));
      this.say('Copied.');
    } catch {
      this.say('The browser does not let this page copy.');
    }
  }

  private showSides(): void {
    element('columns').classList.toggle('alone', !input('beside').checked);
    element('softmax').hidden = !input('beside').checked;
  }

  private showBusy(busy: boolean): void {
    button('write').disabled = busy;
    button('stop').disabled = !busy;
    button('copy').disabled = busy || this.columns.linear.text === '';
    input('beside').disabled = busy;
    this.onBusy(busy);
  }
}
