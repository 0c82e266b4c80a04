/** Layer normalization over typed arrays: one pass for the moments and one for the output, sums in double precision. */
type Floats = Float32Array;

/** Mean and 1 / sqrt(var + epsilon) of x[at .. at + size). */
function moments(x: Floats, at: number, size: number, epsilon: number): {mean: number; inverse: number} {
  let sum = 0;
  for (let i = at; i < at + size; i++) {
    sum += x[i];
  }
  const mean = sum / size;
  let squares = 0;
  for (let i = at; i < at + size; i++) {
    const c = x[i] - mean;
    squares += c * c;
  }
  return {mean, inverse: 1 / Math.sqrt(squares / size + epsilon)};
}

/** Fills y. */
export function layerNormRows(x: Floats, gamma: Floats, beta: Floats, epsilon: number, y: Floats): void {
  const size = gamma.length;
  for (let at = 0; at < x.length; at += size) {
    const {mean, inverse} = moments(x, at, size, epsilon);
    for (let j = 0; j < size; j++) {
      y[at + j] = (x[at + j] - mean) * inverse * gamma[j] + beta[j];
    }
  }
}

/** Fills dx, dgamma and dbeta. */
export function layerNormGradRows(
  x: Floats,
  gamma: Floats,
  dy: Floats,
  epsilon: number,
  dx: Floats,
  dgamma: Floats,
  dbeta: Floats,
): void {
  const size = gamma.length;
  const gammaSums = new Float64Array(size);
  const betaSums = new Float64Array(size);
  for (let at = 0; at < x.length; at += size) {
    const {mean, inverse} = moments(x, at, size, epsilon);
    let sum = 0;
    let along = 0;
    for (let j = 0; j < size; j++) {
      const unit = (x[at + j] - mean) * inverse;
      const g = dy[at + j] * gamma[j];
      sum += g;
      along += g * unit;
      gammaSums[j] += dy[at + j] * unit;
      betaSums[j] += dy[at + j];
    }
    sum /= size;
    along /= size;
    for (let j = 0; j < size; j++) {
      const unit = (x[at + j] - mean) * inverse;
      dx[at + j] = inverse * (dy[at + j] * gamma[j] - sum - unit * along);
    }
  }
  dgamma.set(gammaSums);
  dbeta.set(betaSums);
}
