/** The page: starts the workers, fetches the models, and joins the panels. */
import {button, element} from './dom';
import {backendInAddress, readAddress} from './settings';
import {TrainingPanel} from './training_panel';
import {lockBackends, selectBackend, showBackends} from './view/backend_picker';
import {wasmFiles} from './wasm_files';
import {type BackendName, type ModelFiles, SIDES, type Side} from './worker/protocol';
import {WorkerClient} from './worker_client';
import {WritingPanel} from './writing_panel';

const ORIGIN = 'trained by the command line on Moby-Dick';

const startWorker = () =>
  new WorkerClient(new Worker(new URL('./worker/worker.ts', import.meta.url), {type: 'module'}));

const absolute = (address: string) => new URL(address, document.baseURI).href;

const say = (text: string) => {
  element('status').textContent = text;
};

const compiling = ({done, total}: {done: number; total: number}) =>
  total > 0 && say(`Compiling shaders: ${done} of ${total}.`);

async function start(): Promise<void> {
  const notes = readAddress();
  const started = performance.now();
  // The second worker trains. It is started now, so that nothing is fetched later.
  const [writer, trainer] = [startWorker(), startWorker()];
  const wasm = await wasmFiles();
  const [reports] = await Promise.all([writer.call('start', {wasm}), trainer.call('start', {wasm})]);

  const wanted = backendInAddress();
  let backend = showBackends(reports, wanted, (name) => void changeBackend(name));
  if (wanted !== null && wanted !== backend)
    notes.push(`This browser has no backend ${wanted}; ${backend} is used.`);
  const writing = new WritingPanel(writer, () => backend, say, lockBackends);

  async function changeBackend(name: BackendName): Promise<void> {
    const before = backend;
    busy(true);
    try {
      say(`Changing to ${name}.`);
      const {seconds} = await writer.call('use', name, compiling);
      backend = name;
      say(`Ready on ${name} after ${seconds.toFixed(1)} s.`);
    } catch (error) {
      selectBackend(before);
      await writer.call('use', before);
      say((error as Error).message);
    } finally {
      busy(false);
    }
  }

  async function useModel(side: Side, from: string | ModelFiles, origin: string): Promise<void> {
    await writing.stop();
    busy(true);
    try {
      writing.showModel(side, await writer.call('load', {side, from}, compiling), origin);
    } finally {
      busy(false);
    }
  }

  busy(true);
  await writer.call('use', backend);
  for (const side of SIDES) await useModel(side, absolute(`models/${side}/`), ORIGIN);
  new TrainingPanel({worker: trainer, backend: () => backend, useModel});
  busy(false);
  const seconds = ((performance.now() - started) / 1000).toFixed(1);
  say([`Ready on ${backend} after ${seconds} s.`, ...notes].join(' '));
  performance.mark('demo-ready');
  document.body.dataset['ready'] = 'true';
}

function busy(is: boolean): void {
  button('write').disabled = is;
  lockBackends(is);
}

start().catch((error: Error) => say(`The page could not start: ${error.message}`));
