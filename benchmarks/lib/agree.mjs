/** Results are compared before anything is timed. */

/** Relative root mean square and largest error (over the largest value) of `got` against `want`. */
export function errorOf(got, want) {
  let squares = 0;
  let reference = 0;
  let worst = 0;
  let largest = 0;
  for (let i = 0; i < want.length; i++) {
    const error = Math.abs(got[i] - want[i]);
    // NaN must not pass for the smaller of two numbers.
    if (!(error <= worst)) worst = error;
    squares += error * error;
    reference += want[i] * want[i];
    largest = Math.max(largest, Math.abs(want[i]));
  }
  return {rms: Math.sqrt(squares / reference), max: worst / largest};
}

/** Throws unless both have the same length and agree within the conformance suite's float32 tolerance. */
export function assertAgree(what, got, want, {rms = 1e-5, max = 1e-4} = {}) {
  if (got.length !== want.length) {
    throw new Error(`${what}: expected ${want.length} values; got ${got.length}. Nothing was timed.`);
  }
  const error = errorOf(got, want);
  if (!(error.rms <= rms && error.max <= max)) {
    throw new Error(
      `${what}: the results disagree: relative rms ${error.rms.toExponential(2)} (at most ${rms}), ` +
        `largest ${error.max.toExponential(2)} (at most ${max}). Nothing was timed.`,
    );
  }
  return error;
}
