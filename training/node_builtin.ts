/**
 * Node's own modules, for the parts that read and write files or start threads. Nothing is imported, so that the package
 * loads in a page; there, a call that needs them is a clear error.
 */
import {fail} from '../src/errors';

/** Node's module of that name. */
export type NodeModule<Name extends 'node:fs' | 'node:path' | 'node:worker_threads'> = ReturnType<
  typeof process.getBuiltinModule<Name>
>;

/** @throws Error `fn: what needs Node ...` outside Node. */
export function nodeBuiltin<Name extends 'node:fs' | 'node:path' | 'node:worker_threads'>(
  fn: string,
  what: string,
  name: Name,
): NodeModule<Name> {
  const host = (globalThis as {process?: Partial<NodeJS.Process>}).process;
  const module = host?.getBuiltinModule?.(name);
  if (module === undefined) {
    fail(fn, `${what} needs Node 20.16 or later.`);
  }
  return module as NodeModule<Name>;
}
