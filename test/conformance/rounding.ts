/**
 * What rounding alone may do to dq where its terms cancel. With y_t a mean of the values that query t sees,
 *
 *     dq_t = phi'(q_t) / (den_t + eps) * sum_s (dy_t.v_s - dy_t.y_t) phi(k_s)
 *
 * is 0 in theory where all weight lies on one key, however small den_t is. In float32 each of the two products carries an
 * error of about 2^-24 of its size, which the division by den_t enlarges: no order of the sums avoids that. A kernel may
 * therefore be wrong by a rounding or two of the terms' sizes, summed without their signs.
 */
import type {NaiveAttrs} from '../../src/linear_attention/naive';
import {naiveForward} from '../../src/linear_attention/naive';
import type {Dims} from '../../src/linear_attention/spec';
import {pointwiseDerivative, pointwiseScalar} from '../../src/pointwise';
import type {Floor} from '../helpers/compare';
import type {CaseValues} from './cases';

/** Two roundings of dq's terms: root mean square and largest. For features that are not negative, without a state. */
export function dqRounding(values: CaseValues, dims: Dims, attrs: NaiveAttrs): Floor {
  const {B, H, Nq, Nk, r, d} = dims;
  const {featureMap, causal, eps, dataFormat} = attrs;
  const {output} = naiveForward(values, dims, attrs);
  const row = (b: number, h: number, n: number, N: number, width: number) =>
    (dataFormat === 'BHND' ? (b * H + h) * N + n : (b * N + n) * H + h) * width;
  let squares = 0;
  let largest = 0;
  for (let b = 0; b < B; b++) {
    for (let h = 0; h < H; h++) {
      for (let t = 0; t < Nq; t++) {
        const [q, y] = [row(b, h, t, Nq, r), row(b, h, t, Nq, d)];
        const sizes = new Float64Array(r);
        let den = 0;
        for (let s = 0; s < (causal ? t + 1 : Nk); s++) {
          if (values.mask !== undefined && values.mask[b * Nk + s] === 0) continue;
          const [k, v] = [row(b, h, s, Nk, r), row(b, h, s, Nk, d)];
          let size = 0;
          for (let j = 0; j < d; j++) {
            size += Math.abs(values.dOutput[y + j]) * (Math.abs(values.v[v + j]) + Math.abs(output[y + j]));
          }
          for (let i = 0; i < r; i++) {
            const feature = pointwiseScalar(featureMap, values.k[k + i]);
            sizes[i] += size * feature;
            den += feature * pointwiseScalar(featureMap, values.q[q + i]);
          }
        }
        for (let i = 0; i < r && den !== 0; i++) {
          const size = Math.abs(pointwiseDerivative(featureMap, values.q[q + i]) * sizes[i]) / (den + eps);
          squares += size ** 2;
          largest = Math.max(largest, size);
        }
      }
    }
  }
  return {rms: 2 ** -23 * Math.sqrt(squares / (B * H * Nq * r)), max: 2 ** -23 * largest};
}
