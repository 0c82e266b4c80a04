/** The worker's side of generation in a Web Worker: see remote.ts. */
import type * as tfl from '@tensorflow/tfjs-layers';
import {check, checkOptions, show} from '../src/errors';
import {generate, type TextCodec} from './generate';
import {planOf} from './plan';
import {isPort, ours, type Port, type Reply, type Request} from './worker_messages';

/** Options of `serve`. */
export interface ServeOptions {
  /** Prompts and pieces are text. Default: ids. */
  tokenizer?: TextCodec | Promise<TextCodec>;
  /** Where the requests come from. Default: the worker's own scope (`self`). */
  port?: Port;
}

const FN = 'generation.serve';

/**
 * In a worker: answers the `generation.remote` of the page with what `model` writes, so that the page never waits for it.
 * Requests that come while another is written are written at the same time. Call it before anything is awaited, with a
 * promise of the model: a worker loses messages that come while nobody listens.
 *
 * ```js
 * // worker.js
 * async function load() {
 *   await tf.setBackend('wasm');
 *   return training.fetchModel('/book/model.json');
 * }
 * generation.serve(load());
 * ```
 *
 * @returns stop(), which ends what is being written and listens no more. The model stays the caller's.
 * @throws Error for wrong arguments. A model that cannot be loaded, or cannot write, is an error of each request.
 */
export function serve(
  model: tfl.LayersModel | Promise<tfl.LayersModel>,
  options: ServeOptions = {},
): () => void {
  checkOptions(FN, options, ['tokenizer', 'port']);
  const {tokenizer, port = globalThis} = options;
  check(
    isPort(port),
    FN,
    () =>
      `expected port to have postMessage and addEventListener, as a worker's self does; got ${show(port)}.`,
  );
  if (!isPromise(model)) {
    checkModel(model);
  }
  const ready = Promise.all([model, tokenizer]).then(([loaded, codec]) => {
    checkModel(loaded);
    return {loaded, codec};
  });
  // Reported with every request.
  ready.catch(() => {});
  const running = new Map<number, AbortController>();

  const write = async (request: Extract<Request, {tfla: 'generate'}>) => {
    const {id} = request;
    const send = (reply: Reply) => port.postMessage(reply);
    const controller = new AbortController();
    running.set(id, controller);
    try {
      const {loaded, codec} = await ready;
      for await (const piece of written(loaded, codec, request, controller.signal)) {
        if (controller.signal.aborted) {
          break;
        }
        send({tfla: 'piece', id, piece});
      }
      send({tfla: 'end', id});
    } catch (error) {
      send({tfla: 'error', id, message: (error as Error).message});
    } finally {
      running.delete(id);
    }
  };
  const listener = ({data}: {data: unknown}) => {
    const request = ours<Request>(data);
    if (request?.tfla === 'generate') {
      void write(request);
    } else if (request?.tfla === 'stop') {
      running.get(request.id)?.abort();
    }
  };
  port.addEventListener('message', listener);
  port.start?.();
  return () => {
    port.removeEventListener('message', listener);
    for (const controller of running.values()) {
      controller.abort();
    }
  };
}

function written(
  model: tfl.LayersModel,
  tokenizer: TextCodec | undefined,
  {prompt, options}: Extract<Request, {tfla: 'generate'}>,
  signal: AbortSignal,
): AsyncGenerator<string | number, void, undefined> {
  const isText = typeof prompt === 'string';
  check(
    isText === (tokenizer !== undefined),
    'generation.generate',
    () =>
      `expected the prompt to be ${isText ? 'ids: the worker has no tokenizer' : 'text'}; got ${show(prompt)}.`,
  );
  return tokenizer === undefined
    ? generate(model, prompt as number[], {...options, signal})
    : generate(model, prompt as string, {...options, signal, tokenizer});
}

const isPromise = (x: object): x is Promise<tfl.LayersModel> =>
  typeof (x as {then?: unknown} | null)?.then === 'function';

function checkModel(model: tfl.LayersModel): void {
  const {inputDim} = planOf(FN, model);
  check(inputDim === null, FN, () => 'expected a model that takes ids; got one that takes vectors.');
}
