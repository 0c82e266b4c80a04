/** The layer against golden/g5: forward and every gradient, by the weights' names and order. */
import * as tf from '@tensorflow/tfjs-core';
import {layers} from '../../index';
import {describeOnBackends} from '../helpers/backends';
import {goldenDifference} from '../helpers/compare';
import {type GoldenTensor, goldenCases} from '../helpers/golden';

const toTensor = ({shape, data, dtype}: GoldenTensor) => tf.tensor(data, shape, dtype);
const WEIGHTS = ['query', 'key', 'value', 'output'].flatMap((name) => [`${name}_kernel`, `${name}_bias`]);

describeOnBackends('LinearAttention layer, golden g5', () => {
  test.each(goldenCases('g5_mha_layer.json').map((golden) => [golden.name, golden] as const))(
    '%s: output and every gradient',
    (_, {options, inputs, outputs, cotangents, grads}) => {
      const layer = layers.linearAttention({
        numHeads: options['num_heads'] as number,
        keyDim: options['key_dim'] as number,
        valueDim: options['value_dim'] as number,
        causal: options['causal'] as boolean,
        useBias: options['use_bias'] as boolean,
        normalize: options['normalize'] as boolean,
        epsilon: options['eps'] as number,
      });
      const names = options['use_bias'] ? WEIGHTS : WEIGHTS.filter((name) => name.endsWith('kernel'));
      const cross = options['cross'] as boolean;
      const parts = cross ? ['query', 'value', 'key'] : ['query'];
      const mask = inputs['mask'] === undefined ? null : toTensor(inputs['mask']);
      const kwargs = mask === null ? {} : {mask: cross ? [null, mask, mask] : mask};
      const values = parts.map((name) => toTensor(inputs[name]));
      const call = (xs: tf.Tensor[]) => layer.apply(cross ? xs : xs[0], kwargs) as tf.Tensor;
      tf.dispose(call(values));
      layer.setWeights(names.map((name) => toTensor(inputs[name])));
      const cotangent = toTensor(cotangents['out']);

      expect(goldenDifference(call(values).dataSync(), outputs['out'].data, 'output')).toBeNull();
      const byInputs = tf.grads((...xs: tf.Tensor[]) => tf.sum(tf.mul(call(xs), cotangent)))(values);
      const {grads: byWeights} = tf.variableGrads(() => tf.sum(tf.mul(call(values), cotangent)) as tf.Scalar);
      const got: {[name: string]: tf.Tensor} = {};
      parts.forEach((name, i) => {
        got[name] = byInputs[i];
      });
      layer.trainableWeights.forEach((weight, i) => {
        got[names[i]] = byWeights[weight.name];
      });
      expect(Object.keys(got).sort()).toEqual(Object.keys(grads).sort());
      for (const [name, want] of Object.entries(grads)) {
        expect(got[name].shape).toEqual(want.shape);
        const fault = goldenDifference(got[name].dataSync(), want.data, 'gradient');
        expect(fault === null ? null : `${name}: ${fault}`).toBeNull();
      }
    },
  );
});
