/** The worker: owns tfjs and the models, and does all that takes time, so that the page stays free. */
import {startBackends, useBackend} from './backends';
import {loadModelOn, moveModels} from './loaded_models';
import {lookAt} from './looking';
import type {Answer, CallName, Handlers} from './protocol';
import {stop} from './stop_signal';
import {train} from './trainer';
import {write} from './write';

const handlers: Handlers = {
  start: startBackends,
  async use(name, emit) {
    const started = performance.now();
    await useBackend(name);
    await moveModels(emit);
    return {seconds: (performance.now() - started) / 1000};
  },
  load: ({side, from}, emit) => loadModelOn(side, from, emit),
  write,
  async stop() {
    stop();
    return null;
  },
  async look(layer) {
    lookAt(layer);
    return null;
  },
  train,
};

self.onmessage = async ({data}: MessageEvent<{id: number; name: CallName; request: never}>) => {
  const {id, name, request} = data;
  const answer = (message: Omit<Answer, 'id'>) => self.postMessage({id, ...message});
  try {
    answer({reply: await handlers[name](request, (event) => answer({event}))});
  } catch (error) {
    answer({error: error instanceof Error ? error.message : String(error)});
  }
};
