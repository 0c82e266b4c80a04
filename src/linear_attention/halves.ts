/**
 * A call in two halves, for backends whose buffers end at some size: over the batch, the heads, or the sequence, along
 * which the state is handed on. Each half is a call of the kernel again, which may cut it further.
 *
 * Without causality either the queries are cut, which share one state, or the keys, which add up in it.
 */
import * as tf from '@tensorflow/tfjs-core';
import {
  asAttrs,
  asInputs,
  type Dims,
  dimsOf,
  LinearAttention,
  type LinearAttentionAttrs,
  LinearAttentionGrad,
  type LinearAttentionGradInputs,
  type LinearAttentionInputs,
  type Live,
} from './spec';

type Inputs = Live<LinearAttentionInputs>;
type GradInputs = Live<LinearAttentionGradInputs>;

/** What the halves of a call say to each other; for kernels whose numbers are too narrow for sums over a sequence. */
export interface HalfAttrs extends LinearAttentionAttrs {
  /** How many tokens the initial state is the mean of, as such a kernel takes it. Default 1: it is a state as it is. */
  meanOf?: number;
  /** Such a kernel returns the mean over the tokens (and the initial state) instead of their sum. Default false. */
  returnMean?: boolean;
}

/** The two kernels. */
export interface Kernels {
  forward(inputs: Inputs, attrs: HalfAttrs): tf.Tensor[];
  backward(inputs: GradInputs, attrs: HalfAttrs): tf.Tensor[];
}

/** Those of the current backend. */
const REGISTERED: Kernels = {
  forward: (inputs, attrs) =>
    tf.engine().runKernel(LinearAttention, asInputs(inputs), asAttrs(attrs)) as tf.Tensor[],
  backward: (inputs, attrs) =>
    tf.engine().runKernel(LinearAttentionGrad, asInputs(inputs), asAttrs(attrs)) as tf.Tensor[],
};

type Cut = 'batch' | 'heads' | 'tokens' | 'queries' | 'keys';

/** @throws Error where nothing is left to cut. */
function cutOf({B, H, Nq, Nk}: Dims, causal: boolean): Cut {
  if (B > 1) return 'batch';
  if (H > 1) return 'heads';
  if (Math.max(Nq, Nk) <= 1) {
    throw new Error('linearAttention: one token of one head has no halves.');
  }
  if (causal) return 'tokens';
  return Nq > Nk ? 'queries' : 'keys';
}

/** The axis along which an input or output is cut, or null where both halves have all of it. */
function axisOf(
  name: string,
  {rank}: tf.Tensor,
  cut: Cut,
  {dataFormat}: LinearAttentionAttrs,
): number | null {
  // Placeholders.
  if (rank === 1) return null;
  if (cut === 'batch') return 0;
  const [head, token] = dataFormat === 'BHND' ? [1, 2] : [2, 1];
  switch (name) {
    case 'mask':
      return cut === 'tokens' || cut === 'keys' ? 1 : null;
    case 's':
    case 'z':
    case 'dS':
    case 'dZ':
      return cut === 'heads' ? 1 : null;
    case 'k':
    case 'v':
      return cut === 'heads' ? head : cut === 'queries' ? null : token;
    default:
      return cut === 'heads' ? head : cut === 'keys' ? null : token;
  }
}

function halvesOf<T extends Inputs>(inputs: T, cut: Cut, attrs: LinearAttentionAttrs): [T, T] {
  const half = (second: boolean): T => {
    const entries = Object.entries(inputs as {[name: string]: tf.Tensor}).map(([name, x]) => {
      const axis = axisOf(name, x, cut, attrs);
      if (axis === null) {
        return [name, x];
      }
      const middle = Math.ceil(x.shape[axis] / 2);
      const begin = x.shape.map((_, i) => (i === axis && second ? middle : 0));
      const size = x.shape.map((n, i) => (i !== axis ? n : second ? n - middle : middle));
      return [name, tf.slice(x, begin, size)];
    });
    return Object.fromEntries(entries) as T;
  };
  return [half(false), half(true)];
}

/** The results of both halves as one, where they are cut; else the second's. Frees the halves. */
function joined(
  name: string,
  first: tf.Tensor,
  second: tf.Tensor,
  cut: Cut,
  attrs: LinearAttentionAttrs,
): tf.Tensor {
  const axis = axisOf(name, second, cut, attrs);
  if (axis === null) {
    first.dispose();
    return second;
  }
  const whole = tf.concat([first, second], axis);
  tf.dispose([first, second]);
  return whole;
}

/** The attributes of a call that goes on from the state after `tokens` tokens of a call with these. */
const goingOn = (attrs: HalfAttrs, tokens: number): HalfAttrs => ({
  ...attrs,
  hasState: true,
  meanOf: (attrs.hasState ? (attrs.meanOf ?? 1) : 0) + tokens,
});

/** The attributes of a call that is made for its state only. */
const forState = (attrs: HalfAttrs): HalfAttrs => ({
  ...attrs,
  ...{causal: false, normalize: false, scale: 1, returnState: true, returnMean: true},
});

/** Zeros in the place of the queries, or of their outputs: one for each head. */
function oneQuery({k}: Inputs, width: number, {dataFormat}: LinearAttentionAttrs): tf.Tensor {
  const [B, a, b] = k.shape;
  return tf.zeros(dataFormat === 'BHND' ? [B, a, 1, width] : [B, 1, b, width]);
}

/** The state after the tokens of a call, and nothing else of it. */
function stateAfter(inputs: Inputs, r: number, attrs: HalfAttrs, kernels: Kernels): [tf.Tensor, tf.Tensor] {
  const q = oneQuery(inputs, r, attrs);
  const [output, s, z, ...more] = kernels.forward({...inputs, q}, forState(attrs));
  tf.dispose([output, ...more]);
  return [s, z];
}

/** LinearAttention. Returns output, s, z and inverse as the kernel does. */
export function forwardInHalves(
  inputs: Inputs,
  attrs: HalfAttrs,
  kernels: Kernels = REGISTERED,
): tf.Tensor[] {
  return tf.tidy(() => {
    const dims = dimsOf(inputs, attrs.dataFormat);
    const cut = cutOf(dims, attrs.causal);
    const [first, second] = halvesOf(inputs, cut, attrs);
    const tokens = Math.ceil(dims.Nk / 2);
    if (cut === 'keys') {
      const [s, z] = stateAfter(first, dims.r, attrs, kernels);
      return kernels.forward({...second, s, z}, goingOn(attrs, tokens)).slice(0, 4);
    }
    const firstAttrs: HalfAttrs = {
      tokens: {...attrs, returnState: true, returnMean: true},
      queries: {...attrs, returnState: false},
      batch: attrs,
      heads: attrs,
    }[cut];
    const [output, s, z, inverse, ...more] = kernels.forward(first, firstAttrs);
    tf.dispose(more);
    const others =
      cut === 'tokens'
        ? kernels.forward({...second, s, z}, goingOn(attrs, tokens))
        : kernels.forward(second, attrs);
    return [
      joined('output', output, others[0], cut, attrs),
      joined('s', s, others[1], cut, attrs),
      joined('z', z, others[2], cut, attrs),
      joined('inverse', inverse, others[3], cut, attrs),
    ];
  });
}

/** LinearAttentionGrad. */
export function backwardInHalves(
  inputs: GradInputs,
  attrs: HalfAttrs,
  kernels: Kernels = REGISTERED,
): tf.Tensor[] {
  return tf.tidy(() => {
    const dims = dimsOf(inputs, attrs.dataFormat);
    const cut = cutOf(dims, attrs.causal);
    const [first, second] = halvesOf(inputs, cut, attrs);
    const tokens = Math.ceil(dims.Nk / 2);
    if (cut === 'tokens' || cut === 'keys') {
      const [s, z] = stateAfter(first, dims.r, attrs, kernels);
      const [dq, dk, dv, dS, dZ] = kernels.backward({...second, s, z}, goingOn(attrs, tokens));
      // To the keys of the first half, everything comes through the state.
      const before =
        cut === 'tokens'
          ? kernels.backward({...first, dS, dZ}, {...attrs, returnState: true})
          : kernels.backward(
              {
                ...first,
                ...{q: oneQuery(first, dims.r, attrs), dS, dZ},
                ...{output: oneQuery(first, dims.d, attrs), dOutput: oneQuery(first, dims.d, attrs)},
              },
              forState(attrs),
            );
      return [
        joined('q', before[0], dq, cut, attrs),
        joined('k', before[1], dk, cut, attrs),
        joined('v', before[2], dv, cut, attrs),
        before[3],
        before[4],
      ];
    }
    const firsts = kernels.backward(first, cut === 'queries' ? {...attrs, returnState: false} : attrs);
    const seconds = kernels.backward(second, attrs);
    return ['q', 'k', 'v', 's', 'z'].map((name, i) =>
      cut === 'queries' && name !== 'q'
        ? tf.add(firsts[i], seconds[i])
        : joined(name, firsts[i], seconds[i], cut, attrs),
    );
  });
}
