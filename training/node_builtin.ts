/**
 * Node's own modules, for the parts that read and write files. Nothing is imported statically, so that the package loads
 * in a page; there, a call that needs files is a clear error.
 */
import {fail} from '../src/errors';

interface Builtins {
  'node:fs': typeof import('node:fs');
  'node:path': typeof import('node:path');
  'node:worker_threads': typeof import('node:worker_threads');
  'node:os': typeof import('node:os');
}

/** @throws Error `fn: what needs Node ...` outside Node. */
export function nodeBuiltin<Name extends keyof Builtins>(
  fn: string,
  what: string,
  name: Name,
): Builtins[Name] {
  const host = (globalThis as {process?: Partial<NodeJS.Process>}).process;
  const module = host?.getBuiltinModule?.(name);
  if (module === undefined) {
    fail(fn, `${what} needs Node 20.16 or later; in a page, use an object with functions instead of a path.`);
  }
  return module as Builtins[Name];
}
