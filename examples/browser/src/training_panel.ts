/** Training in the page: the form, the live loss, and what is done with the trained model. */
import {LineChart} from './chart/line_chart';
import {Series} from './chart/series';
import {button, element, input, numberIn} from './dom';
import {count, counted} from './format';
import {download} from './run/download';
import {readModelFolder} from './run/model_folder';
import {decodeRun, encodeRun} from './run/run_file';
import {hasKeptRun, keepRun, keptRun} from './run/run_store';
import type {BackendName, ModelFiles, Run, Side, TrainingEvent, TrainingOptions} from './worker/protocol';
import type {WorkerClient} from './worker_client';

const SIZES: Record<string, Pick<TrainingOptions, 'dModel' | 'layers' | 'heads'>> = {
  tiny: {dModel: 16, layers: 1, heads: 2},
  small: {dModel: 64, layers: 2, heads: 4},
  medium: {dModel: 128, layers: 2, heads: 4},
};
const LENGTH = 64;
const BATCH = 8;
const LEARNING_RATE = 0.004;
const SEED = 1;

interface Surroundings {
  /** A worker of its own: training never waits for writing, nor writing for training. */
  worker: WorkerClient;
  backend(): BackendName;
  /** Puts a model into the page's columns. */
  useModel(side: Side, files: ModelFiles, origin: string): Promise<void>;
}

export class TrainingPanel {
  private readonly loss = new Series();
  private readonly validation = new Series();
  private readonly chart = new LineChart(
    element<HTMLCanvasElement>('loss-chart'),
    [
      {label: 'training', series: this.loss, colour: 'linear', dash: []},
      {label: 'held out', series: this.validation, colour: 'softmax', dash: [6, 4]},
    ],
    {xLabel: 'step', format: (y) => y.toFixed(1), least: 4},
  );
  private run: Run | null = null;
  /** Whether this browser keeps a run. */
  private kept = false;
  private busy = false;

  constructor(private readonly page: Surroundings) {
    element('training-form').addEventListener('submit', (event) => {
      event.preventDefault();
      void this.guarded(() => this.train());
    });
    const on = (id: string, act: () => Promise<void>) =>
      button(id).addEventListener('click', () => void this.guarded(act));
    button('training-stop').addEventListener('click', () => void page.worker.call('stop', null));
    on('run-use', () => this.write());
    on('run-save', async () => download(encodeRun(this.theRun()), `run-${this.theRun().step}.tfla`));
    on('run-keep', async () => {
      await keepRun(encodeRun(this.theRun()));
      this.kept = true;
      this.say('Kept in this browser.');
    });
    on('run-restore', async () => {
      const bytes = await keptRun();
      if (bytes === null) throw new Error('This browser keeps no run yet.');
      this.restore(decodeRun(bytes));
    });
    input('run-open').addEventListener('change', () => void this.guarded(() => this.open()));
    element('training-text').addEventListener('input', () => this.showActions());
    this.showActions();
    void hasKeptRun().then((kept) => {
      this.kept = kept;
      this.showActions(this.busy);
    });
  }

  private async train(): Promise<void> {
    const text = this.text;
    const from = this.continued();
    const options = from?.options ?? {
      ...SIZES[input('training-size').value],
      attention: input('training-attention').value as Side,
      ...{batch: BATCH, length: LENGTH, learningRate: LEARNING_RATE, seed: SEED},
    };
    if (from === null) this.clearCurves();
    this.showActions(true);
    this.say('Starting.');
    await this.page.worker.call('use', this.page.backend());
    const steps = numberIn('training-steps');
    this.run = await this.page.worker.call('train', {text, options, steps, from}, (event) =>
      this.show(event),
    );
    this.say(`${counted(this.run.step, 'step')} done, loss ${this.run.losses.at(-1)!.toFixed(3)}.`);
  }

  private show({step, steps, loss, validation, charactersPerSecond, secondsLeft}: TrainingEvent): void {
    this.loss.push(step, loss);
    if (validation !== null) this.validation.push(step, validation);
    this.chart.update();
    const bar = element<HTMLProgressElement>('training-progress');
    bar.max = steps;
    bar.value = step;
    element('training-figures').textContent =
      `step ${count(step)} of ${count(steps)}, loss ${loss.toFixed(3)}` +
      `${validation === null ? '' : `, held out ${validation.toFixed(3)}`}, ` +
      `${count(charactersPerSecond)} characters a second, ${Math.ceil(secondsLeft)} s left`;
  }

  private async write(): Promise<void> {
    const {options, files, step} = this.theRun();
    await this.page.useModel(options.attention, files, `trained here, ${counted(step, 'step')}`);
    this.say(`The ${options.attention} column now writes with this model.`);
  }

  /** A run that this page saved, or a model of the command line. */
  private async open(): Promise<void> {
    const field = input('run-open');
    const files = Array.from(field.files ?? []);
    field.value = ''; // so that the same file can be chosen again
    if (files.length === 1) {
      this.restore(decodeRun(new Uint8Array(await files[0].arrayBuffer())));
    } else if (files.length > 1) {
      const model = await readModelFolder(files);
      const softmax = JSON.stringify(model.artifacts.modelTopology).includes('"SoftmaxAttention"');
      await this.page.useModel(softmax ? 'softmax' : 'linear', model, 'from your files');
      this.say('The model is in its column.');
    }
  }

  private restore(run: Run): void {
    this.run = run;
    element<HTMLTextAreaElement>('training-text').value = run.text;
    this.clearCurves();
    run.losses.forEach((loss, i) => {
      this.loss.push(i + 1, loss);
    });
    this.chart.update();
    this.say(`A run of ${counted(run.step, 'step')} is here; it can be continued.`);
  }

  private clearCurves(): void {
    element('training-live').hidden = false;
    this.loss.clear();
    this.validation.clear();
    this.chart.update();
  }

  private get text(): string {
    return element<HTMLTextAreaElement>('training-text').value;
  }

  /** The run that a press of the button would continue. */
  private continued(): Run | null {
    return this.run !== null && this.run.text === this.text ? this.run : null;
  }

  private theRun(): Run {
    if (this.run === null) throw new Error('Nothing is trained yet.');
    return this.run;
  }

  private say(text: string): void {
    element('training-status').textContent = text;
  }

  private showActions(busy = false): void {
    this.busy = busy;
    for (const id of ['run-use', 'run-save', 'run-keep']) button(id).disabled = busy || this.run === null;
    button('training-start').disabled = busy;
    button('run-restore').disabled = busy || !this.kept;
    input('run-open').disabled = busy;
    button('training-stop').disabled = !busy;
    const continues = this.continued() !== null;
    for (const id of ['training-attention', 'training-size']) input(id).disabled = busy || continues;
    button('training-start').textContent = continues ? 'Continue training' : 'Train';
  }

  /** Runs an action of the visitor's; what goes wrong is said, not thrown. */
  private async guarded(act: () => Promise<void>): Promise<void> {
    try {
      await act();
    } catch (error) {
      this.say((error as Error).message);
    } finally {
      this.showActions();
    }
  }
}
