/** Random projections in plain JavaScript: the same seed gives the same numbers on every machine and backend. */
import {random} from '../../src/random';

/** Normally distributed numbers (Box and Muller). */
function normals(seed: number): () => number {
  const {next} = random(seed);
  let spare: number | null = null;
  return () => {
    if (spare !== null) {
      const value = spare;
      spare = null;
      return value;
    }
    const radius = Math.sqrt(-2 * Math.log((next() + 0.5) / 4294967296));
    const angle = (2 * Math.PI * next()) / 4294967296;
    spare = radius * Math.sin(angle);
    return radius * Math.cos(angle);
  };
}

/**
 * `rows` directions of length r, row-major: standard normal vectors or, when `orthogonal`, blocks of r rows that are
 * orthogonal to each other and have the norms of independent normal vectors (chi with r degrees of freedom), so that
 * each row by itself is distributed as before. Choromanski et al. 2021, https://arxiv.org/abs/2009.14794, section 2.4.
 */
export function drawProjection(rows: number, r: number, seed: number, orthogonal: boolean): Float32Array {
  const normal = normals(seed);
  const projection = new Float32Array(rows * r);
  if (!orthogonal) {
    for (let i = 0; i < projection.length; i++) projection[i] = normal();
    return projection;
  }
  for (let row = 0; row < rows; row += r) {
    const block = orthonormalRows(r, normal);
    for (let i = 0; i < Math.min(r, rows - row); i++) {
      let squares = 0;
      for (let j = 0; j < r; j++) squares += normal() ** 2;
      const norm = Math.sqrt(squares);
      for (let j = 0; j < r; j++) projection[(row + i) * r + j] = norm * block[i * r + j];
    }
  }
  return projection;
}

/**
 * r orthonormal rows, uniformly distributed (Haar). Gram and Schmidt's way keeps the diagonal of R in the QR
 * factorisation positive, which is what makes the distribution uniform: a library's QR with other signs must be
 * multiplied by sign(diag R) (Mezzadri 2007, https://arxiv.org/abs/math-ph/0609050), and estimates are tens of percent
 * off where that is forgotten.
 */
function orthonormalRows(r: number, normal: () => number): Float64Array {
  const block = Float64Array.from({length: r * r}, normal);
  for (let row = 0; row < r; row++) {
    const at = row * r;
    // Each product is of what is left of the row (the modified form), which in double precision is orthogonal enough.
    for (let other = 0; other < at; other += r) {
      let dot = 0;
      for (let j = 0; j < r; j++) dot += block[at + j] * block[other + j];
      for (let j = 0; j < r; j++) block[at + j] -= dot * block[other + j];
    }
    let squares = 0;
    for (let j = 0; j < r; j++) squares += block[at + j] ** 2;
    const inverse = 1 / Math.sqrt(squares);
    for (let j = 0; j < r; j++) block[at + j] *= inverse;
  }
  return block;
}
