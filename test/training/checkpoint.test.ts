/** Checkpoints as files: damaged ones are refused whole, failing writes keep the old one. */
import {existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync} from 'node:fs';
import {tmpdir} from 'node:os';
import {join} from 'node:path';
import type {LayersModel} from '@tensorflow/tfjs-layers';
import {training} from '../../index';
import {crc32} from '../../training/crc32';
import {decodeTensorFile, encodeTensorFile, type TensorFile} from '../../training/tensor_file';
import {describeOnBackends, expectNoLeak} from '../helpers/backends';
import {bigram, stream, weightsOf} from './small_model';

const DATA = stream(100);
const RUN = {steps: 4, batchSize: 2, length: 9, learningRate: 0.02, every: 2};

/** Bytes with a right checksum, whatever is in them. */
function sealed(bytes: Uint8Array): Uint8Array {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  view.setUint32(16, crc32(bytes.subarray(20), crc32(bytes.subarray(0, 16))), true);
  return bytes;
}

/** A file with that text as its header, and `size` bytes of elements. */
function withHeader(json: string, size = 0): Uint8Array {
  const header = new TextEncoder().encode(json.padEnd(Math.ceil(json.length / 4) * 4));
  const bytes = new Uint8Array(20 + header.length + size);
  bytes.set(new TextEncoder().encode('TLACKPT\0'));
  new DataView(bytes.buffer).setUint32(8, 1, true);
  new DataView(bytes.buffer).setUint32(12, header.length, true);
  bytes.set(header, 20);
  return sealed(bytes);
}

describeOnBackends('checkpoint', () => {
  let good: Uint8Array;
  let model: LayersModel;
  let before: number[][];

  beforeAll(async () => {
    model = bigram();
    await training.train(model, DATA, {
      ...RUN,
      steps: 2,
      checkpoint: {
        save: (bytes) => {
          good = bytes;
        },
        load: () => null,
      },
    });
    before = weightsOf(model);
  });
  afterAll(() => {
    model.dispose();
  });

  /** Resuming from these bytes. */
  const resume = (bytes: Uint8Array | null): Promise<unknown> =>
    training.train(model, DATA, {...RUN, resume: {save: () => {}, load: () => bytes}});

  async function expectRefused(
    bytes: Uint8Array,
    message: RegExp = /cannot be used|is not valid JSON|of another/,
  ): Promise<void> {
    await expectNoLeak(async () => {
      await expect(resume(bytes)).rejects.toThrow(message);
    });
    expect(weightsOf(model)).toEqual(before);
  }

  /** The good file with its content changed and its checksum right. */
  const changed = (change: (file: TensorFile & {record: Record<string, unknown>}) => void): Uint8Array => {
    const file = decodeTensorFile('test', 'file', good) as TensorFile & {record: Record<string, unknown>};
    change(file);
    return encodeTensorFile(file);
  };

  test('cut off anywhere it is refused', async () => {
    const header = new DataView(good.buffer, good.byteOffset).getUint32(12, true);
    for (const size of [
      0,
      1,
      7,
      8,
      11,
      12,
      16,
      19,
      20,
      21,
      20 + header - 1,
      20 + header,
      20 + header + 4,
      good.length - 4,
      good.length - 1,
    ]) {
      await expectRefused(good.slice(0, size));
    }
  });

  test('with bytes added it is refused', async () => {
    const longer = new Uint8Array(good.length + 4);
    longer.set(good);
    await expectRefused(longer, /checksum is wrong/);
    await expectRefused(sealed(longer), /it has 4 bytes too many/);
  });

  test('every flipped bit is found: all of the first 24 bytes, and samples of the rest', async () => {
    const places = [
      ...Array.from({length: 24 * 8}, (_, i) => i),
      ...Array.from({length: 40}, (_, i) => 24 * 8 + Math.floor((i * (good.length * 8 - 24 * 8 - 1)) / 39)),
    ];
    for (const bit of places) {
      const bytes = good.slice();
      bytes[bit >> 3]! ^= 1 << (bit & 7);
      await expectRefused(bytes);
    }
  });

  const entry = (fields: object) =>
    JSON.stringify({record: {}, tensors: [{name: 'a', dtype: 'float32', shape: [1], offset: 0, ...fields}]});
  const headers: [string, Uint8Array, RegExp][] = [
    ['a header that is no JSON', withHeader('{nope'), /the header of .* is not valid JSON/],
    ['a header that is a list', withHeader('[]'), /lists no tensors/],
    [
      'prototype keys',
      withHeader('{"tensors":[],"record":{"__proto__":{"step":1}}}'),
      /has the key '__proto__'/,
    ],
    [
      'prototype keys deep inside',
      withHeader('{"tensors":[{"name":"a","constructor":1}],"record":{}}'),
      /'constructor'/,
    ],
    ['deeply nested JSON', withHeader('['.repeat(200000)), /is not valid JSON/],
    ['a tensor that is null', withHeader('{"tensors":[null]}'), /a tensor has no description/],
    ['a nameless tensor', withHeader(entry({name: ''}), 4), /no proper name/],
    ['a huge name', withHeader(entry({name: 'x'.repeat(2000)}), 4), /no proper name/],
    ['an unknown dtype', withHeader(entry({dtype: 'float64'}), 8), /'a' has dtype 'float64'/],
    ['a negative size', withHeader(entry({shape: [-1]}), 4), /'a' has shape \[-1\]/],
    ['a fractional size', withHeader(entry({shape: [0.5]}), 4), /'a' has shape/],
    ['a huge size', withHeader(entry({shape: [2 ** 30]}), 4), /reaches past its end/],
    [
      'a product that overflows',
      withHeader(entry({shape: [2 ** 30, 2 ** 30, 2 ** 30]}), 4),
      /reaches past its end/,
    ],
    ['too many dimensions', withHeader(entry({shape: Array(100).fill(1)}), 4), /'a' has shape/],
    ['a shape that is text', withHeader(entry({shape: 'x'}), 4), /'a' has shape 'x'/],
    [
      'an offset inside another tensor',
      withHeader(entry({offset: 4}), 8),
      /does not start where the tensor before it ends/,
    ],
    ['a negative offset', withHeader(entry({offset: -4}), 4), /does not start where/],
    [
      'two tensors of one name',
      withHeader(
        JSON.stringify({tensors: [0, 4].map((offset) => ({name: 'a', dtype: 'int32', shape: [1], offset}))}),
        8,
      ),
      /two tensors are called 'a'/,
    ],
    ['elements that nothing describes', withHeader('{"tensors":[]}', 4), /4 bytes too many/],
    ['no record', withHeader('{"tensors":[]}'), /it has no record of the run/],
  ];
  test.each(headers)('%s: refused', async (_, bytes, message) => {
    await expectRefused(bytes, message);
  });

  const records: [string, (file: TensorFile & {record: Record<string, unknown>}) => void, RegExp][] = [
    [
      'a negative step',
      ({record}) => {
        record['step'] = -1;
      },
      /its step is -1/,
    ],
    [
      'a fractional step',
      ({record}) => {
        record['step'] = 0.5;
      },
      /its step is 0.5/,
    ],
    [
      'a seed that is text',
      ({record}) => {
        (record['run'] as Record<string, unknown>)['seed'] = 'x';
      },
      /its seed is 'x'/,
    ],
    [
      'more weights than tensors',
      ({record}) => {
        record['weights'] = 99;
      },
      /claims 99 weights/,
    ],
    [
      'fewer weights',
      ({record}) => {
        record['weights'] = 1;
      },
      /cannot be used/,
    ],
    [
      'swapped weights',
      ({tensors}) => {
        tensors.unshift(tensors.pop()!);
      },
      /its weights are out of order/,
    ],
    [
      'a missing slot',
      ({tensors}) => {
        tensors.pop();
      },
      /an optimizer slot is missing/,
    ],
    [
      'slots of two weights mixed',
      ({tensors}) => {
        tensors.at(-1)!.name = 'v/0';
      },
      /two tensors|are not a pair/,
    ],
    [
      'a slot of a weight that is not there',
      ({tensors}) => {
        tensors.at(-2)!.name = 'm/50';
        tensors.at(-1)!.name = 'v/50';
      },
      /for weight 50, which does not fit/,
    ],
    [
      'a weight of another shape',
      ({tensors}) => {
        tensors[0]!.shape.reverse();
      },
      /it is of another model/,
    ],
    [
      'a weight of another dtype',
      ({tensors}) => {
        tensors[0]!.dtype = 'int32';
      },
      /it is of another model/,
    ],
  ];
  test.each(records)('%s: refused', async (_, change, message) => {
    await expectRefused(changed(change), message);
  });

  test('the unchanged file is taken', async () => {
    const own = bigram();
    const {history} = await training.train(own, DATA, {
      ...RUN,
      steps: 3,
      resume: {save: () => {}, load: () => good},
    });
    expect(history.map(({step}) => step)).toEqual([3]);
    own.dispose();
  });

  test('a store that gives no bytes, or something else, is an error', async () => {
    await expect(resume(null)).rejects.toThrow(/there is no checkpoint to resume from at the resume object/);
    await expectRefused('text' as never, /expected bytes \(a Uint8Array\), got 'text'/);
  });
});

describeOnBackends('checkpoint files', () => {
  let folder: string;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'checkpoint-'));
  });
  afterEach(() => {
    rmSync(folder, {recursive: true});
  });

  test('a place that cannot be written is found before any step', async () => {
    writeFileSync(join(folder, 'file'), '');
    let steps = 0;
    await expectNoLeak(async () => {
      const model = bigram();
      const checkpoint = join(folder, 'file', 'checkpoint.bin');
      await expect(
        training.train(model, DATA, {...RUN, checkpoint, onProgress: () => void steps++}),
      ).rejects.toThrow(/training.train: cannot write '.*checkpoint.bin': /);
      model.dispose();
    });
    expect(steps).toBe(0);
  });

  test('a write that fails half way keeps the old file, leaves no other, and is retried at the next chance', async () => {
    const model = bigram();
    const checkpoint = join(folder, 'checkpoint.bin');
    await training.train(model, DATA, {...RUN, steps: 2, checkpoint});
    const old = readFileSync(checkpoint);
    const fs = process.getBuiltinModule('node:fs');
    const write = fs.writeSync;
    const events: training.TrainingEvent[] = [];
    let failing = true;
    // As a full disk does: part of the bytes, then an error.
    fs.writeSync = ((file: number, bytes: Uint8Array, offset: number) => {
      if (!failing) {
        return write(file, bytes, offset);
      }
      if (offset > 0) {
        throw Object.assign(new Error('ENOSPC: no space left on device, write'), {code: 'ENOSPC'});
      }
      return write(file, bytes.subarray(0, 50), 0);
    }) as typeof fs.writeSync;
    try {
      const run = (steps: number) =>
        training.train(model, DATA, {
          ...RUN,
          steps,
          checkpoint,
          resume: true,
          onProgress: (progress) => events.push(...progress.events),
        });
      await expect(run(6)).rejects.toThrow(
        /training.train: 6 steps are done and the model has their weights, but the checkpoint could not be written: .*ENOSPC/,
      );
      expect(events.map(({kind}) => kind)).toEqual(['checkpoint-failed', 'checkpoint-failed']);
      expect(readFileSync(checkpoint).equals(old)).toBe(true);
      expect(readdirSync(folder)).toEqual(['checkpoint.bin']);
      // The disk has space again by the second checkpoint: all is well.
      events.length = 0;
      const before = fs.writeSync;
      const {step} = await training.train(model, DATA, {
        ...RUN,
        steps: 6,
        checkpoint,
        resume: true,
        onProgress: (progress) => {
          events.push(...progress.events);
          failing = progress.step < 4;
        },
      });
      expect(fs.writeSync).toBe(before);
      expect(step).toBe(6);
      expect(events.map(({kind}) => kind)).toEqual(['checkpoint-failed', 'checkpoint']);
      expect(readFileSync(checkpoint).equals(old)).toBe(false);
    } finally {
      fs.writeSync = write;
    }
    model.dispose();
  });

  test('missing folders are made', async () => {
    const model = bigram();
    const checkpoint = join(folder, 'a', 'b', 'c.bin');
    await training.train(model, DATA, {...RUN, checkpoint});
    expect(existsSync(checkpoint)).toBe(true);
    model.dispose();
  });

  test('something that is no file is refused', async () => {
    const model = bigram();
    mkdirSync(join(folder, 'checkpoint.bin'));
    await expect(training.train(model, DATA, {...RUN, resume: folder})).rejects.toThrow(/to be a file/);
    model.dispose();
  });

  test('without Node, a path is a clear error', async () => {
    const model = bigram();
    const original = process.getBuiltinModule;
    try {
      process.getBuiltinModule = undefined as never;
      await expect(training.train(model, DATA, {...RUN, checkpoint: 'x'})).rejects.toThrow(
        /training.train: a checkpoint path \(in a page, use an object with functions save and load\) needs Node 20.16/,
      );
    } finally {
      process.getBuiltinModule = original;
    }
    model.dispose();
  });
});
