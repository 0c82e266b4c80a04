/** Reproducible inputs that need no backend. */
import {random} from '../../src/random';

/** Numbers of mean 0 and variance 1 (the sum of 12 uniform ones), exact in float32. */
export function randomNumbers(size: number, seed: number): Float32Array {
  const {uniform} = random(seed);
  return Float32Array.from({length: size}, () => {
    let sum = -6;
    for (let i = 0; i < 12; i++) {
      sum += uniform();
    }
    return sum;
  });
}
