/** Global scopes of a page and of a worker, without anything of Node's. */
import vm from 'node:vm';

const shared = () => ({
  console,
  performance,
  setTimeout,
  clearTimeout,
  TextEncoder,
  TextDecoder,
  atob,
  btoa,
  URL,
  navigator: {userAgent: ''},
});

export function pageContext() {
  const page = vm.createContext(shared());
  vm.runInContext('globalThis.self = globalThis.window = globalThis; globalThis.document = {};', page);
  return page;
}

export function workerContext() {
  const worker = vm.createContext(shared());
  vm.runInContext(
    'globalThis.self = globalThis; globalThis.WorkerGlobalScope = class {}; globalThis.importScripts = () => {};',
    worker,
  );
  return worker;
}
