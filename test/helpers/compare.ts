/** Comparing numbers with the project's tolerances, and saying which element was worst. */

export interface Tolerance {
  /** Root mean square of the error over the root mean square of the reference. */
  rms: number;
  /** Largest error over the largest reference value. */
  max: number;
}

/** Absolute errors that are allowed on top: what rounding does to values that are 0 in theory. */
export type Floor = Tolerance;

/** float32 backends against the float64 oracle. */
export const FLOAT32: Tolerance = {rms: 1e-5, max: 1e-4};
/** half-float textures. */
export const HALF: Tolerance = {rms: 2e-3, max: 2e-3};

/** Null when `got` is close to `want`; else what is wrong, naming the worst element. */
export function difference(
  got: ArrayLike<number>,
  want: ArrayLike<number>,
  tolerance: Tolerance,
  floor: number | Floor = 1e-7,
): string | null {
  if (got.length !== want.length) {
    return `expected ${want.length} values, got ${got.length}`;
  }
  const allowed = typeof floor === 'number' ? {rms: floor, max: floor} : floor;
  let worst = -1;
  let worstError = 0;
  let squares = 0;
  let reference = 0;
  let largest = 0;
  for (let i = 0; i < want.length; i++) {
    const same = Object.is(got[i], want[i]) || got[i] === want[i];
    const error = same ? 0 : Math.abs(got[i] - want[i]);
    if (!(error <= worstError)) {
      worstError = error;
      worst = i;
    }
    squares += error * error;
    reference += want[i] * want[i];
    largest = Math.max(largest, Math.abs(want[i]));
  }
  const rms = Math.sqrt(squares / Math.max(1, want.length));
  const rmsBound = tolerance.rms * Math.sqrt(reference / Math.max(1, want.length)) + allowed.rms;
  const maxBound = tolerance.max * largest + allowed.max;
  if (rms <= rmsBound && worstError <= maxBound) {
    return null;
  }
  return `worst element ${worst}: got ${got[worst]}, expected ${want[worst]}; error rms ${rms.toExponential(2)} (bound ${rmsBound.toExponential(2)}), max ${worstError.toExponential(2)} (bound ${maxBound.toExponential(2)})`;
}

/** The bounds of test/golden/README.md: |x - ref| <= relative * max|ref| + absolute, element by element. */
export function goldenDifference(
  got: ArrayLike<number>,
  want: ArrayLike<number>,
  kind: 'output' | 'gradient',
): string | null {
  const [relative, absolute] = kind === 'output' ? [2e-6, 1e-7] : [1e-5, 1e-6];
  if (got.length !== want.length) {
    return `expected ${want.length} values, got ${got.length}`;
  }
  let largest = 0;
  for (let i = 0; i < want.length; i++) {
    largest = Math.max(largest, Math.abs(want[i]));
  }
  const bound = relative * largest + absolute;
  for (let i = 0; i < want.length; i++) {
    if (!(Math.abs(got[i] - want[i]) <= bound)) {
      return `element ${i}: got ${got[i]}, expected ${want[i]} within ${bound.toExponential(2)}`;
    }
  }
  return null;
}
