/**
 * A training run as the bytes of one file: eight bytes that say what it is, the length of the header (32 bits, little
 * endian), the header as JSON, then the weights and the checkpoint. A file is a stranger's until it is checked.
 */
import type {Run, TrainingOptions} from '../worker/protocol';

const MAGIC = new TextEncoder().encode('tfla-run');
const VERSION = 1;
const START = MAGIC.length + 4;
/** Larger sizes are not this page's. */
const LIMITS: Record<Exclude<keyof TrainingOptions, 'attention' | 'learningRate'>, number> = {
  dModel: 1024,
  layers: 16,
  heads: 64,
  batch: 256,
  length: 4096,
  seed: Number.MAX_SAFE_INTEGER,
};

export function encodeRun({options, text, step, losses, files, checkpoint}: Run): Uint8Array<ArrayBuffer> {
  const {artifacts, tokenizer} = files;
  const weights = new Uint8Array(artifacts.weightData as ArrayBuffer);
  const header = new TextEncoder().encode(
    JSON.stringify({
      ...{version: VERSION, options, text, step, losses, tokenizer},
      ...{modelTopology: artifacts.modelTopology, weightSpecs: artifacts.weightSpecs},
      ...{weightBytes: weights.length, checkpointBytes: checkpoint.length},
    }),
  );
  const bytes = new Uint8Array(START + header.length + weights.length + checkpoint.length);
  bytes.set(MAGIC);
  new DataView(bytes.buffer).setUint32(MAGIC.length, header.length, true);
  bytes.set(header, START);
  bytes.set(weights, START + header.length);
  bytes.set(checkpoint, START + header.length + weights.length);
  return bytes;
}

/** @throws Error that says why the bytes are no run. */
export function decodeRun(bytes: Uint8Array): Run {
  need(bytes.length >= START && MAGIC.every((byte, i) => bytes[i] === byte), 'it was not saved by this page');
  const length = new DataView(bytes.buffer, bytes.byteOffset).getUint32(MAGIC.length, true);
  need(length <= bytes.length - START, 'it is cut off');
  const header = parse(bytes.subarray(START, START + length));
  need(header['version'] === VERSION, 'it is of another version of this page');
  const {text, step, losses, tokenizer, modelTopology, weightSpecs, weightBytes, checkpointBytes} = header;
  need(typeof text === 'string' && text.length > 0, 'it has no text');
  need(isCount(step), 'its step is not a number');
  need(Array.isArray(losses) && losses.every(Number.isFinite), 'its losses are not numbers');
  need(isObject(tokenizer) && isObject(modelTopology) && Array.isArray(weightSpecs), 'it has no model');
  need(isCount(weightBytes) && isCount(checkpointBytes), 'it does not say how long its parts are');
  need(START + length + weightBytes + checkpointBytes === bytes.length, 'its length is not what it says');
  const at = START + length;
  return {
    ...{options: optionsOf(header['options']), text, step, losses},
    files: {
      artifacts: {
        modelTopology,
        weightSpecs,
        // A copy: tfjs wants a buffer of the weights alone.
        weightData: bytes.slice(at, at + weightBytes).buffer,
      },
      tokenizer,
    },
    checkpoint: bytes.slice(at + weightBytes),
  };
}

function optionsOf(found: unknown): TrainingOptions {
  need(isObject(found), 'it has no settings');
  const {attention, learningRate} = found;
  need(attention === 'linear' || attention === 'softmax', 'its attention is of an unknown kind');
  need(
    typeof learningRate === 'number' && learningRate > 0 && learningRate < 1,
    'its learning rate is wrong',
  );
  const sizes = Object.entries(LIMITS).map(([name, limit]) => {
    const size = found[name];
    need(isCount(size) && size <= limit, `its ${name} is wrong`);
    return [name, size];
  });
  return {attention, learningRate, ...Object.fromEntries(sizes)};
}

function parse(bytes: Uint8Array): {[key: string]: unknown} {
  let header: unknown;
  try {
    header = JSON.parse(new TextDecoder('utf-8', {fatal: true}).decode(bytes));
  } catch {
    header = null;
  }
  need(isObject(header), 'its header is damaged');
  return header;
}

const isObject = (x: unknown): x is {[key: string]: unknown} =>
  typeof x === 'object' && x !== null && !Array.isArray(x);

const isCount = (x: unknown): x is number => Number.isSafeInteger(x) && (x as number) >= 0;

function need(holds: boolean, why: string): asserts holds {
  if (!holds) throw new Error(`This file cannot be opened: ${why}.`);
}
