/** What a page and its worker say to each other. `id` is the request's. */
import type {GenerateOptions} from './generate';

/** The options that can be sent; signal and tokenizer stay where they are. */
export type RemoteOptions = Omit<GenerateOptions, 'signal'>;

export type Request =
  | {tfla: 'generate'; id: number; prompt: string | number[]; options: RemoteOptions}
  | {tfla: 'stop'; id: number};

export type Reply =
  | {tfla: 'piece'; id: number; piece: string | number}
  | {tfla: 'end'; id: number}
  | {tfla: 'error'; id: number; message: string};

/** A Worker, a worker's own global scope, a MessagePort, or Node's parentPort. */
export interface Port {
  postMessage(message: unknown): void;
  addEventListener(type: 'message', listener: (event: {data: unknown}) => void): void;
  removeEventListener(type: 'message', listener: (event: {data: unknown}) => void): void;
  /** MessagePorts deliver nothing before. */
  start?(): void;
}

/** The message if it is one of ours: an application may send others through the same port. */
export function ours<T extends Request | Reply>(data: unknown): T | null {
  const {tfla, id} = (data ?? {}) as {tfla?: unknown; id?: unknown};
  return typeof tfla === 'string' && typeof id === 'number' ? (data as T) : null;
}

export const isPort = (x: unknown): x is Port =>
  ['postMessage', 'addEventListener', 'removeEventListener'].every(
    (name) => typeof (x as {[name: string]: unknown} | null)?.[name] === 'function',
  );
