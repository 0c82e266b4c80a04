/** models.transformer against test/golden/g8: logits, loss, the gradient of every weight, one Adam step. */
import * as tf from '@tensorflow/tfjs-core';
import type {LayersModel} from '@tensorflow/tfjs-layers';
import {models, patches, training} from '../../index';
import {describeOnBackends} from '../helpers/backends';
import {goldenDifference} from '../helpers/compare';
import {type GoldenCase, type GoldenTensor, goldenCases} from '../helpers/golden';
import {take} from '../helpers/numbers';

/** The model's name of a golden weight. */
function nameOf(golden: string): string {
  const [, layer, rest] = /^(?:layer(\d)\/)?(.*)$/.exec(golden)!;
  const block = `block_${layer}`;
  const fixed: {[name: string]: string} = {
    token_embedding: 'token_embedding/embeddings',
    pos_embedding: 'position_embedding/embeddings',
    lnf_gamma: 'final_norm/gamma',
    lnf_beta: 'final_norm/beta',
    head_kernel: 'head/kernel',
    head_bias: 'head/bias',
    ln1_gamma: `${block}_attention_norm/gamma`,
    ln1_beta: `${block}_attention_norm/beta`,
    ln2_gamma: `${block}_ffn_norm/gamma`,
    ln2_beta: `${block}_ffn_norm/beta`,
    ffn1_kernel: `${block}_ffn_in/kernel`,
    ffn1_bias: `${block}_ffn_in/bias`,
    ffn2_kernel: `${block}_ffn_out/kernel`,
    ffn2_bias: `${block}_ffn_out/bias`,
  };
  return fixed[rest] ?? `${block}_attention/${rest}`;
}

function tensorOf({data, shape, dtype}: GoldenTensor): tf.Tensor {
  return tf.tensor(data, shape, dtype);
}

function goldenModel({options: o, inputs}: GoldenCase): LayersModel {
  const model = models.transformer({
    vocabSize: o.vocab as number,
    dModel: o.d_model as number,
    numLayers: o.layers as number,
    numHeads: o.num_heads as number,
    ffnDim: o.ffn as number,
    activation: o.activation === 'relu' ? 'relu' : 'gelu',
    tieEmbeddings: o.tied as boolean,
    position: 'learned',
    maxLength: inputs.pos_embedding.shape[0],
  });
  const weights = variables(model);
  for (const name of Object.keys(inputs).filter((n) => n !== 'tokens' && n !== 'targets')) {
    tf.tidy(() => weights.get(nameOf(name))!.assign(tensorOf(inputs[name])));
    weights.delete(nameOf(name));
  }
  expect([...weights.keys()]).toEqual([]);
  return model;
}

function variables(model: LayersModel): Map<string, tf.Variable> {
  return new Map(model.weights.map((weight) => [weight.originalName, weight.read() as tf.Variable]));
}

describeOnBackends('golden g8, tiny language model', () => {
  let undo: () => void;
  beforeAll(() => {
    undo = patches.wasmTraining();
  });
  afterAll(() => undo());

  for (const golden of goldenCases('g8_tiny_lm.json')) {
    describe(golden.name, () => {
      let model: LayersModel;
      let tokens: tf.Tensor;
      let targets: tf.Tensor;
      beforeAll(() => {
        model = goldenModel(golden);
        tokens = tensorOf(golden.inputs.tokens);
        targets = tensorOf(golden.inputs.targets);
      });
      afterAll(() => {
        tf.dispose([tokens, targets]);
        model.dispose();
      });
      const loss = (): tf.Scalar =>
        training.tokenLoss(targets, model.apply(tokens, {training: true}) as tf.Tensor) as tf.Scalar;

      test('logits and loss', () => {
        const logits = tf.tidy(() => (model.predict(tokens) as tf.Tensor).dataSync());
        expect(goldenDifference(logits, golden.outputs.logits.data, 'output')).toBeNull();
        expect(
          goldenDifference(
            tf.tidy(() => loss().dataSync()),
            golden.outputs.loss.data,
            'output',
          ),
        ).toBeNull();
      });

      test('the gradient of every weight', () => {
        const weights = variables(model);
        const {value, grads} = tf.variableGrads(loss, [...weights.values()]);
        const gradients = new Map([...weights].map(([name, variable]) => [name, take(grads[variable.name])]));
        value.dispose();
        const faults = Object.entries(golden.grads).map(([name, want]) => {
          const fault = goldenDifference(gradients.get(nameOf(name))!, want.data, 'gradient');
          return fault && `${name}: ${fault}`;
        });
        expect(faults.filter((fault) => fault !== null)).toEqual([]);
        // And the comparison would see an error of 1e-3 in any one element of any one of them.
        for (const [name, {data}] of Object.entries(golden.grads)) {
          const largest = Math.max(...data.map(Math.abs));
          for (const at of [0, data.length - 1]) {
            const off = Array.from(gradients.get(nameOf(name))!);
            off[at] += 1e-3 * largest + 1e-5;
            expect([name, goldenDifference(off, data, 'gradient') === null]).toEqual([name, false]);
          }
        }
      });

      const steps = Object.entries(golden.outputs).filter(([name]) => name.startsWith('adam_tfjs/'));
      if (steps.length === 0) {
        return; // the file has no step for this case
      }
      test('one step of tf.train.adam, where the gradient is above 1e-4', () => {
        const weights = variables(model);
        const before = new Map([...weights].map(([name, variable]) => [name, variable.clone()]));
        const optimizer = tf.train.adam(1e-3, 0.9, 0.999, 1e-7);
        optimizer.minimize(loss, false, [...weights.values()]);
        for (const [key, want] of steps) {
          const name = key.slice('adam_tfjs/'.length);
          const got = weights.get(nameOf(name))!.dataSync();
          const gradient = golden.grads[name].data;
          const large = gradient.flatMap((g, i) => (Math.abs(g) > 1e-4 ? [i] : []));
          expect(large.length).toBeGreaterThan(0);
          const pick = (values: ArrayLike<number>) => large.map((i) => values[i]);
          expect([name, goldenDifference(pick(got), pick(want.data), 'gradient')]).toEqual([name, null]);
        }
        for (const [name, value] of before) {
          weights.get(name)!.assign(value);
          value.dispose();
        }
        optimizer.dispose();
      });
    });
  }
});
