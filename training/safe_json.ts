import {fail} from '../src/errors';

/** Keys with which a file could reach into the prototypes of the objects made from it. */
const PROTOTYPE_KEYS = ['__proto__', 'prototype', 'constructor'];

/** JSON.parse for files that nobody vouches for: refuses prototype keys at any depth. */
export function parseJson(fn: string, what: string, text: string): unknown {
  let refused: string | null = null;
  let value: unknown;
  try {
    value = JSON.parse(text, (key, inner) => {
      if (PROTOTYPE_KEYS.includes(key)) {
        refused = key;
      }
      return inner;
    });
  } catch (error) {
    fail(fn, `${what} is not valid JSON (${(error as Error).message}).`);
  }
  if (refused !== null) {
    fail(fn, `${what} has the key '${refused}', which is not allowed.`);
  }
  return value;
}

/** A plain object, not null and not an array. */
export function isObject(x: unknown): x is {[key: string]: unknown} {
  return x !== null && typeof x === 'object' && !Array.isArray(x);
}
