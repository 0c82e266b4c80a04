/** Models by URL, kept in the browser's cache storage. */
import type {LayersModel} from '@tensorflow/tfjs-layers';
import {check, checkOptions, checkSignal, fail, show} from '../src/errors';
import {joined, type ModelFile, makeModel, readModelFile, whyNotWeights} from './model_format';

/** Options of `fetchModel`. */
export interface FetchModelOptions {
  /**
   * Which model stands behind the URL, such as '3' or a date. While it stays the same the kept copy is used without a
   * question to the network. Default: model.json is asked for every time, and the weights only when it names others.
   */
  version?: string;
  /** Name of the cache storage to keep the files in; false keeps nothing. Default 'tfjs-linear-attention'. */
  cache?: string | false;
  /** Ends the loading with an error. */
  signal?: AbortSignal;
  /** Asks for a file; default: the global fetch. */
  fetch?: (url: string, init: RequestInit) => Promise<Response>;
}

const FN = 'training.fetchModel';
/** The header of a kept file that says of which version it is. */
const VERSION = 'x-model-version';

/**
 * Loads a model in tfjs's layers format by the URL of its model.json, in a page, a worker or Node, with the checks of
 * `loadModel`. In a page the files are kept (Cache API), so that the next visit needs no download, nor a network where
 * `version` says that nothing changed. Weights are used again only where they are the ones that model.json means: by the
 * checksum that `saveModel` writes, or, for other models, by the same `version`. A full or forbidden cache is no error.
 *
 * ```js
 * const model = await training.fetchModel('https://example.com/book/model.json', {version: '2'});
 * await caches.delete('tfjs-linear-attention');   // forgets all models
 * ```
 *
 * @param url Absolute, or relative to the page.
 * @throws Error that names the file and what is wrong with it; nothing of a damaged model is kept, no tensor left behind.
 */
export async function fetchModel(url: string, options: FetchModelOptions = {}): Promise<LayersModel> {
  checkOptions(FN, options, ['version', 'cache', 'signal', 'fetch']);
  const {version, cache: name = 'tfjs-linear-attention', signal, fetch = ask} = options;
  const isName = (x: unknown) => typeof x === 'string' && x !== '';
  check(
    version === undefined || isName(version),
    FN,
    () => `expected version to be a text; got ${show(version)}.`,
  );
  check(name === false || isName(name), FN, () => `expected cache to be a name or false; got ${show(name)}.`);
  check(typeof fetch === 'function', FN, () => `expected fetch to be a function; got ${show(fetch)}.`);
  checkSignal(FN, signal);
  const address = absolute(url);
  const files = new Files(name === false ? null : await openCache(name), fetch, version, signal);

  const what = `'${address}'`;
  const current = version === undefined ? null : await files.kept(address, version);
  const bytes = current ?? (await files.download(address, true));
  const file = readModelFile(FN, what, bytes);
  const addresses = file.paths.map((path) => {
    const part = new URL(path, address);
    part.search = address.search;
    return part;
  });
  const keptWeights = await files.keptWeights(file, addresses, version);
  const weights = keptWeights ?? joined(await Promise.all(addresses.map((part) => files.download(part))));
  const why = whyNotWeights(file, weights);
  if (why !== null) {
    fail(FN, why);
  }
  const model = await makeModel(FN, file, weights);
  await files.keep();
  return model;
}

/** A browser's fetch refuses to be another object's method. */
const ask: NonNullable<FetchModelOptions['fetch']> = (url, init) => globalThis.fetch(url, init);

function absolute(url: unknown): URL {
  const base = (globalThis as {location?: {href: string}}).location?.href;
  try {
    return new URL(url as string, base);
  } catch {
    return fail(FN, `expected url to be the address of a model.json; got ${show(url)}.`);
  }
}

/** Null where there is no cache storage: in Node, outside of secure contexts, or where the user forbids it. */
async function openCache(name: string): Promise<Cache | null> {
  try {
    return (await (globalThis as {caches?: CacheStorage}).caches?.open(name)) ?? null;
  } catch {
    return null;
  }
}

/** The files of one model: those kept, and those downloaded, which are kept at the end. */
class Files {
  private readonly fresh: {address: URL; bytes: Uint8Array<ArrayBuffer>}[] = [];

  constructor(
    private readonly cache: Cache | null,
    private readonly fetch: NonNullable<FetchModelOptions['fetch']>,
    private readonly version: string | undefined,
    private readonly signal: AbortSignal | undefined,
  ) {}

  /** A kept file, of that version if one is given; else null. */
  async kept(address: URL, version?: string): Promise<Uint8Array | null> {
    try {
      const found = await this.cache?.match(address.href);
      if (!found || (version !== undefined && found.headers.get(VERSION) !== version)) {
        return null;
      }
      return new Uint8Array(await found.arrayBuffer());
    } catch {
      return null;
    }
  }

  /** The kept weights where they are those of `file`; else null. */
  async keptWeights(
    file: ModelFile,
    addresses: readonly URL[],
    version: string | undefined,
  ): Promise<Uint8Array<ArrayBuffer> | null> {
    // Without a checksum only a version can say whose weights these are.
    if (file.checksum === undefined && version === undefined) {
      return null;
    }
    const wanted = file.checksum === undefined ? version : undefined;
    const parts = await Promise.all(addresses.map((address) => this.kept(address, wanted)));
    const all = parts.filter((part) => part !== null);
    const weights = all.length === parts.length ? joined(all) : null;
    return weights !== null && whyNotWeights(file, weights) === null ? weights : null;
  }

  /** @param orKept Take the kept file, of any version, when there is no network and no version was asked for. */
  async download(address: URL, orKept = false): Promise<Uint8Array> {
    let bytes: Uint8Array<ArrayBuffer> | null;
    let status: number;
    try {
      // The browser asks whether what it has is still the newest.
      const response = await this.fetch(address.href, {cache: 'no-cache', signal: this.signal ?? null});
      status = response.status;
      // A connection may end in the middle of the file.
      bytes = response.ok ? new Uint8Array(await response.arrayBuffer()) : null;
    } catch (error) {
      this.signal?.throwIfAborted();
      const kept = orKept && this.version === undefined ? await this.kept(address) : null;
      return kept ?? fail(FN, `could not load '${address}': ${(error as Error)?.message ?? error}.`);
    }
    if (bytes === null) {
      fail(FN, `could not load '${address}': the server answered ${status}.`);
    }
    this.fresh.push({address, bytes});
    return bytes;
  }

  /** Keeps what was downloaded. */
  async keep(): Promise<void> {
    try {
      for (const {address, bytes} of this.fresh) {
        const headers = {'content-type': 'application/octet-stream', [VERSION]: this.version ?? ''};
        await this.cache?.put(address.href, new Response(bytes, {headers}));
      }
    } catch {
      // No room: the next visit downloads again.
    }
  }
}
