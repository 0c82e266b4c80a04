/**
 * Errors of the public functions. Each names the function, the argument, what was expected and what was got,
 * and is thrown before any tensor is made, so that a wrong call leaks nothing.
 */

/** Throws `fn: message`. */
export function fail(fn: string, message: string): never {
  throw new Error(`${fn}: ${message}`);
}

/** Throws `fn: message()` unless `condition` holds. The message is built only when it is needed. */
export function check(condition: boolean, fn: string, message: () => string): asserts condition {
  if (!condition) {
    fail(fn, message());
  }
}

/** A short printable form of any value, for "got ..." parts of messages. */
export function show(value: unknown): string {
  if (typeof value === 'string') {
    return `'${value}'`;
  }
  if (typeof value === 'function') {
    return `function ${value.name || '(anonymous)'}`;
  }
  if (value === null || typeof value !== 'object') {
    return String(value);
  }
  if ('shape' in value && 'dtype' in value) {
    return `a ${String(value.dtype)} tensor of shape ${showShape(value.shape as number[])}`;
  }
  if (Array.isArray(value) || ArrayBuffer.isView(value)) {
    const list = Array.from(value as ArrayLike<unknown>);
    return `[${list.slice(0, 8).map(show).join(',')}${list.length > 8 ? ',...' : ''}]`;
  }
  return `an object with keys ${Object.keys(value).slice(0, 8).join(', ') || '(none)'}`;
}

/** `[2,4,9,16]` */
export function showShape(shape: readonly (number | null)[]): string {
  return `[${shape.map((n) => (n === null ? 'null' : n)).join(',')}]`;
}

/** True of objects that are no arrays, maps, tensors or the like; of any realm, so not by instanceof. */
export const isPlain = (value: unknown): value is object =>
  Object.prototype.toString.call(value) === '[object Object]' && !('dataId' in (value as object));

/** Refuses anything but a plain options object whose keys are all in `allowed`: a typo must not be silent. */
export function checkOptions(
  fn: string,
  options: unknown,
  allowed: readonly string[],
  name = 'options',
): void {
  if (options === undefined) {
    return;
  }
  check(isPlain(options), fn, () => `expected ${name} to be an object; got ${show(options)}.`);
  for (const key of Object.keys(options as object)) {
    check(
      allowed.includes(key),
      fn,
      () => `unknown option '${key}'; expected ${allowed.map((k) => `'${k}'`).join(', ') || 'none'}.`,
    );
  }
}

export function checkBoolean(fn: string, name: string, value: unknown): asserts value is boolean {
  check(typeof value === 'boolean', fn, () => `expected ${name} to be true or false; got ${show(value)}.`);
}

export function checkOneOf<T extends string>(
  fn: string,
  name: string,
  value: unknown,
  allowed: readonly T[],
): asserts value is T {
  check(
    (allowed as readonly unknown[]).includes(value),
    fn,
    () => `expected ${name} to be one of ${allowed.map((k) => `'${k}'`).join(', ')}; got ${show(value)}.`,
  );
}

/** A finite number, at least `min` (and above it when `exclusive`). */
export function checkNumber(
  fn: string,
  name: string,
  value: unknown,
  {min = Number.NEGATIVE_INFINITY, exclusive = false}: {min?: number; exclusive?: boolean} = {},
): asserts value is number {
  const wanted = min === Number.NEGATIVE_INFINITY ? '' : exclusive ? ` above ${min}` : ` of at least ${min}`;
  check(
    typeof value === 'number' && Number.isFinite(value) && (exclusive ? value > min : value >= min),
    fn,
    () => `expected ${name} to be a finite number${wanted}; got ${show(value)}.`,
  );
}

/** A whole number, at least `min` (1 unless said). */
export function checkInteger(fn: string, name: string, value: unknown, min = 1): asserts value is number {
  check(
    typeof value === 'number' && Number.isSafeInteger(value) && value >= min,
    fn,
    () => `expected ${name} to be a whole number of at least ${min}; got ${show(value)}.`,
  );
}

/** What stops a long run: an AbortSignal of any realm, or nothing. */
export function checkSignal(fn: string, signal: unknown): asserts signal is AbortSignal | undefined {
  const {aborted, addEventListener} = (signal ?? {}) as Partial<AbortSignal>;
  check(
    signal === undefined || (typeof aborted === 'boolean' && typeof addEventListener === 'function'),
    fn,
    () => `expected signal to be an AbortSignal; got ${show(signal)}.`,
  );
}
