/** Cosines and sines of rotary position embedding, computed in double precision: right at any position. */

/** Position of the first token, or one position per row and token, [B,N] row-major. */
export type Positions = number | ArrayLike<number>;

export interface RotaryTables {
  /** [N,r/2], or [B,N,r/2] for positions per row: cos(p base^(-2i/r)). */
  cos: Float32Array;
  /** The sines. */
  sin: Float32Array;
}

/** A layer turns q and k by the same angles, in every layer and every training step: keep the last few tables. */
const kept = new Map<string, RotaryTables>();
const KEEP = 4;

export function rotaryTables(positions: Positions, N: number, r: number, base: number): RotaryTables {
  if (typeof positions !== 'number') {
    return makeTables(positions, r, base);
  }
  const key = [positions, N, r, base].join();
  let found = kept.get(key);
  if (found === undefined) {
    const counted = Array.from({length: N}, (_, n) => positions + n);
    found = makeTables(counted, r, base);
    if (kept.size >= KEEP) {
      kept.delete(kept.keys().next().value as string);
    }
    kept.set(key, found);
  }
  return found;
}

function makeTables(positions: ArrayLike<number>, r: number, base: number): RotaryTables {
  const half = r / 2;
  const cos = new Float32Array(positions.length * half);
  const sin = new Float32Array(positions.length * half);
  const frequencies = Array.from({length: half}, (_, i) => base ** ((-2 * i) / r));
  for (let n = 0; n < positions.length; n++) {
    for (let i = 0; i < half; i++) {
      const angle = positions[n] * frequencies[i];
      cos[n * half + i] = Math.cos(angle);
      sin[n * half + i] = Math.sin(angle);
    }
  }
  return {cos, sin};
}
