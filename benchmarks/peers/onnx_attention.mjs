/** The graphs that onnxruntime is measured with. Layout everywhere: packed [1, T, H * size]. */
import {onnxModel} from './onnx_bytes.mjs';

const MICROSOFT = 'com.microsoft';

const linearNode = (heads, output, step) => ({
  op: 'LinearAttention',
  domain: MICROSOFT,
  inputs: ['query', 'key', 'value', ...(step ? ['past_state'] : [])],
  outputs: [output, 'present_state'],
  attributes: {q_num_heads: heads, kv_num_heads: heads, update_rule: 'linear', scale: 1},
  floats: ['scale'],
});

const stateOf = (step, name, shape) => (step ? {[name]: shape} : {});

/**
 * Numerator only: output [1,T,H*d] = sum over j <= t of (q_t.k_j) v_j.
 * @param step the graph of a decoding step: from past_state [1,H,r,d] to present_state as well
 */
export function linearRaw(heads, r, d, step = false) {
  return onnxModel({
    nodes: [linearNode(heads, 'output', step)],
    inputs: {
      query: [1, 'T', heads * r],
      key: [1, 'T', heads * r],
      value: [1, 'T', heads * d],
      ...stateOf(step, 'past_state', [1, heads, r, d]),
    },
    outputs: {output: [1, 'T', heads * d], ...stateOf(step, 'present_state', [1, heads, r, d])},
  });
}

/**
 * With the normaliser: the value that comes in has `width` columns a head, of which column d is 1 and those after it 0.
 * Output [1,T,H,d] = numerator / (denominator + eps).
 */
export function linearNormalised(heads, r, d, width, step = false, eps = 1e-6) {
  const vector = (...int64) => ({shape: [int64.length], int64});
  const slice = (from, to, output) => ({
    op: 'Slice',
    inputs: ['rows', from, to, 'axis'],
    outputs: [output],
  });
  return onnxModel({
    nodes: [
      linearNode(heads, 'both', step),
      {op: 'Reshape', inputs: ['both', 'shape'], outputs: ['rows']},
      slice('zero', 'd', 'numerator'),
      slice('d', 'd1', 'denominator'),
      {op: 'Add', inputs: ['denominator', 'eps'], outputs: ['divisor']},
      {op: 'Div', inputs: ['numerator', 'divisor'], outputs: ['output']},
    ],
    constants: {
      shape: vector(1, -1, heads, width),
      zero: vector(0),
      d: vector(d),
      d1: vector(d + 1),
      axis: vector(3),
      eps: {shape: [1], float32: [eps]},
    },
    inputs: {
      query: [1, 'T', heads * r],
      key: [1, 'T', heads * r],
      value: [1, 'T', heads * width],
      ...stateOf(step, 'past_state', [1, heads, r, width]),
    },
    outputs: {output: [1, 'T', heads, d], ...stateOf(step, 'present_state', [1, heads, r, width])},
  });
}

/** Causal softmax attention, query [1,T,H*r]; with `causal` false: of a query over a cache [1,L,H*r]. */
export function softmax(heads, r, d, causal) {
  return onnxModel({
    nodes: [
      {
        op: 'MultiHeadAttention',
        domain: MICROSOFT,
        inputs: ['query', 'key', 'value'],
        outputs: ['output'],
        attributes: {num_heads: heads, scale: 1 / Math.sqrt(r), unidirectional: causal ? 1 : 0},
        floats: ['scale'],
      },
    ],
    inputs: {query: [1, 'T', heads * r], key: [1, 'L', heads * r], value: [1, 'L', heads * d]},
    outputs: {output: [1, 'T', heads * d]},
  });
}
