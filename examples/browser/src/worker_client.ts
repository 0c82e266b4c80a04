/** Calls into a worker, as promises. */
import type {Answer, CallName, EventOf, Reply, Request} from './worker/protocol';

interface Waiting {
  resolve(reply: unknown): void;
  reject(error: Error): void;
  onEvent(event: unknown): void;
}

export class WorkerClient {
  private readonly waiting = new Map<number, Waiting>();
  private calls = 0;

  constructor(private readonly worker: Worker) {
    worker.onmessage = ({data}: MessageEvent<Answer>) => this.answer(data);
    // A worker that cannot start answers nothing: everyone who waits must hear of it.
    worker.onerror = (event) => {
      const error = new Error(event.message || 'the worker could not be started');
      for (const {reject} of this.waiting.values()) reject(error);
      this.waiting.clear();
    };
  }

  call<K extends CallName>(
    name: K,
    request: Request<K>,
    onEvent: (event: EventOf<K>) => void = () => {},
  ): Promise<Reply<K>> {
    const id = ++this.calls;
    return new Promise<Reply<K>>((resolve, reject) => {
      this.waiting.set(id, {
        resolve: (reply) => resolve(reply as Reply<K>),
        reject,
        onEvent: (event) => onEvent(event as EventOf<K>),
      });
      this.worker.postMessage({id, name, request});
    });
  }

  private answer({id, event, reply, error}: Answer): void {
    const waiting = this.waiting.get(id);
    if (waiting === undefined) return;
    if (event !== undefined) {
      waiting.onEvent(event);
      return;
    }
    this.waiting.delete(id);
    if (error === undefined) waiting.resolve(reply);
    else waiting.reject(new Error(error));
  }
}
