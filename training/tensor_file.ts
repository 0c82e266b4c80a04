/**
 * A file of named tensors and a JSON record, for checkpoints:
 *
 *     bytes 0-7    'TLACKPT' and a zero byte
 *     8-11         version, 1                         (whole numbers are little-endian and 32 bit)
 *     12-15        length H of the header, a multiple of 4
 *     16-19        CRC-32 of bytes 0-15 and of everything from byte 20
 *     20 ..        header, JSON in UTF-8 padded with spaces: {record, tensors: [{name, dtype, shape, offset}]}
 *     20 + H ..    the tensors' elements, 4 bytes each, side by side in the header's order
 *
 * A reader trusts nothing: every length, offset, name and type is checked before anything is made of the content.
 */
import {check, fail, show} from '../src/errors';
import {crc32} from './crc32';
import {isObject, parseJson} from './safe_json';

export interface SavedTensor {
  name: string;
  dtype: 'float32' | 'int32';
  shape: number[];
  values: Float32Array | Int32Array;
}

export interface TensorFile {
  record: unknown;
  tensors: SavedTensor[];
}

const MAGIC = [...'TLACKPT\0'].map((c) => c.charCodeAt(0));
const VERSION = 1;
const PREFIX = 20;
const MAX_HEADER = 2 ** 24;
const MAX_RANK = 8;
const MAX_NAME = 1000;

export function encodeTensorFile({record, tensors}: TensorFile): Uint8Array {
  let offset = 0;
  const entries = tensors.map(({name, dtype, shape, values}) => {
    const entry = {name, dtype, shape, offset};
    offset += values.byteLength;
    return entry;
  });
  let json = new TextEncoder().encode(JSON.stringify({record, tensors: entries}));
  if (json.length % 4 !== 0) {
    const padded = new Uint8Array(json.length + 4 - (json.length % 4)).fill(0x20);
    padded.set(json);
    json = padded;
  }
  const bytes = new Uint8Array(PREFIX + json.length + offset);
  const view = new DataView(bytes.buffer);
  bytes.set(MAGIC);
  view.setUint32(8, VERSION, true);
  view.setUint32(12, json.length, true);
  bytes.set(json, PREFIX);
  let at = PREFIX + json.length;
  for (const {values} of tensors) {
    bytes.set(new Uint8Array(values.buffer, values.byteOffset, values.byteLength), at);
    at += values.byteLength;
  }
  view.setUint32(16, checksum(bytes), true);
  return bytes;
}

function checksum(bytes: Uint8Array): number {
  return crc32(bytes.subarray(PREFIX), crc32(bytes.subarray(0, 16)));
}

/**
 * @param what How errors call the file.
 * @throws Error that says which check failed.
 */
export function decodeTensorFile(fn: string, what: string, bytes: Uint8Array): TensorFile {
  const need: (ok: boolean, why: string) => asserts ok = (ok, why) => {
    if (!ok) {
      fail(fn, `${what} cannot be used: ${why}.`);
    }
  };
  need(bytes instanceof Uint8Array, `expected bytes (a Uint8Array), got ${show(bytes)}`);
  need(bytes.length >= PREFIX, `it has ${bytes.length} bytes, too few`);
  need(
    MAGIC.every((byte, i) => bytes[i] === byte),
    'it is not a checkpoint of this package',
  );
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const version = view.getUint32(8, true);
  need(version === VERSION, `its format version is ${version}, this package reads version ${VERSION}`);
  const headerLength = view.getUint32(12, true);
  need(
    headerLength % 4 === 0 && headerLength <= MAX_HEADER && PREFIX + headerLength <= bytes.length,
    `its header of ${headerLength} bytes does not fit`,
  );
  need(view.getUint32(16, true) === checksum(bytes), 'its checksum is wrong: it is damaged or incomplete');

  const json = new TextDecoder().decode(bytes.subarray(PREFIX, PREFIX + headerLength));
  const header = parseJson(fn, `the header of ${what}`, json);
  need(isObject(header) && Array.isArray(header['tensors']), 'its header lists no tensors');
  const names = new Set<string>();
  let offset = 0;
  const start = PREFIX + headerLength;
  const tensors = (header['tensors'] as unknown[]).map((entry): SavedTensor => {
    need(isObject(entry), 'a tensor has no description');
    const {name, dtype, shape} = entry;
    need(typeof name === 'string' && name !== '' && name.length <= MAX_NAME, 'a tensor has no proper name');
    need(!names.has(name), `two tensors are called '${name}'`);
    names.add(name);
    need(dtype === 'float32' || dtype === 'int32', `'${name}' has dtype ${show(dtype)}`);
    need(
      Array.isArray(shape) &&
        shape.length <= MAX_RANK &&
        shape.every((size) => Number.isSafeInteger(size) && size >= 0 && size < 2 ** 31),
      `'${name}' has shape ${show(shape)}`,
    );
    need(entry['offset'] === offset, `'${name}' does not start where the tensor before it ends`);
    const size = (shape as number[]).reduce((a, b) => a * b, 1);
    need(size * 4 <= bytes.length - start - offset, `'${name}' of shape ${show(shape)} reaches past its end`);
    // A copy, because the file's own bytes need not be aligned to 4. Not slice: a Buffer's gives a view of the file.
    const copy = new Uint8Array(bytes.subarray(start + offset, start + offset + size * 4)).buffer;
    offset += size * 4;
    return {
      name,
      dtype,
      shape: shape as number[],
      values: dtype === 'int32' ? new Int32Array(copy) : new Float32Array(copy),
    };
  });
  need(start + offset === bytes.length, `it has ${bytes.length - start - offset} bytes too many`);
  return {record: header['record'], tensors};
}

/** `values.length` must fit `shape`. */
export function savedTensor(
  name: string,
  shape: number[],
  values: ArrayLike<number>,
  dtype: string,
): SavedTensor {
  const size = shape.reduce((a, b) => a * b, 1);
  check(
    values.length === size,
    'savedTensor',
    () => `expected ${size} values for '${name}'; got ${values.length}.`,
  );
  return dtype === 'float32'
    ? {name, shape, dtype, values: values instanceof Float32Array ? values : Float32Array.from(values)}
    : {name, shape, dtype: 'int32', values: Int32Array.from(values)};
}
