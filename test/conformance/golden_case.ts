/** A case of test/golden as a conformance case. No Node here: the caller reads the file. */
import type {PointwiseMap} from '../../src/pointwise';
import type {GoldenCase, GoldenTensor} from '../helpers/golden';
import type {ConformanceCase} from './cases';

const MAPS: {[name: string]: PointwiseMap} = {
  elu_plus_one: 'elu',
  relu: 'relu',
  squared_relu: 'squaredRelu',
  exp: 'exp',
};

/** Our names of the golden files' results. */
const NAMES: {[name: string]: string} = {S: 's', S0: 's', z: 'z', z0: 'z', q: 'q', k: 'k', v: 'v'};

const values = (x: GoldenTensor): Float32Array => Float32Array.from(x.data);
const filled = (x: GoldenTensor | undefined, length: number): Float32Array =>
  x === undefined ? new Float32Array(length) : values(x);

/**
 * One conformance case, or two for a case of g4 that gives causal and non-causal outputs; gradients are compared in
 * the mode that they belong to.
 */
export function fromGolden(group: string, golden: GoldenCase): ConformanceCase[] {
  const {inputs, outputs, cotangents, grads, options} = golden;
  const [B, H, Nq, r] = inputs.q.shape;
  const [, , Nk, d] = inputs.v.shape;
  const modes = (options.modes as string[] | undefined) ?? [options.causal ? 'causal' : 'noncausal'];
  return modes.map((mode) => {
    const out = outputs.out === undefined ? `out_${mode}` : 'out';
    const expected: {[name: string]: ArrayLike<number>} = {output: outputs[out].data};
    for (const name of ['S', 'z']) {
      if (outputs[name] !== undefined) {
        expected[NAMES[name]] = outputs[name].data;
      }
    }
    if (cotangents[out] !== undefined) {
      for (const [name, gradient] of Object.entries(grads)) {
        expected[`d${NAMES[name]}`] = gradient.data;
      }
    }
    return {
      id: `golden ${group} ${golden.name.replaceAll('_', ' ')}${modes.length > 1 ? ` (${mode})` : ''}`,
      dims: {B, H, Nq, Nk, r, d},
      attrs: {
        causal: mode === 'causal',
        featureMap: MAPS[options.feature_map as string],
        normalize: options.normalize as boolean,
        eps: options.eps as number,
        scale: 1,
        dataFormat: 'BHND' as const,
      },
      values: () => ({
        q: values(inputs.q),
        k: values(inputs.k),
        v: values(inputs.v),
        mask: inputs.mask && values(inputs.mask),
        s: inputs.S0 && values(inputs.S0),
        z: inputs.z0 && values(inputs.z0),
        dOutput: filled(cotangents[out], B * H * Nq * d),
        dS: filled(cotangents.S, B * H * r * d),
        dZ: filled(cotangents.z, B * H * r),
      }),
      dqCancels: false,
      expected,
    };
  });
}

/** The golden files' cases that linear attention itself is checked by; `read` gives the cases of a file. */
export function goldenList(read: (file: string) => GoldenCase[]): ConformanceCase[] {
  return [
    ...['g1_noncausal', 'g2_causal', 'g3_causal_mask'].flatMap((file) =>
      read(file).flatMap((golden) => fromGolden(file.slice(0, 2), golden)),
    ),
    ...read('g4_feature_maps')
      .filter(({name}) => MAPS[name] !== undefined)
      .flatMap((golden) => fromGolden('g4', golden)),
    ...read('g7_rotary')
      .filter(({options}) => options.rotary === 'none')
      .flatMap((golden) => fromGolden('g7', golden)),
  ];
}
