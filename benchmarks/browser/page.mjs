/** A page of the headless browser that loads an entry point; its functions are called from here. */
import {fork} from 'node:child_process';
import {fileURLToPath} from 'node:url';

const driver = fileURLToPath(new URL('../../test/browser/driver.mjs', import.meta.url));

/**
 * Resolves to {call(name, ...args), close()}.
 * @param folder whose files the page can load by their names
 */
export function openPage(entry, folder) {
  const child = fork(driver, folder === undefined ? [entry] : [entry, folder], {
    execArgv: [],
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  });
  const waiting = new Map();
  let requests = 0;
  const call = (name, ...args) =>
    new Promise((resolve, reject) => {
      waiting.set(++requests, {resolve, reject});
      child.send({id: requests, page: 'benchmark', call: name, args});
    });
  const close = () =>
    new Promise((resolve) => {
      child.once('exit', resolve);
      child.disconnect();
    });
  return new Promise((resolve, reject) => {
    child.on('exit', (code) => {
      const error = new Error(`the browser's driver ended with code ${code}`);
      reject(error);
      for (const {reject: fail} of waiting.values()) fail(error);
    });
    child.on('message', ({ready, id, result, error}) => {
      if (ready) {
        resolve({call, close});
        return;
      }
      const {resolve: answer, reject: fail} = waiting.get(id);
      waiting.delete(id);
      if (error === undefined) answer(result);
      else fail(new Error(error));
    });
  });
}
