/** The page's side of generation in a Web Worker. The worker's is serve.ts. */
import {check, checkOptions, show} from '../src/errors';
import type {GenerateOptions} from './generate';
import {isPort, ours, type Port, type RemoteOptions, type Reply} from './worker_messages';

/** A model in a worker. */
export interface RemoteModel {
  /** As `generation.generate`, without the model: pieces of text for a text, ids for ids. Ends early by `break` or `signal`. */
  generate(prompt: string, options?: GenerateOptions): AsyncGenerator<string, void, undefined>;
  generate(prompt: number[], options?: GenerateOptions): AsyncGenerator<number, void, undefined>;
}

const FN = 'generation.remote';
const OPTIONS = ['maxNewTokens', 'temperature', 'topK', 'topP', 'seed', 'stopTokens', 'signal'];
let requests = 0;

/**
 * A model that a worker has given to `generation.serve`. The worker stays the caller's: `worker.terminate()` ends it.
 *
 * ```js
 * const worker = new Worker(new URL('./worker.js', import.meta.url), {type: 'module'});
 * const model = generation.remote(worker);
 * for await (const piece of model.generate('It was ', {maxNewTokens: 100})) output.append(piece);
 * ```
 *
 * @param port The Worker, or a MessagePort to where `serve` listens.
 * @throws Error for wrong arguments at once; errors of the worker while iterating.
 */
export function remote(port: Port): RemoteModel {
  check(isPort(port), FN, () => `expected a Worker or a MessagePort; got ${show(port)}.`);
  port.start?.();
  function generate(prompt: unknown, options: GenerateOptions = {}): AsyncGenerator<never, void, undefined> {
    const fn = 'generation.generate';
    checkOptions(fn, options, OPTIONS);
    check(
      typeof prompt === 'string' || (Array.isArray(prompt) && prompt.every((id) => Number.isInteger(id))),
      fn,
      () => `expected prompt to be a text or an array of ids; got ${show(prompt)}.`,
    );
    const {signal, ...sent} = options;
    return pieces(port, prompt as string | number[], sent, signal) as AsyncGenerator<never, void, undefined>;
  }
  return {generate};
}

async function* pieces(
  port: Port,
  prompt: string | number[],
  options: RemoteOptions,
  signal: AbortSignal | undefined,
): AsyncGenerator<string | number, void, undefined> {
  const id = ++requests;
  const replies: Reply[] = [];
  let arrived = () => {};
  const listener = ({data}: {data: unknown}) => {
    const reply = ours<Reply>(data);
    if (reply?.id === id) {
      replies.push(reply);
      arrived();
    }
  };
  // A worker that cannot start never answers.
  const broken = (event: {message?: string}) => {
    replies.push({
      tfla: 'error',
      id,
      message: `${FN}: the worker failed: ${event.message ?? 'it did not start'}.`,
    });
    arrived();
  };
  const stop = () => {
    port.postMessage({tfla: 'stop', id});
    replies.push({tfla: 'end', id});
    arrived();
  };
  const errors = port as {addEventListener?: unknown} as ErrorSource;
  port.addEventListener('message', listener);
  errors.addEventListener('error', broken);
  signal?.addEventListener('abort', stop);
  let ended = false;
  try {
    if (signal?.aborted) {
      ended = true;
      return;
    }
    port.postMessage({tfla: 'generate', id, prompt, options});
    for (;;) {
      const reply = replies.shift();
      if (reply === undefined) {
        await new Promise<void>((resolve) => {
          arrived = resolve;
        });
      } else if (reply.tfla === 'piece') {
        yield reply.piece;
      } else {
        ended = true;
        if (reply.tfla === 'error') {
          throw new Error(reply.message);
        }
        return;
      }
    }
  } finally {
    port.removeEventListener('message', listener);
    errors.removeEventListener('error', broken);
    signal?.removeEventListener('abort', stop);
    if (!ended) {
      port.postMessage({tfla: 'stop', id});
    }
  }
}

interface ErrorSource {
  addEventListener(type: 'error', listener: (event: {message?: string}) => void): void;
  removeEventListener(type: 'error', listener: (event: {message?: string}) => void): void;
}
