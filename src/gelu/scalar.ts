/** gelu and its derivative of one number, in double precision: what the wasm kernel computes four at a time. */
import type {GeluForm} from './spec';

const RATE = 2 * Math.sqrt(2 / Math.PI);
const CUBIC = 0.044715;

/** P(t): exp(-z^2/2) t P(t), t = 1 / (1 + 0.35 z), is the upper tail of the normal distribution to 3e-8 of itself. */
const TAIL = [
  -0.029128326387879475, 0.14388382121202353, -0.2555275606748091, 0.1589543047960246, -0.022953355301454783,
  0.10543931160523703, 0.11985096438535585, 0.13985926370945245, 0.13962156076119925,
];

/** Phi(x) from e = exp(-x^2 / 2). */
function normalCdf(x: number, e: number): number {
  const t = 1 / (1 + 0.35 * Math.abs(x));
  let p = 0;
  for (const c of TAIL) {
    p = p * t + c;
  }
  const tail = p * t * e;
  return x < 0 ? tail : 1 - tail;
}

export function geluScalar(x: number, form: GeluForm): number {
  if (x === Number.NEGATIVE_INFINITY) {
    return 0;
  }
  if (form === 'none') {
    return x * normalCdf(x, Math.exp(-0.5 * x * x));
  }
  return x / (1 + Math.exp(-x * (RATE + CUBIC * RATE * x * x)));
}

export function geluDerivative(x: number, form: GeluForm): number {
  if (Math.abs(x) > 1e4) {
    return x > 0 ? 1 : 0;
  }
  if (form === 'none') {
    const e = Math.exp(-0.5 * x * x);
    return normalCdf(x, e) + (x * e) / Math.sqrt(2 * Math.PI);
  }
  const e = Math.exp(-Math.abs(x) * (RATE + CUBIC * RATE * x * x));
  const s = (x < 0 ? e : 1) / (1 + e);
  return s + (x * (RATE + 3 * CUBIC * RATE * x * x) * e) / ((1 + e) * (1 + e));
}
