/**
 * golden/g7 through the layer: its input is [q | k | v] and its kernels pick the parts, so that the layer's rotary
 * forms, its streaming with offsets and its state are held against the reference.
 */
import * as tf from '@tensorflow/tfjs-core';
import {layers} from '../../index';
import {describeOnBackends} from '../helpers/backends';
import {goldenDifference} from '../helpers/compare';
import {type GoldenTensor, goldenCases} from '../helpers/golden';

const FORMS = {none: false, before_phi: 'input', numerator: 'numerator'} as const;
const toTensor = ({shape, data}: GoldenTensor) => tf.tensor(data, shape, 'float32');
/** [B,H,N,r] -> [B,N,H*r] */
const flat = (x: tf.Tensor) => {
  const [B, H, N, r] = x.shape as number[];
  return tf.reshape(tf.transpose(x, [0, 2, 1, 3]), [B, N, H * r]);
};
/** [D,H,r]: feature `from + h*r + i` of the input is feature i of head h. */
const picking = (D: number, H: number, r: number, from: number) => {
  const kernel = tf.buffer([D, H, r]);
  for (let h = 0; h < H; h++) for (let i = 0; i < r; i++) kernel.set(1, from + h * r + i, h, i);
  return kernel.toTensor();
};

describeOnBackends('rotary forms of the LinearAttention layer, golden g7', () => {
  const cases = goldenCases('g7_rotary.json').map((golden) => [golden.name, golden] as const);
  test.each(cases)('%s: output, state and gradients', (_, {options, inputs, outputs, cotangents, grads}) => {
    const [q, k, v] = ['q', 'k', 'v'].map((name) => toTensor(inputs[name]));
    const [, H, , r] = q.shape as number[];
    const d = v.shape[3] as number;
    const layer = layers.linearAttention({
      numHeads: H,
      keyDim: r,
      valueDim: d,
      outputDim: H * d,
      useBias: false,
      causal: options['causal'] as boolean,
      epsilon: options['eps'] as number,
      rotary: FORMS[options['rotary'] as keyof typeof FORMS],
      rotaryPairing: options['pairing'] as 'half' | 'interleaved',
      rotaryBase: options['base'] as number,
    });
    const together = (q: tf.Tensor, k: tf.Tensor, v: tf.Tensor) => tf.concat([flat(q), flat(k), flat(v)], 2);
    const D = 2 * H * r + H * d;
    layer.apply(together(q, k, v));
    const output = tf.reshape(tf.eye(H * d), [H, d, H * d]);
    layer.setWeights([picking(D, H, r, 0), picking(D, H, r, H * r), picking(D, H, d, 2 * H * r), output]);

    const offset = options['position_offset'] as number;
    const streams = options['causal'] as boolean;
    const run = (x: tf.Tensor) =>
      streams
        ? layer.streamCall(x, layer.streamState(x.shape[0]), {positions: offset})
        : {output: layer.apply(x) as tf.Tensor, state: {}};
    const {output: out, state} = run(together(q, k, v)) as {
      output: tf.Tensor;
      state: {s: tf.Tensor; z: tf.Tensor};
    };
    expect(goldenDifference(out.dataSync(), flat(toTensor(outputs['out'])).dataSync(), 'output')).toBeNull();
    if (streams) {
      // A state does not say what it is the state of where positions turn it: only the golden file does.
      expect(goldenDifference(state.s.dataSync(), outputs['S'].data, 'output')).toBeNull();
      expect(goldenDifference(state.z.dataSync(), outputs['z'].data, 'output')).toBeNull();
    }
    if (offset === 0) {
      const whole = (layer.apply(together(q, k, v)) as tf.Tensor).dataSync();
      expect(goldenDifference(whole, flat(toTensor(outputs['out'])).dataSync(), 'output')).toBeNull();
    }
    const cotangent = flat(toTensor(cotangents['out']));
    const got = tf.grads((q, k, v) => tf.sum(tf.mul(run(together(q, k, v)).output, cotangent)))([q, k, v]);
    ['q', 'k', 'v'].forEach((name, i) => {
      const fault = goldenDifference(got[i].dataSync(), grads[name].data, 'gradient');
      expect(fault === null ? null : `${name}: ${fault}`).toBeNull();
    });
  });
});
