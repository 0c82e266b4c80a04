/** Models saved in fewer bytes: tfjs's own forms, close values, and refusals. */
import {mkdtempSync, readFileSync, rmSync, statSync, writeFileSync} from 'node:fs';
import {tmpdir} from 'node:os';
import {join} from 'node:path';
import * as tf from '@tensorflow/tfjs-core';
import {type LayersModel, loadLayersModel} from '@tensorflow/tfjs-layers';
import {training} from '../../index';
import {random} from '../../src/random';
import {quantizeWeights} from '../../training/quantize';
import {describeOnBackends} from '../helpers/backends';
import {transformer, weightsOf} from './small_model';

const QUANTIZATIONS = ['float16', 'uint16', 'uint8'] as const;
/** The largest error, in parts of a tensor's range. */
const ERROR = {float16: 2 ** -11, uint16: 0.51 / 65535, uint8: 0.51 / 255};

describeOnBackends('quantized models', () => {
  let folder: string;
  let model: LayersModel;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'quantized-'));
    model = transformer();
  });
  afterEach(() => {
    rmSync(folder, {recursive: true});
    model.dispose();
  });

  test.each(QUANTIZATIONS)(
    '%s: smaller files of nearly the same weights, the same in tfjs',
    async (quantize) => {
      await training.saveModel(model, join(folder, 'exact'));
      await training.saveModel(model, folder, {quantize});
      const size = (path: string) => statSync(join(folder, path, 'weights.bin')).size;
      expect(size('')).toBeLessThan(size('exact') * 0.75);

      const loaded = await training.loadModel(folder);
      const shapes = model.weights.map(({shape}) => shape);
      weightsOf(model).forEach((exact, i) => {
        const close = weightsOf(loaded)[i];
        const range = Math.max(...exact.map(Math.abs), 1e-30) * 2;
        const worst = Math.max(...exact.map((value, j) => Math.abs(value - close[j])));
        // Vectors stay exact.
        expect(worst).toBeLessThanOrEqual(shapes[i].length < 2 ? 0 : range * ERROR[quantize]);
      });
      const json = JSON.parse(readFileSync(join(folder, 'model.json'), 'utf8'));
      const weights = readFileSync(join(folder, 'weights.bin'));
      const stock = await loadLayersModel(
        tf.io.fromMemory({
          modelTopology: json.modelTopology,
          weightSpecs: json.weightsManifest[0].weights,
          weightData: Uint8Array.from(weights).buffer,
        }),
      );
      expect(weightsOf(stock)).toEqual(weightsOf(loaded));
      stock.dispose();
      loaded.dispose();
    },
  );

  test('what tfjs decodes is the nearest half, and the nearest step with an exact 0', () => {
    const values = Float32Array.of(
      0,
      1,
      -1,
      65504,
      6e-8,
      2 ** -24,
      2 ** -25,
      1 + 2 ** -11,
      1 + 3 * 2 ** -11,
      1e-30,
      0.1,
    );
    const halves = [0, 1, -1, 65504, 2 ** -24, 2 ** -24, 0, 1, 1 + 2 ** -9, 0, 0.0999755859375];
    const decoded = (given: Float32Array, dtype: 'float16' | 'uint8') => {
      const spec = {name: 'w', shape: [given.length, 1], dtype: 'float32' as const};
      const {specs, bytes} = quantizeWeights('test', [spec], Float32Array.from(given).buffer, dtype);
      return tf.tidy(() =>
        Array.from(tf.io.decodeWeights(Uint8Array.from(bytes).buffer, specs)['w'].dataSync()),
      );
    };
    expect(decoded(values, 'float16')).toEqual(halves);
    const steps = decoded(Float32Array.of(-0.3, 0, 0.1, 1), 'uint8');
    expect(steps[1]).toBe(0);
    const step = 1.3 / 255;
    for (const [i, value] of [-0.3, 0, 0.1, 1].entries())
      expect(Math.abs(steps[i] - value)).toBeLessThan(step);
    expect(decoded(Float32Array.of(2.5, 2.5), 'uint8')).toEqual([2.5, 2.5]);
  });

  test.each(['uint8', 'uint16'] as const)('%s: the largest float32 numbers stay finite', (dtype) => {
    const largest = 2 ** 128 - 2 ** 104;
    const step = (2 * largest) / (dtype === 'uint8' ? 255 : 65535);
    for (const ends of [
      [-largest, largest],
      [-largest, largest * 0.99],
      [-0.98 * largest, largest],
      [0, largest],
      [-largest, -0.5 * largest],
    ]) {
      const values = Float32Array.of(...ends, 0);
      const spec = {name: 'w', shape: [3, 1], dtype: 'float32' as const};
      const {specs, bytes} = quantizeWeights('test', [spec], values.slice().buffer, dtype);
      const decoded = tf.tidy(() =>
        Array.from(tf.io.decodeWeights(Uint8Array.from(bytes).buffer, specs)['w'].dataSync()),
      );
      expect(decoded[2]).toBe(0);
      decoded.forEach((value, i) => {
        expect(Math.abs(value - values[i])).toBeLessThanOrEqual(step);
      });
    }
  });

  test('halves of many numbers are as near as halves can be', () => {
    const {uniform: next} = random(1);
    const values = Float32Array.from(
      {length: 2000},
      () => (next() - 0.5) * 2 ** Math.floor(next() * 40 - 25),
    );
    const spec = {name: 'w', shape: [values.length, 1], dtype: 'float32' as const};
    const {specs, bytes} = quantizeWeights('test', [spec], Float32Array.from(values).buffer, 'float16');
    const decoded = tf.tidy(() =>
      Array.from(tf.io.decodeWeights(Uint8Array.from(bytes).buffer, specs)['w'].dataSync()),
    );
    values.forEach((value, i) => {
      const half = 2 ** (Math.max(-14, Math.floor(Math.log2(Math.abs(value) || 1e-30))) - 10) / 2;
      expect(Math.abs(decoded[i] - value)).toBeLessThanOrEqual(half);
    });
  });

  test.each([
    ['NaN', Number.NaN, 'uint8' as const, /holds NaN, which cannot be quantized/],
    ['an infinity', Number.POSITIVE_INFINITY, 'float16' as const, /holds Infinity/],
    ['a number beyond halves', 70000, 'float16' as const, /holds 70000; float16 ends at 65504/],
  ])('%s is refused by the weight, and nothing is written', async (_, value, quantize, message) => {
    tf.tidy(() => {
      const [first, ...rest] = model.getWeights();
      model.setWeights([tf.fill(first.shape, value), ...rest]);
    });
    await expect(training.saveModel(model, join(folder, 'new'), {quantize})).rejects.toThrow(message);
    await expect(training.loadModel(join(folder, 'new'))).rejects.toThrow(/there is no model/);
  });

  test('wrong options are refused by name', async () => {
    await expect(training.saveModel(model, folder, {quantize: 'int4' as never})).rejects.toThrow(
      /training.saveModel: expected quantize to be one of 'float16', 'uint16', 'uint8'; got 'int4'/,
    );
    await expect(training.saveModel(model, folder, {quantise: 'uint8'} as never)).rejects.toThrow(
      /unknown option 'quantise'/,
    );
  });

  test.each<[string, (quantization: {[key: string]: unknown}) => void]>([
    ['no scale', (quantization) => delete quantization['scale']],
    ['a scale that is no number', (quantization) => Object.assign(quantization, {scale: '1'})],
    ['no minimum', (quantization) => delete quantization['min']],
    ['another dtype', (quantization) => Object.assign(quantization, {dtype: 'int2'})],
  ])('a file with %s is refused', async (_, change) => {
    await training.saveModel(model, folder, {quantize: 'uint8'});
    const path = join(folder, 'model.json');
    const json = JSON.parse(readFileSync(path, 'utf8'));
    change(json.weightsManifest[0].weights[0].quantization);
    writeFileSync(path, JSON.stringify(json));
    await expect(training.loadModel(folder)).rejects.toThrow(/is quantized in an unknown way/);
  });
});
