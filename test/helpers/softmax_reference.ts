/** Softmax attention and its gradients in double precision, written from the definition, O(N^2). */

export interface SoftmaxProblem {
  B: number;
  H: number;
  Nq: number;
  Nk: number;
  r: number;
  d: number;
  /** [B,H,Nq,r], [B,H,Nk,r], [B,H,Nk,d], row-major. */
  q: ArrayLike<number>;
  k: ArrayLike<number>;
  v: ArrayLike<number>;
  causal?: boolean;
  /** [B,Nk] */
  mask?: ArrayLike<number>;
  scale?: number;
}

/** The weights of query i of head b (of B H): 0 for keys that it does not see. */
function weightsOf(p: SoftmaxProblem, b: number, i: number): Float64Array {
  const scale = p.scale ?? 1 / Math.sqrt(p.r);
  const seen = (j: number) =>
    !(p.causal && j > i) && (p.mask === undefined || p.mask[Math.floor(b / p.H) * p.Nk + j] !== 0);
  const scores = new Float64Array(p.Nk).fill(Number.NEGATIVE_INFINITY);
  for (let j = 0; j < p.Nk; j++) {
    if (seen(j)) {
      scores[j] = 0;
      for (let f = 0; f < p.r; f++) {
        scores[j] += scale * p.q[(b * p.Nq + i) * p.r + f] * p.k[(b * p.Nk + j) * p.r + f];
      }
    }
  }
  const most = Math.max(...scores);
  const exps = scores.map((score) => (score === Number.NEGATIVE_INFINITY ? 0 : Math.exp(score - most)));
  const sum = exps.reduce((a, x) => a + x, 0);
  return exps.map((x) => (sum === 0 ? 0 : x / sum));
}

/** [B,H,Nq,d] */
export function softmaxForward(p: SoftmaxProblem): Float64Array {
  const output = new Float64Array(p.B * p.H * p.Nq * p.d);
  for (let b = 0; b < p.B * p.H; b++) {
    for (let i = 0; i < p.Nq; i++) {
      weightsOf(p, b, i).forEach((weight, j) => {
        for (let c = 0; weight !== 0 && c < p.d; c++) {
          output[(b * p.Nq + i) * p.d + c] += weight * p.v[(b * p.Nk + j) * p.d + c];
        }
      });
    }
  }
  return output;
}

/** Gradients of sum(output * dOutput). */
export function softmaxBackward(
  p: SoftmaxProblem,
  dOutput: ArrayLike<number>,
): {dq: Float64Array; dk: Float64Array; dv: Float64Array} {
  const scale = p.scale ?? 1 / Math.sqrt(p.r);
  const dq = new Float64Array(p.B * p.H * p.Nq * p.r);
  const dk = new Float64Array(p.B * p.H * p.Nk * p.r);
  const dv = new Float64Array(p.B * p.H * p.Nk * p.d);
  for (let b = 0; b < p.B * p.H; b++) {
    for (let i = 0; i < p.Nq; i++) {
      const weights = weightsOf(p, b, i);
      const dWeights = new Float64Array(p.Nk);
      let mean = 0; // sum_j w_j dw_j
      for (let j = 0; j < p.Nk; j++) {
        for (let c = 0; weights[j] !== 0 && c < p.d; c++) {
          const dy = dOutput[(b * p.Nq + i) * p.d + c];
          dWeights[j] += dy * p.v[(b * p.Nk + j) * p.d + c];
          dv[(b * p.Nk + j) * p.d + c] += weights[j] * dy;
        }
        mean += weights[j] * dWeights[j];
      }
      for (let j = 0; j < p.Nk; j++) {
        const dScore = scale * weights[j] * (dWeights[j] - mean);
        for (let f = 0; dScore !== 0 && f < p.r; f++) {
          dq[(b * p.Nq + i) * p.r + f] += dScore * p.k[(b * p.Nk + j) * p.r + f];
          dk[(b * p.Nk + j) * p.r + f] += dScore * p.q[(b * p.Nq + i) * p.r + f];
        }
      }
    }
  }
  return {dq, dk, dv};
}
