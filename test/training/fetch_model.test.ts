/** Models by URL: what is asked of the network and when, with a stand-in for the browser's cache storage. */
import {mkdtempSync, readFileSync, rmSync} from 'node:fs';
import {tmpdir} from 'node:os';
import {join} from 'node:path';
import * as tf from '@tensorflow/tfjs-core';
import type {LayersModel} from '@tensorflow/tfjs-layers';
import {training} from '../../index';
import {describeOnBackends, expectNoLeak} from '../helpers/backends';
import {transformer, weightsOf} from './small_model';

const URL_ = 'https://example.com/book/model.json?key=1';

/** What fetchModel uses of the Cache API. */
class Kept {
  readonly files = new Map<string, {bytes: Uint8Array<ArrayBuffer>; headers: Headers}>();
  full = false;

  async match(url: string): Promise<Response | undefined> {
    const file = this.files.get(url);
    return file && new Response(file.bytes, {headers: file.headers});
  }
  async put(url: string, response: Response): Promise<void> {
    if (this.full) throw new Error('QuotaExceededError');
    this.files.set(url, {bytes: new Uint8Array(await response.arrayBuffer()), headers: response.headers});
  }
}

describeOnBackends('fetchModel', () => {
  const folder = mkdtempSync(join(tmpdir(), 'fetched-'));
  let model: LayersModel;
  let kept: Kept;
  let asked: string[];
  let served: (name: string) => Response | Promise<Response>;
  beforeAll(async () => {
    model = transformer();
    await training.saveModel(model, folder);
  });
  afterAll(() => {
    rmSync(folder, {recursive: true});
    model.dispose();
    Reflect.deleteProperty(globalThis, 'caches');
  });
  beforeEach(() => {
    kept = new Kept();
    asked = [];
    served = (name) => new Response(Uint8Array.from(readFileSync(join(folder, name))));
    Object.assign(globalThis, {caches: {open: async () => kept}});
  });

  const fetch = async (url: string) => {
    const {pathname, search} = new URL(url);
    expect(search).toBe('?key=1');
    const name = pathname.replace('/book/', '');
    asked.push(name);
    return served(name);
  };
  const load = (options = {}) => training.fetchModel(URL_, {fetch, ...options});
  async function loads(expected: string[], options = {}): Promise<void> {
    asked.length = 0;
    await expectNoLeak(async () => {
      const same = await load(options);
      expect(weightsOf(same)).toEqual(weightsOf(model));
      same.dispose();
    });
    expect(asked).toEqual(expected);
  }

  test('the first time everything is asked for, then model.json alone, which says whose weights are kept', async () => {
    await loads(['model.json', 'weights.bin']);
    await loads(['model.json']);
  });

  test('with a version nothing is asked for, until the version changes', async () => {
    await loads(['model.json', 'weights.bin'], {version: '1'});
    await loads([], {version: '1'});
    await loads(['model.json'], {version: '2'});
    await loads([], {version: '2'});
  });

  test('other weights behind the same url are found', async () => {
    await loads(['model.json', 'weights.bin']);
    const other = transformer(0.2, 2);
    const elsewhere = join(folder, 'other');
    await training.saveModel(other, elsewhere);
    served = (name) => new Response(Uint8Array.from(readFileSync(join(elsewhere, name))));
    asked.length = 0;
    const found = await load();
    expect(asked).toEqual(['model.json', 'weights.bin']);
    expect(weightsOf(found)).toEqual(weightsOf(other));
    found.dispose();
    other.dispose();
  });

  test('without a network the kept model is used', async () => {
    await loads(['model.json', 'weights.bin']);
    served = () => Promise.reject(new TypeError('Failed to fetch'));
    await loads(['model.json']);
    kept.files.clear();
    await expect(load()).rejects.toThrow(/could not load 'https:.*model.json.*': Failed to fetch/);
  });

  test('weights without a checksum are used again by version only', async () => {
    const stripped = () => {
      const json = JSON.parse(readFileSync(join(folder, 'model.json'), 'utf8'));
      delete json.userDefinedMetadata;
      return new Response(JSON.stringify(json));
    };
    const {bin, json} = {bin: served, json: stripped};
    served = (name) => (name === 'model.json' ? json() : bin(name));
    await loads(['model.json', 'weights.bin']);
    await loads(['model.json', 'weights.bin']);
    await loads(['model.json', 'weights.bin'], {version: '1'});
    await loads([], {version: '1'});
  });

  test('kept files that were damaged are loaded again', async () => {
    await loads(['model.json', 'weights.bin'], {version: '1'});
    for (const [url, file] of kept.files) if (url.includes('weights')) file.bytes[50]! ^= 1;
    await loads(['weights.bin'], {version: '1'});
    await loads([], {version: '1'});
  });

  test('a model that tfjs cannot make is refused, and nothing is left behind', async () => {
    const whole = served;
    served = async (name) => {
      const response = await whole(name);
      return name === 'weights.bin'
        ? response
        : new Response((await response.text()).replace('"output_layers":[["', '"output_layers":[["no_'));
    };
    const {numTensors, numBytes} = tf.memory();
    await expect(load()).rejects.toThrow(/tfjs could not make the model of 'https:/);
    expect(tf.memory()).toMatchObject({numTensors, numBytes});
    expect(kept.files.size).toBe(0);
  });

  test('nothing of a damaged model is kept', async () => {
    const whole = served;
    served = async (name) => {
      const bytes = new Uint8Array(await (await whole(name)).arrayBuffer());
      if (name === 'weights.bin') bytes[50]! ^= 1;
      return new Response(bytes);
    };
    await expect(load()).rejects.toThrow(/weights.bin is damaged, or is not of the same save/);
    expect(kept.files.size).toBe(0);
  });

  test('a full cache, a forbidden one, none, and cache: false load all the same', async () => {
    kept.full = true;
    await loads(['model.json', 'weights.bin']);
    Object.assign(globalThis, {
      caches: {
        open: async () => {
          throw new Error('SecurityError');
        },
      },
    });
    await loads(['model.json', 'weights.bin']);
    Reflect.deleteProperty(globalThis, 'caches');
    await loads(['model.json', 'weights.bin']);
    Object.assign(globalThis, {caches: {open: async () => kept}});
    kept.full = false;
    await loads(['model.json', 'weights.bin'], {cache: false});
    expect(kept.files.size).toBe(0);
  });

  test.each(['model.json', 'weights.bin'])(
    'a connection that ends in the middle of %s is an error that names it, unless model.json is kept',
    async (name) => {
      const whole = served;
      const cut = new ReadableStream({
        pull(controller) {
          controller.enqueue(new Uint8Array(4));
          controller.error(new TypeError('terminated'));
        },
      });
      served = (asked) => (asked === name ? new Response(cut) : whole(asked));
      await expect(load()).rejects.toThrow(
        new RegExp(`training.fetchModel: could not load 'https:.*${name}.*': terminated`),
      );
      expect(kept.files.size).toBe(0);
      served = whole;
      await loads(['model.json', 'weights.bin']);
      served = () => new Response(new ReadableStream({pull: (c) => c.error(new TypeError('terminated'))}));
      await loads(['model.json']);
    },
  );

  test('what fetch throws, or answers, in place of a response is named', async () => {
    await expect(load({fetch: () => Promise.reject('offline')})).rejects.toThrow(
      /could not load '.*': offline/,
    );
    await expect(load({fetch: async () => undefined})).rejects.toThrow(/training.fetchModel: could not load/);
  });

  test('errors name the file', async () => {
    served = (name) => (name === 'weights.bin' ? new Response('', {status: 404}) : new Response('[]'));
    await expect(load()).rejects.toThrow(/'https:.*model.json.*' is not a model in tfjs's layers format/);
    served = () => new Response('', {status: 403});
    await expect(load()).rejects.toThrow(/could not load '.*': the server answered 403/);
    const {signal} = AbortSignal.abort() && {signal: AbortSignal.abort()};
    await expect(load({signal})).rejects.toThrow();
    await expect(training.fetchModel('model.json', {fetch})).rejects.toThrow(
      /training.fetchModel: expected url to be the address of a model.json; got 'model.json'/,
    );
    await expect(load({version: 5})).rejects.toThrow(/expected version to be a text; got 5/);
    await expect(load({cache: ''})).rejects.toThrow(/expected cache to be a name or false; got ''/);
    await expect(load({signal: 5})).rejects.toThrow(
      /fetchModel: expected signal to be an AbortSignal; got 5/,
    );
    await expect(load({vresion: '1'})).rejects.toThrow(/unknown option 'vresion'/);
  });
});
