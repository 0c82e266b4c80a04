/**
 * The core: a workgroup walks along one segment of one head, in blocks of 32 tokens, for 16 columns of
 *
 *     f(A, B, C; S)_t = sum over s <= t of (a_t.b_s) c_s + a_t^T S
 *
 * (A, B [N,m], C [N,.], S [m,.]) with S in workgroup memory. Forward and the three gradients
 * are this with other operands, in the order of the tokens or the reverse. For each slice of 16 features a block adds
 * to its scores A B^T and to A S, then updates that slice of S by B^T C; at its end it adds the masked scores times C.
 * Not causal: only A S.
 *
 * 64 invocations: 8 x 8 tiles of 4 x 4 scores and 4 x 2 outputs. Where a score is masked its product with C is
 * selected to 0, not multiplied: a NaN in a later token's c stays there.
 */

/** Tokens in a block. Segments are multiples of it. */
export const BLOCK = 32;
export const COLUMNS = 16;
export const WALK_WORKGROUP = 64;

/**
 * Rows of S that workgroup memory is laid out for: the first capacity that is enough for m, or 0 where none is and S
 * stays in the scratch buffer, updated in place. With the rest that is 15.1 KiB of 16 forward (which keeps z as well),
 * and 15.5 backward, where sums over d + 1 columns occur.
 */
export const capacityFor = (m: number, backward: boolean): number =>
  (backward ? [80, 144] : [64, 128]).find((rows) => m <= rows) ?? 0;

export interface Walk {
  capacity: number;
  /**
   * Forward only: the denominator a.z is computed along (z is the column d of S's matrix) and goes to `store`; and the
   * state after the last segment is stored, when causal.
   */
  normalizer: boolean;
  /**
   * Statements that define, for workgroup `group`: segment, column0 (first of its 16), m, length (tokens of A in
   * all), and reverse (bool). They may set private variables, which the functions below read.
   */
  setup: string;
  /**
   * WGSL functions of the program: operandA, operandB(n, i) and operandC(n, c), 0 outside their widths;
   * stateIndex(slot, i, c), an index into `scratch` or -1 outside; store(n, c, value, denominator); and, with `normalizer`,
   * storeState(i, c, value) and storeNormalizer(i, value).
   */
  functions: string;
}

const declarations = ({capacity, normalizer, functions}: Walk): string => `
// A and B of a slice, [16][8 (+ 1 against bank conflicts)] vectors of 4 tokens; then scores, [32 keys][8 + 1].
var<workgroup> ab: array<vec4<f32>, 288>;
var<workgroup> cs: array<vec2<f32>, 256>; // [32][8]
var<workgroup> ss: array<vec2<f32>, ${(capacity || 16) * 8}>; // [rows][8]
${normalizer ? `var<workgroup> zs: array<f32, ${capacity || 16}>;\nvar<workgroup> dens: array<vec4<f32>, 8>;` : ''}
${functions}
fn stateAt(slot: i32, i: i32, c: i32) -> f32 {
  let at = stateIndex(slot, i, c);
  return select(0.0, f32(scratch[max(at, 0)]), at >= 0);
}`;

/**
 * Loads 16 rows of S from row f0 on. The same invocation stores what it loads, so the scratch buffer needs no barrier.
 * The workgroups of a head's other columns need the same z: each keeps a copy.
 */
const loadSlice = (normalizer: boolean): string => `
      for (var e = thread; e < 128; e += 64) {
        let c = column0 + 2 * (e & 7);
        ss[e] = vec2(stateAt(slot, f0 + (e >> 3), c), stateAt(slot, f0 + (e >> 3), c + 1));
      }
      ${
        normalizer
          ? `if (thread < 16) {
        var z = 0.0;
        if (x0 == start || !causal) {
          z = stateAt(slot, f0 + thread, uniforms.d);
        } else if (f0 + thread < m) {
          z = scratch[uniforms.copyAt + group * m + f0 + thread];
        }
        zs[thread] = z;
      }`
          : ''
      }`;

const storeSlice = (normalizer: boolean): string => `
        for (var e = thread; e < 128; e += 64) {
          for (var x = 0; x < 2; x++) {
            let at = stateIndex(slot, f0 + (e >> 3), column0 + 2 * (e & 7) + x);
            if (at >= 0) { scratch[at] = ss[e][x]; }
          }
        }
        ${
          normalizer
            ? 'if (thread < 16 && f0 + thread < m) { scratch[uniforms.copyAt + group * m + f0 + thread] = zs[thread]; }'
            : ''
        }`;

const main = (walk: Walk): string => {
  const {capacity, normalizer, setup} = walk;
  const resident = capacity > 0;
  // Row of ss that holds row f0 of S.
  const base = resident ? 'f0' : '0';
  return `
  ${setup}
  let start = segment * uniforms.segmentLength;
  let end = min(start + uniforms.segmentLength, length);
  if (start >= end) { return; }
  let causal = uniforms.causal != 0;
  let slot = select(0, segment, causal);
  ${normalizer ? 'let storesState = causal && end == length && uniforms.returnState != 0;' : 'let storesState = false;'}
  let tx = thread & 7;
  let ty = thread >> 3;
  ${
    resident
      ? `for (var e = thread; e < ((m + 15) / 16) * 128; e += 64) {
    let c = column0 + 2 * (e & 7);
    ss[e] = vec2(stateAt(slot, e >> 3, c), stateAt(slot, e >> 3, c + 1));
  }
  ${normalizer ? 'for (var i = thread; i < m; i += 64) { zs[i] = stateAt(slot, i, uniforms.d); }' : ''}`
      : ''
  }
  for (var x0 = start; x0 < end; x0 += ${BLOCK}) {
    var sc0 = vec4(0.0); var sc1 = vec4(0.0); var sc2 = vec4(0.0); var sc3 = vec4(0.0);
    var acc0 = vec4(0.0); var acc1 = vec4(0.0);
    ${normalizer ? 'var den = vec4(0.0); // of 4 tokens, right where tx is 0' : ''}
    for (var y = ty; y < ${BLOCK}; y += 8) {
      let x = x0 + y;
      let n = select(x, start + end - 1 - x, reverse);
      var c = vec2(0.0);
      if (causal && x < end) { c = vec2(operandC(n, column0 + 2 * tx), operandC(n, column0 + 2 * tx + 1)); }
      cs[y * 8 + tx] = c;
    }
    for (var f0 = 0; f0 < m; f0 += 16) {
      for (var g = thread >> 4; g < 8; g += 4) {
        let f = thread & 15;
        var a = vec4(0.0);
        var b = vec4(0.0);
        for (var y = 0; y < 4; y++) {
          let x = x0 + g * 4 + y;
          if (x < end) {
            let n = select(x, start + end - 1 - x, reverse);
            a[y] = operandA(n, f0 + f);
            if (causal) { b[y] = operandB(n, f0 + f); }
          }
        }
        ab[f * 9 + g] = a;
        ab[144 + f * 9 + g] = b;
      }
      ${resident ? '' : loadSlice(normalizer)}
      workgroupBarrier();
      for (var f = 0; f < 16; f++) {
        let a = ab[f * 9 + ty];
        let s = ss[(${base} + f) * 8 + tx];
        acc0 += a * s.x;
        acc1 += a * s.y;
        ${normalizer ? `if (tx == 0) { den += a * zs[${base} + f]; }` : ''}
        if (causal && tx <= ty) {
          let b = ab[144 + f * 9 + tx];
          sc0 += a * b.x;
          sc1 += a * b.y;
          sc2 += a * b.z;
          sc3 += a * b.w;
        }
      }
      workgroupBarrier();
      if (causal && (x0 + ${BLOCK} < end || storesState)) {
        let f = (thread >> 3) * 2;
        var u0 = vec2(0.0);
        var u1 = vec2(0.0);
        ${normalizer ? 'var w = vec2(0.0);' : ''}
        for (var g = 0; g < 8; g++) {
          let b0 = ab[144 + f * 9 + g];
          let b1 = ab[153 + f * 9 + g];
          let c0 = cs[g * 32 + tx];
          let c1 = cs[g * 32 + 8 + tx];
          let c2 = cs[g * 32 + 16 + tx];
          let c3 = cs[g * 32 + 24 + tx];
          u0 += b0.x * c0 + b0.y * c1 + b0.z * c2 + b0.w * c3;
          u1 += b1.x * c0 + b1.y * c1 + b1.z * c2 + b1.w * c3;
          ${normalizer ? 'w += vec2(b0.x + b0.y + b0.z + b0.w, b1.x + b1.y + b1.z + b1.w);' : ''}
        }
        ss[(${base} + f) * 8 + tx] += u0;
        ss[(${base} + f + 1) * 8 + tx] += u1;
        ${normalizer ? `if (tx == 0) { zs[${base} + f] += w.x; zs[${base} + f + 1] += w.y; }` : ''}
        workgroupBarrier();
        ${resident ? '' : storeSlice(normalizer)}
      }
    }
    if (causal) {
      // Scores take the place of A and B. Here [key][query], so that 4 queries are one vector.
      let queries = vec4(ty * 4) + vec4(0, 1, 2, 3);
      ab[(tx * 4) * 9 + ty] = select(vec4(0.0), sc0, queries >= vec4(tx * 4));
      ab[(tx * 4 + 1) * 9 + ty] = select(vec4(0.0), sc1, queries >= vec4(tx * 4 + 1));
      ab[(tx * 4 + 2) * 9 + ty] = select(vec4(0.0), sc2, queries >= vec4(tx * 4 + 2));
      ab[(tx * 4 + 3) * 9 + ty] = select(vec4(0.0), sc3, queries >= vec4(tx * 4 + 3));
      workgroupBarrier();
      for (var y = 0; y < ty * 4; y++) {
        let s = ab[y * 9 + ty];
        let c = cs[y * 8 + tx];
        acc0 += s * c.x;
        acc1 += s * c.y;
        ${normalizer ? 'den += s;' : ''}
      }
      for (var y = ty * 4; y < ty * 4 + 4; y++) {
        let s = ab[y * 9 + ty];
        let c = cs[y * 8 + tx];
        let seen = queries >= vec4(y);
        acc0 += select(vec4(0.0), s * c.x, seen);
        acc1 += select(vec4(0.0), s * c.y, seen);
        ${normalizer ? 'den += s;' : ''}
      }
    }
    ${normalizer ? 'if (tx == 0) { dens[ty] = den; }' : ''}
    workgroupBarrier();
    for (var y = 0; y < 4; y++) {
      let x = x0 + ty * 4 + y;
      if (x < end) {
        let n = select(x, start + end - 1 - x, reverse);
        ${normalizer ? 'let denominator = dens[ty][y];' : 'let denominator = 0.0;'}
        store(n, column0 + 2 * tx, acc0[y], denominator);
        store(n, column0 + 2 * tx + 1, acc1[y], denominator);
      }
    }
  }
  ${normalizer ? finalState(capacity) : ''}`;
};

const finalState = (capacity: number): string => `
  if (storesState) {
    for (var f0 = 0; f0 < m; f0 += 16) {
      for (var e = thread; e < 128; e += 64) {
        for (var x = 0; x < 2; x++) {
          let i = f0 + (e >> 3);
          let c = column0 + 2 * (e & 7) + x;
          ${
            capacity
              ? 'storeState(i, c, ss[i * 8 + (e & 7)][x]);'
              : 'if (i < m) { storeState(i, c, stateAt(slot, i, c)); }'
          }
        }
      }
    }
    if (column0 == 0 && thread < 16) {
      for (var i = thread; i < m; i += 16) {
        storeNormalizer(i, ${capacity ? 'zs[i]' : 'scratch[uniforms.copyAt + group * m + i]'});
      }
    }
  }`;

export const walkSource = (walk: Walk) => ({declarations: declarations(walk), main: main(walk)});
