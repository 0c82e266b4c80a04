/** Instances of the package's own WebAssembly modules over a given linear memory. */

type Exports = WebAssembly.Exports;

const compiled = new Map<string, WebAssembly.Module | null>();
const instances = new WeakMap<WebAssembly.Memory, Map<string, Exports | null>>();
let disabled = false;

/** A function of one v128 instruction: valid where SIMD exists. */
const SIMD_PROBE = [
  0, 97, 115, 109, 1, 0, 0, 0, 1, 5, 1, 96, 0, 1, 123, 3, 2, 1, 0, 10, 10, 1, 8, 0, 65, 0, 253, 15, 253, 98,
  11,
];

/** The same of f32x4.relaxed_madd. */
const RELAXED_PROBE = [
  0, 97, 115, 109, 1, 0, 0, 0, 1, 5, 1, 96, 0, 1, 123, 3, 2, 1, 0, 10, 19, 1, 17, 0, 65, 0, 253, 15, 65, 0,
  253, 15, 65, 0, 253, 15, 253, 133, 2, 11,
];

let relaxed: boolean | undefined;

/** True where WebAssembly has relaxed SIMD: a multiplication and an addition in one instruction. */
export function hasRelaxedSimd(): boolean {
  relaxed ??= typeof WebAssembly === 'object' && WebAssembly.validate(Uint8Array.from(RELAXED_PROBE));
  return relaxed;
}

/** True where WebAssembly runs and has SIMD. */
export function hasSimd(): boolean {
  return !disabled && typeof WebAssembly === 'object' && WebAssembly.validate(Uint8Array.from(SIMD_PROBE));
}

/** Makes every later call take the plain JS path, as on a machine without SIMD. For tests and comparisons. */
export function disableSimd(value: boolean): void {
  disabled = value;
}

/**
 * The exports of a module (base64) over `memory`, or null where it cannot run: no SIMD, WebAssembly refused by a
 * content security policy, or not yet ready. Each pair is instantiated once.
 *
 * Synchronous. Older Chromium refuses synchronous compilation of more than 4 KB on a page's main thread: there the
 * module compiles in the background, and null is returned until it is ready.
 */
export function instantiate<E>(base64: string, memory: WebAssembly.Memory): E | null {
  if (disabled) {
    return null;
  }
  let perMemory = instances.get(memory);
  if (perMemory === undefined) {
    perMemory = new Map();
    instances.set(memory, perMemory);
  }
  let exports = perMemory.get(base64);
  if (exports === undefined) {
    exports = hasSimd() ? instantiateNow(base64, memory, perMemory) : null;
    perMemory.set(base64, exports);
  }
  return exports as E | null;
}

function instantiateNow(
  base64: string,
  memory: WebAssembly.Memory,
  perMemory: Map<string, Exports | null>,
): Exports | null {
  const bytes = moduleBytes(base64, memory);
  const imports = {env: {memory}};
  try {
    const key = isShared(memory) ? `shared ${base64}` : base64;
    let module = compiled.get(key);
    if (!module) {
      module = new WebAssembly.Module(bytes);
      compiled.set(key, module);
    }
    return new WebAssembly.Instance(module, imports).exports;
  } catch {
    WebAssembly.instantiate(bytes, imports).then(
      ({instance}) => perMemory.set(base64, instance.exports),
      warn,
    );
    return null;
  }
}

let warned = false;

/** WebAssembly is there and is refused: a content security policy does that. */
function warn(error: Error): void {
  if (!warned) {
    warned = true;
    console.warn(
      'tfjs-linear-attention: WebAssembly is refused here, so that its kernels run in plain JavaScript, several times slower. ' +
        "A page's Content-Security-Policy must allow it: script-src 'wasm-unsafe-eval'. " +
        `(${error.message})`,
    );
  }
}

/** Not by instanceof: the buffer may come from another realm (a test runner's, an iframe's). */
const isShared = (memory: WebAssembly.Memory): boolean =>
  Object.prototype.toString.call(memory.buffer) === '[object SharedArrayBuffer]';

/** Decodes base64, and declares the imported memory shared where it is (a threaded build of tfjs). */
function moduleBytes(base64: string, memory: WebAssembly.Memory): Uint8Array<ArrayBuffer> {
  const text = atob(base64);
  const bytes = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) {
    bytes[i] = text.charCodeAt(i);
  }
  if (isShared(memory)) {
    bytes[memoryFlagOffset(bytes)] |= 2;
  }
  return bytes;
}

/** Where the limits flag of the one memory import stands: the import section ends in flag, minimum, maximum. */
function memoryFlagOffset(bytes: Uint8Array): number {
  const name = 'memory';
  for (let at = 8; at < bytes.length; at++) {
    let length = 0;
    while (length < name.length && bytes[at + length] === name.charCodeAt(length)) {
      length++;
    }
    if (length === name.length && bytes[at + length] === 2) {
      return at + length + 1;
    }
  }
  throw new Error('instantiate: the module imports no memory.');
}
