/** LayerNorm against tfjs's own layer and against central differences, and what it is for: no loop over rows. */
import * as tf from '@tensorflow/tfjs-core';
import {input, loadLayersModel, model, layers as stock} from '@tensorflow/tfjs-layers';
import {layers} from '../../index';
import {composedLayerNorm} from '../../src/layer_norm/composed';
import {layerNorm} from '../../src/layer_norm/run';
import {describeOnBackends, expectNoLeak} from '../helpers/backends';
import {difference, FLOAT32} from '../helpers/compare';

const SHAPE = [2, 3, 5];
const X = Array.from({length: 30}, (_, i) => 2 * Math.sin(1.3 * i) + 0.5);
const GAMMA = [1, 0.5, -2, 1.5, 0.1];
const BETA = [0, 1, -1, 0.5, 2];
const EPSILON = 1e-3;
const COTANGENT = X.map((_, i) => Math.cos(0.7 * i));

/** sum(y * COTANGENT) in double precision. */
function reference(x: number[], gamma: number[], beta: number[]): number {
  let total = 0;
  for (let row = 0; row < 6; row++) {
    const xs = x.slice(row * 5, row * 5 + 5);
    const mean = xs.reduce((a, b) => a + b) / 5;
    const variance = xs.reduce((a, b) => a + (b - mean) ** 2, 0) / 5;
    xs.forEach((value, j) => {
      const y = (gamma[j]! * (value - mean)) / Math.sqrt(variance + EPSILON) + beta[j]!;
      total += y * COTANGENT[row * 5 + j]!;
    });
  }
  return total;
}

function numericGradient(at: number[], f: (values: number[]) => number): number[] {
  const h = 1e-5;
  const moved = (i: number, step: number) => at.map((value, j) => (i === j ? value + step : value));
  return at.map((_, i) => (f(moved(i, h)) - f(moved(i, -h))) / (2 * h));
}

describeOnBackends('LayerNorm', () => {
  const tensors = () => [tf.tensor(X, SHAPE), tf.tensor1d(GAMMA), tf.tensor1d(BETA)] as const;

  test('gradients equal central differences', () => {
    const got = tf.tidy(() => {
      const loss = (x: tf.Tensor, gamma: tf.Tensor, beta: tf.Tensor) =>
        tf.sum(tf.mul(layerNorm(x, gamma, beta, EPSILON), tf.tensor(COTANGENT, SHAPE)));
      return tf
        .grads(loss)([...tensors()])
        .map((g) => Array.from(g.dataSync()));
    });
    const want = [
      numericGradient(X, (x) => reference(x, GAMMA, BETA)),
      numericGradient(GAMMA, (gamma) => reference(X, gamma, BETA)),
      numericGradient(BETA, (beta) => reference(X, GAMMA, beta)),
    ];
    got.forEach((gradient, i) => {
      expect(difference(gradient, want[i]!, FLOAT32)).toBeNull();
    });
  });

  test('second derivatives of the kernel equal those of the composed form', () => {
    const second = (norm: typeof layerNorm) =>
      tf.tidy(() => {
        const first = (x: tf.Tensor, gamma: tf.Tensor, beta: tf.Tensor) =>
          tf.sum(tf.square(tf.grad((y: tf.Tensor) => tf.sum(tf.square(norm(y, gamma, beta, EPSILON))))(x)));
        return tf
          .grads(first)([...tensors()])
          .map((g) => Array.from(g.dataSync()));
      });
    const want = second(composedLayerNorm);
    second(layerNorm).forEach((gradient, i) => {
      expect(difference(gradient, want[i]!, FLOAT32)).toBeNull();
    });
  });

  test('values and weights are those of tf.layers.layerNormalization', () => {
    const own = layers.layerNorm({epsilon: EPSILON});
    const theirs = stock.layerNormalization({epsilon: EPSILON});
    const [x, gamma, beta] = tensors();
    const [a, b] = [own, theirs].map((layer) => {
      tf.dispose(layer.apply(x) as tf.Tensor);
      layer.setWeights([gamma, beta]);
      return layer.apply(x) as tf.Tensor;
    });
    expect(difference(a!.dataSync(), b!.dataSync(), FLOAT32)).toBeNull();
    tf.dispose([a!, b!, x, gamma, beta]);
    own.dispose();
    theirs.dispose();
  });

  test('a model is the same after save and load, and leaves nothing behind', async () => {
    await expectNoLeak(async () => {
      const ids = input({shape: [null, 5]});
      const before = model({inputs: ids, outputs: layers.layerNorm({epsilon: EPSILON}).apply(ids) as never});
      let saved: tf.io.ModelArtifacts | undefined;
      await before.save(
        tf.io.withSaveHandler(async (artifacts) => {
          saved = artifacts;
          return {modelArtifactsInfo: {dateSaved: new Date(), modelTopologyType: 'JSON'}};
        }),
      );
      const after = await loadLayersModel(tf.io.fromMemory(saved!));
      const x = tf.tensor(X, SHAPE);
      const [a, b] = [before, after].map((m) => m.predict(x) as tf.Tensor);
      expect(Array.from(b!.dataSync())).toEqual(Array.from(a!.dataSync()));
      tf.dispose([x, a!, b!]);
      before.dispose();
      after.dispose();
    });
  });

  test('NaN stays in its own row', () => {
    const values = tf.tidy(() => {
      const [x, gamma, beta] = [tf.tensor([Number.NaN, ...X.slice(1)], SHAPE), ...tensors().slice(1)];
      return Array.from(layerNorm(x!, gamma!, beta!, EPSILON).dataSync());
    });
    expect(values.slice(0, 5).every(Number.isNaN)).toBe(true);
    expect(values.slice(5).some(Number.isNaN)).toBe(false);
  });

  test('the number of kernels of a training step does not grow with the rows', async () => {
    const kernels = async (rows: number) => {
      const x = tf.ones([rows, 5]);
      const [, gamma, beta] = tensors();
      const profile = await tf.profile(() =>
        tf.tidy(() => tf.grad((y: tf.Tensor) => tf.sum(layerNorm(y, gamma, beta, EPSILON)))(x)),
      );
      tf.dispose([profile.result as tf.Tensor, x, gamma, beta]);
      return profile.kernels.length;
    };
    expect(await kernels(64)).toBe(await kernels(2));
  });

  test('wrong arguments are refused', () => {
    expect(() => layers.layerNorm({eps: 1} as never)).toThrow(/unknown option 'eps'/);
    expect(() => layers.layerNorm({epsilon: -1})).toThrow(
      /expected epsilon to be a finite number of at least 0/,
    );
    expect(() => layers.layerNorm().build([null, null])).toThrow(
      /expected an input \[.., D\] with a known D/,
    );
  });
});
