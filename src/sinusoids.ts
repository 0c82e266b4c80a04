/**
 * Sinusoidal position embeddings of Vaswani et al. 2017 (https://arxiv.org/abs/1706.03762, section 3.5), rows for the
 * given positions, [positions.length, size] row by row: sin(p w_i) in column 2i, cos(p w_i) in column 2i + 1,
 * w_i = 10000^(-2i/size), times `amplitude`.
 */
export function sinusoids(positions: ArrayLike<number>, size: number, amplitude = 1): Float32Array {
  const values = new Float32Array(positions.length * size);
  for (let column = 0; column < size; column++) {
    const frequency = 10000 ** (-(column - (column % 2)) / size);
    const wave = column % 2 === 0 ? Math.sin : Math.cos;
    for (let row = 0; row < positions.length; row++) {
      values[row * size + column] = amplitude * wave(positions[row] * frequency);
    }
  }
  return values;
}
