/** The state after 65536 tokens against float64: no timing. */
import {errorOf} from '../lib/agree.mjs';
import {normal, tf, tfla, useBackend} from '../lib/ours.mjs';

export const title = 'State after N tokens against float64';
export const about =
  'B = 1, H = 2, r = d = 64, elu + 1, causal; queries, keys and values N(0,1). Largest error of s and z over the largest value, from one call ' +
  'over all tokens and from 64 calls that hand the state on; and of the last 64 outputs.';

const LENGTH = 65536;
const HEADS = 2;
const SIZE = 64;
const PARTS = 64;
const LAST = 64;

export async function run({quick}) {
  const N = quick ? 4096 : LENGTH;
  const values = [1, 2, 3].map((seed) => normal(HEADS * N * SIZE, seed));
  const want = reference(values, N);
  const rows = [];
  for (const backend of ['wasm', 'cpu']) {
    await useBackend(backend);
    const whole = inOneCall(values, N);
    const parts = inParts(values, N);
    rows.push({
      key: `${backend} N=${N}`,
      figures: {
        's, one call': errorOf(whole.s, want.s).max,
        'z, one call': errorOf(whole.z, want.z).max,
        [`s, ${PARTS} calls`]: errorOf(parts.s, want.s).max,
        [`z, ${PARTS} calls`]: errorOf(parts.z, want.z).max,
        'last outputs': errorOf(whole.outputs, want.outputs).max,
      },
    });
  }
  return {rows, kernels: ['LinearAttention'], backend: 'wasm and cpu'};
}

/** Float64, token by token: s [H,r,d], z [H,r], the last outputs [H,LAST,d]. */
function reference([q, k, v], N) {
  const phi = (x) => (x > 0 ? x + 1 : Math.exp(x));
  const s = new Float64Array(HEADS * SIZE * SIZE);
  const z = new Float64Array(HEADS * SIZE);
  const outputs = new Float64Array(HEADS * LAST * SIZE);
  for (let h = 0; h < HEADS; h++) {
    for (let t = 0; t < N; t++) {
      const row = (h * N + t) * SIZE;
      for (let i = 0; i < SIZE; i++) {
        const key = phi(k[row + i]);
        z[h * SIZE + i] += key;
        const at = (h * SIZE + i) * SIZE;
        for (let j = 0; j < SIZE; j++) s[at + j] += key * v[row + j];
      }
      if (t >= N - LAST) {
        let den = 0;
        const out = (h * LAST + t - (N - LAST)) * SIZE;
        for (let i = 0; i < SIZE; i++) {
          const query = phi(q[row + i]);
          den += query * z[h * SIZE + i];
          for (let j = 0; j < SIZE; j++) outputs[out + j] += query * s[(h * SIZE + i) * SIZE + j];
        }
        for (let j = 0; j < SIZE; j++) outputs[out + j] /= den + 1e-6;
      }
    }
  }
  return {s, z, outputs};
}

const tensorsOf = (values, N) => values.map((x) => tf.tensor(x, [1, HEADS, N, SIZE]));

function inOneCall(values, N) {
  const inputs = tensorsOf(values, N);
  const {output, state} = tfla.linearAttention(...inputs, {causal: true, returnState: true});
  const last = tf.slice(output, [0, 0, N - LAST, 0], [1, HEADS, LAST, SIZE]);
  const result = {
    s: state.s.dataSync().slice(),
    z: state.z.dataSync().slice(),
    outputs: last.dataSync().slice(),
  };
  tf.dispose([inputs, output, last, state.s, state.z]);
  return result;
}

function inParts(values, N) {
  const inputs = tensorsOf(values, N);
  const length = N / PARTS;
  let state = tfla.zeroState({batchSize: 1, numHeads: HEADS, keyDim: SIZE, valueDim: SIZE});
  for (let at = 0; at < N; at += length) {
    const part = inputs.map((x) => tf.slice(x, [0, 0, at, 0], [1, HEADS, length, SIZE]));
    const next = tfla.linearAttention(...part, {causal: true, returnState: true, initialState: state});
    tfla.disposeState(state);
    state = next.state;
    tf.dispose([part, next.output]);
  }
  const result = {s: state.s.dataSync().slice(), z: state.z.dataSync().slice()};
  tfla.disposeState(state);
  tf.dispose(inputs);
  return result;
}
