/** One run, kept by the browser (IndexedDB) from one visit to the next. */
const DATABASE = 'tfjs-linear-attention-demo';
const STORE = 'runs';
const KEY = 'latest';

export async function keepRun(bytes: Uint8Array): Promise<void> {
  await inStore('readwrite', (store) => store.put(bytes, KEY));
}

/** The bytes kept last; null when there are none. */
export async function keptRun(): Promise<Uint8Array | null> {
  const found = await inStore('readonly', (store) => store.get(KEY));
  return found instanceof Uint8Array ? found : null;
}

/** False too where the browser keeps nothing at all; keeping a run then says why. */
export async function hasKeptRun(): Promise<boolean> {
  return inStore('readonly', (store) => store.count(KEY)).then(
    (runs) => runs !== 0,
    () => false,
  );
}

async function inStore(
  mode: IDBTransactionMode,
  use: (store: IDBObjectStore) => IDBRequest,
): Promise<unknown> {
  const database = await open();
  try {
    const transaction = database.transaction(STORE, mode);
    const request = use(transaction.objectStore(STORE));
    // The request may succeed and the transaction still fail, for want of room.
    await new Promise<void>((resolve, reject) => {
      transaction.oncomplete = () => resolve();
      transaction.onabort = () => reject(transaction.error ?? new Error('the browser gave up'));
    });
    return request.result;
  } catch (error) {
    throw new Error(`The browser could not keep or find the run: ${(error as Error).message}`);
  } finally {
    database.close();
  }
}

const open = (): Promise<IDBDatabase> =>
  new Promise((resolve, reject) => {
    const request = indexedDB.open(DATABASE, 1);
    request.onupgradeneeded = () => request.result.createObjectStore(STORE);
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(new Error(`This browser keeps nothing here: ${request.error?.message}`));
  });
