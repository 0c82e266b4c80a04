/** Generation across a port, as between a page and its worker. */
import {MessageChannel as Channel} from 'node:worker_threads';
import type {LayersModel} from '@tensorflow/tfjs-layers';
import {generation, models} from '../../index';
import {describeOnBackends, expectNoLeak} from '../helpers/backends';

const TEXT = 'the whale and the sea';

describeOnBackends('generation in a worker', () => {
  const tokenizer = models.characterTokenizer(TEXT);
  let model: LayersModel;
  let channel: Channel;
  let stop: () => void = () => {};
  beforeAll(() => {
    const {vocabSize} = tokenizer;
    model = models.transformer({vocabSize, dModel: 8, numLayers: 1, numHeads: 2, seed: 1});
  });
  afterAll(() => model.dispose());
  beforeEach(() => {
    channel = new Channel();
  });
  afterEach(() => {
    stop();
    channel.port1.close();
    channel.port2.close();
  });

  const port = (which: 'port1' | 'port2') => channel[which] as object as generation.Port;
  const serve = (options: generation.ServeOptions = {}) => {
    stop = generation.serve(model, {port: port('port2'), ...options});
    return generation.remote(port('port1'));
  };
  async function all<T>(pieces: AsyncIterable<T>): Promise<T[]> {
    const made: T[] = [];
    for await (const piece of pieces) made.push(piece);
    return made;
  }

  test('text comes as the model writes it here', async () => {
    const options = {maxNewTokens: 12, temperature: 0.8, topK: 5, seed: 3};
    const remote = serve({tokenizer});
    const here = await all(generation.generate(model, 'the ', {...options, tokenizer}));
    expect(await all(remote.generate('the ', options))).toEqual(here);
    expect(here).toHaveLength(12);
  });

  test('ids too, and several at the same time', async () => {
    const remote = serve();
    const options = {maxNewTokens: 6, temperature: 0};
    const prompts = [[1], [2, 3], [4]];
    const here = await Promise.all(prompts.map((ids) => all(generation.generate(model, ids, options))));
    expect(await Promise.all(prompts.map((ids) => all(remote.generate(ids, options))))).toEqual(here);
  });

  test('a reader that leaves, and a signal, end the writing in the worker', async () => {
    const remote = serve({tokenizer});
    await expectNoLeak(async () => {
      for await (const _ of remote.generate('the ', {maxNewTokens: 100000})) break;
      const controller = new AbortController();
      let read = 0;
      for await (const _ of remote.generate('the ', {maxNewTokens: 100000, signal: controller.signal})) {
        if (++read === 3) controller.abort();
      }
      expect(read).toBe(3);
      expect(await all(remote.generate('the ', {signal: AbortSignal.abort()}))).toEqual([]);
      // The worker answers again, so that it has left what was not wanted.
      expect(await all(remote.generate('the ', {maxNewTokens: 2}))).toHaveLength(2);
      await new Promise((resolve) => setTimeout(resolve, 100));
    });
  });

  test('requests that come before the model wait for it; one that cannot be loaded is their error', async () => {
    let loaded: (model: LayersModel) => void = () => {};
    const promise = new Promise<LayersModel>((resolve) => {
      loaded = resolve;
    });
    stop = generation.serve(promise, {port: port('port2'), tokenizer: Promise.resolve(tokenizer)});
    const remote = generation.remote(port('port1'));
    const waiting = all(remote.generate('the ', {maxNewTokens: 3}));
    await new Promise((resolve) => setTimeout(resolve, 20));
    loaded(model);
    expect(await waiting).toHaveLength(3);
    stop();
    stop = generation.serve(Promise.reject(new Error('404')), {port: port('port2')});
    await expect(all(remote.generate([1]))).rejects.toThrow('404');
  });

  test('errors of the worker reach the reader', async () => {
    const remote = serve({tokenizer});
    await expect(all(remote.generate('#'))).rejects.toThrow(/#/);
    await expect(all(remote.generate([1]))).rejects.toThrow(/expected the prompt to be text; got \[1\]/);
    await expect(all(remote.generate('the ', {topK: -1}))).rejects.toThrow(/topK/);
  });

  test('other messages on the port are left alone', async () => {
    const remote = serve({tokenizer});
    channel.port1.postMessage({kind: 'of the application'});
    channel.port2.postMessage('also of the application');
    expect(await all(remote.generate('the ', {maxNewTokens: 2}))).toHaveLength(2);
  });

  test('wrong calls are refused by name', () => {
    expect(() => generation.remote({} as never)).toThrow(
      /generation.remote: expected a Worker or a MessagePort/,
    );
    expect(() => generation.serve({} as never, {port: port('port2')})).toThrow(
      /generation.serve: expected model/,
    );
    expect(() => generation.serve(model, {port: 5 as never})).toThrow(/expected port to have postMessage/);
    expect(() => generation.serve(model, {tokeniser: tokenizer} as never)).toThrow(
      /unknown option 'tokeniser'/,
    );
    const remote = serve({tokenizer});
    expect(() => remote.generate('a', {maxTokens: 1} as never)).toThrow(/unknown option 'maxTokens'/);
    expect(() => remote.generate(5 as never)).toThrow(
      /expected prompt to be a text or an array of ids; got 5/,
    );
  });
});
