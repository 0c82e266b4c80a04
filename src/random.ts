/**
 * Seeded random numbers: the same seed gives the same numbers on every machine and backend. Nothing in this package
 * calls Math.random.
 *
 * Generator: xoshiro128** of Blackman and Vigna (public domain, https://prng.di.unimi.it), 128 bits of state, seeded
 * through the 32-bit finaliser of MurmurHash3 (public domain) over a Weyl sequence. Not for cryptography.
 */

/** A stream of random numbers. */
export interface Random {
  /** A whole number in [0, 2^32). */
  next(): number;
  /** A number in [0, 1) with 32 random bits. */
  uniform(): number;
  /** A whole number in [0, n), each equally likely; 1 <= n <= 2^32. */
  below(n: number): number;
}

/** One bijective scramble of 32 bits. */
function scramble(x: number): number {
  let h = x | 0;
  h = Math.imul(h ^ (h >>> 16), 0x85ebca6b);
  h = Math.imul(h ^ (h >>> 13), 0xc2b2ae35);
  return (h ^ (h >>> 16)) >>> 0;
}

/**
 * One seed from several numbers (a seed, an epoch, a layer ...), so that each combination has a stream of its own.
 * Whole numbers up to 2^53 and their signs all count.
 */
export function mixSeed(...parts: number[]): number {
  let h = 0x9e3779b9;
  for (const part of parts) {
    h = scramble(h ^ scramble((part % 4294967296) + 0x7f4a7c15));
    h = scramble(h + Math.floor(part / 4294967296) + 0x165667b1);
  }
  return h;
}

/** A generator for `seed` (any finite number; whole ones up to 2^53 are told apart). */
export function random(seed: number): Random {
  const start = mixSeed(seed);
  let a = scramble(start + 0x9e3779b9);
  let b = scramble(start + 0x3c6ef372);
  let c = scramble(start + 0xdaa66d2b);
  // An all-zero state would stay zero for ever.
  let d = scramble(start + 0x78dde6e4) | 1;

  const next = (): number => {
    const product = Math.imul(b, 5);
    const result = Math.imul((product << 7) | (product >>> 25), 9) >>> 0;
    const shifted = b << 9;
    c ^= a;
    d ^= b;
    b ^= c;
    a ^= d;
    c ^= shifted;
    d = (d << 11) | (d >>> 21);
    return result;
  };
  return {
    next,
    uniform: () => next() / 4294967296,
    below(n) {
      // Values above the last whole multiple of n would make small results more likely: draw again.
      const limit = 4294967296 - (4294967296 % n);
      let x = next();
      while (x >= limit) {
        x = next();
      }
      return x % n;
    },
  };
}

/** The numbers 0 .. n-1 in a random order (Fisher-Yates). */
export function permutation(n: number, seed: number): Uint32Array {
  const order = Uint32Array.from({length: n}, (_, i) => i);
  const rng = random(seed);
  for (let i = n - 1; i > 0; i--) {
    const j = rng.below(i + 1);
    const t = order[i];
    order[i] = order[j];
    order[j] = t;
  }
  return order;
}

/** A 32-bit seed from a name (FNV-1a), for parts that are told apart by their names. */
export function seedOfName(name: string): number {
  let h = 0x811c9dc5;
  for (let i = 0; i < name.length; i++) {
    h = Math.imul(h ^ name.charCodeAt(i), 0x01000193);
  }
  return h >>> 0;
}
