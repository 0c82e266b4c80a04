/** One thing runs in a worker at a time; `stop` ends it. */
let running = new AbortController();

/** For the next thing that runs. */
export function freshSignal(): AbortSignal {
  running = new AbortController();
  return running.signal;
}

export const stop = (): void => running.abort();
