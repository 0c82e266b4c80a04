/** Models as folders in tfjs's own format: readable by tfjs, checked when read, written whole or not at all. */
import {existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync} from 'node:fs';
import {tmpdir} from 'node:os';
import {join} from 'node:path';
import * as tf from '@tensorflow/tfjs-core';
import {type LayersModel, loadLayersModel, models} from '@tensorflow/tfjs-layers';
import {training} from '../../index';
import {describeOnBackends, expectNoLeak} from '../helpers/backends';
import {transformer, weightsOf} from './small_model';

describeOnBackends('model files', () => {
  let folder: string;
  let model: LayersModel;

  beforeEach(async () => {
    folder = mkdtempSync(join(tmpdir(), 'model-'));
    model = transformer();
    await training.saveModel(model, folder);
  });
  afterEach(() => {
    rmSync(folder, {recursive: true});
    model.dispose();
  });

  const logits = (of: LayersModel): number[] =>
    tf.tidy(() =>
      Array.from((of.predict(tf.tensor2d([[1, 2, 3]], [1, 3], 'int32')) as tf.Tensor).dataSync()),
    );

  test('a loaded model is the saved one', async () => {
    await expectNoLeak(async () => {
      const same = await training.loadModel(folder);
      expect(readdirSync(folder).sort()).toEqual(['model.json', 'weights.bin']);
      expect(weightsOf(same)).toEqual(weightsOf(model));
      expect(logits(same)).toEqual(logits(model));
      same.dispose();
    });
  });

  test('tfjs loads it from a url, as a page does', async () => {
    const asked: string[] = [];
    const fetchFunc = async (url: string) => {
      const name = url.slice(url.lastIndexOf('/') + 1);
      asked.push(name);
      const bytes = readFileSync(join(folder, name));
      // Not a Response: jest's has arrays of another realm, which tfjs does not take for arrays.
      return {
        ok: true,
        json: async () => JSON.parse(bytes.toString()),
        arrayBuffer: async () => Uint8Array.from(bytes).buffer,
      };
    };
    const same = await loadLayersModel(
      tf.io.http('https://example.com/model/model.json', {fetchFunc: fetchFunc as never}),
    );
    expect(asked).toEqual(['model.json', 'weights.bin']);
    expect(logits(same)).toEqual(logits(model));
    same.dispose();
  });

  test('saving again replaces it; metadata of the model stays', async () => {
    model.setUserDefinedMetadata({tokenizer: 'characters'});
    await training.saveModel(model, folder);
    expect(readdirSync(folder).sort()).toEqual(['model.json', 'weights.bin']);
    const same = await training.loadModel(folder);
    expect(same.getUserDefinedMetadata()).toMatchObject({tokenizer: 'characters'});
    same.dispose();
  });

  test('a failing write keeps the old files', async () => {
    const before = ['model.json', 'weights.bin'].map((name) =>
      readFileSync(join(folder, name)).toString('hex'),
    );
    const fs = process.getBuiltinModule('node:fs');
    const write = fs.fsyncSync;
    let calls = 0;
    fs.fsyncSync = (file) => {
      calls += 1;
      if (calls === 2) {
        throw new Error('EIO: i/o error, fsync');
      }
      write(file);
    };
    const other = transformer(0, 2);
    try {
      await expect(training.saveModel(other, folder)).rejects.toThrow(
        /training.saveModel: could not write '.*model.json': EIO.*What was there before is unchanged/,
      );
    } finally {
      fs.fsyncSync = write;
    }
    other.dispose();
    expect(readdirSync(folder).sort()).toEqual(['model.json', 'weights.bin']);
    expect(
      ['model.json', 'weights.bin'].map((name) => readFileSync(join(folder, name)).toString('hex')),
    ).toEqual(before);
  });

  test('missing folders are made', async () => {
    const below = join(folder, 'a', '..', 'b', 'c');
    await training.saveModel(model, below);
    expect(readdirSync(join(folder, 'b', 'c')).sort()).toEqual(['model.json', 'weights.bin']);
    expect(readdirSync(folder).sort()).toEqual(['b', 'model.json', 'weights.bin']);
  });

  test('a folder that cannot be made is an error', async () => {
    await expect(training.saveModel(model, join(folder, 'model.json', 'x'))).rejects.toThrow(
      /training.saveModel: could not write '.*x.weights.bin'/,
    );
  });

  // Node's recursive mkdir never returns there.
  (existsSync('/proc/self') ? test : test.skip)('a folder in /proc is an error', async () => {
    await expect(training.saveModel(model, '/proc/a/b')).rejects.toThrow(
      "training.saveModel: could not write '/proc/a/b/weights.bin': no folder can be made in '/proc'.",
    );
  });

  const read = (): {[key: string]: unknown} => JSON.parse(readFileSync(join(folder, 'model.json'), 'utf8'));
  const write = (json: unknown): void =>
    writeFileSync(join(folder, 'model.json'), typeof json === 'string' ? json : JSON.stringify(json));
  interface Manifest {
    paths: unknown[];
    weights: {[key: string]: unknown}[];
  }
  const manifest = (change: (group: Manifest) => void) => () => {
    const json = read();
    change((json['weightsManifest'] as Manifest[])[0]!);
    write(json);
  };

  const damages: [string, () => void, RegExp][] = [
    [
      'no model.json',
      () => rmSync(join(folder, 'model.json')),
      /there is no model in '.*': it has no model.json/,
    ],
    [
      'no weights',
      () => rmSync(join(folder, 'weights.bin')),
      /names the file 'weights.bin', which is missing/,
    ],
    [
      'a folder for weights',
      () => {
        rmSync(join(folder, 'weights.bin'));
        mkdirSync(join(folder, 'weights.bin'));
      },
      /to be a file/,
    ],
    ['cut-off JSON', () => write(JSON.stringify(read()).slice(0, 500)), /is not valid JSON/],
    ['another JSON', () => write('[]'), /is not a model in tfjs's layers format/],
    ['a graph model', () => write({modelTopology: null}), /is not a model in tfjs's layers format/],
    ['prototype keys', () => write('{"modelTopology":{"__proto__":{}}}'), /has the key '__proto__'/],
    [
      'cut-off weights',
      () => writeFileSync(join(folder, 'weights.bin'), readFileSync(join(folder, 'weights.bin')).subarray(4)),
      /describes \d+ bytes of weights; weights.bin has \d+/,
    ],
    [
      'a flipped bit in the weights',
      () => {
        const bytes = readFileSync(join(folder, 'weights.bin'));
        bytes[100]! ^= 4;
        writeFileSync(join(folder, 'weights.bin'), bytes);
      },
      /weights.bin is damaged, or is not of the same save as '.*model.json'/,
    ],
    ['no manifest', () => write({...read(), weightsManifest: undefined}), /it has no weightsManifest/],
    ['a manifest of nothing', () => write({...read(), weightsManifest: [null]}), /lacks paths or weights/],
    [
      'a manifest without files',
      manifest((group) => {
        group.paths = [];
      }),
      /describes \d+ bytes of weights; it names no file and has 0/,
    ],
    [
      'a path out of the folder',
      manifest((group) => {
        group.paths = ['../weights.bin'];
      }),
      /names the weights file '..\/weights.bin', which is not a plain file name/,
    ],
    [
      'an absolute path',
      manifest((group) => {
        group.paths = ['/etc/hosts'];
      }),
      /not a plain file name/,
    ],
    [
      'a hidden file',
      manifest((group) => {
        group.paths = ['.env'];
      }),
      /not a plain file name/,
    ],
    [
      'one file twice',
      manifest((group) => {
        group.paths.push('weights.bin');
      }),
      /not a plain file name/,
    ],
    [
      'one name twice',
      manifest((group) => {
        group.weights[1] = group.weights[0]!;
      }),
      /two weights are called/,
    ],
    [
      'an unknown dtype',
      manifest((group) => {
        group.weights[0]!['dtype'] = 'string';
      }),
      /has dtype 'string'/,
    ],
    [
      'a negative size',
      manifest((group) => {
        group.weights[0]!['shape'] = [-1];
      }),
      /has shape \[-1\]/,
    ],
    [
      'a huge size',
      manifest((group) => {
        group.weights[0]!['shape'] = [2 ** 30, 2 ** 30];
      }),
      /describes .* bytes of weights/,
    ],
    [
      'an unknown quantization',
      manifest((group) => {
        group.weights[0]!['quantization'] = {dtype: 'int2'};
      }),
      /quantized in an unknown way/,
    ],
    [
      'a shape that the layers do not have',
      manifest((group) => {
        group.weights[0]!['shape'] = [8, 7];
      }),
      /tfjs could not make the model/,
    ],
    [
      'a weight that no layer has',
      manifest((group) => {
        group.weights[0]!['name'] = 'other';
      }),
      /tfjs could not make the model of '.*': Provided weight data has no target variable: other/,
    ],
    [
      'an output that no layer makes',
      () => write(JSON.stringify(read()).replace('"output_layers":[["', '"output_layers":[["no_')),
      /tfjs could not make the model of '.*': /,
    ],
    [
      'an unknown layer',
      () => write(JSON.stringify(read()).replaceAll('LinearAttention', 'NoSuchLayer')),
      /tfjs could not make the model of '.*': Unknown layer: NoSuchLayer/,
    ],
  ];
  test.each(damages)(
    '%s: refused with the reason, and nothing is left behind',
    async (_, damage, message) => {
      damage();
      const {numTensors, numBytes} = tf.memory();
      await expect(training.loadModel(folder)).rejects.toThrow(message);
      expect(tf.memory()).toMatchObject({numTensors, numBytes});
    },
  );

  test('after a refusal models are made, and drawn, as before', async () => {
    write(JSON.stringify(read()).replaceAll('LinearAttention', 'NoSuchLayer'));
    await expect(training.loadModel(folder)).rejects.toThrow();
    await training.saveModel(model, folder);
    const same = await training.loadModel(folder);
    expect(logits(same)).toEqual(logits(model));
    const drawn = await models.modelFromJSON({modelTopology: model.toJSON(null, false)} as tf.io.ModelJSON);
    expect(
      weightsOf(drawn)
        .flat()
        .some((value) => value !== 0 && value !== 1),
    ).toBe(true);
    same.dispose();
    drawn.dispose();
  });

  test('wrong calls are refused by name', async () => {
    await expect(training.saveModel({} as never, folder)).rejects.toThrow(
      /expected model to be a tf.LayersModel/,
    );
    await expect(training.saveModel(model, '')).rejects.toThrow(
      /expected folder to be the path of a folder; got ''/,
    );
    await expect(training.loadModel(5 as never)).rejects.toThrow(
      /expected folder to be the path of a folder; got 5/,
    );
  });
});
