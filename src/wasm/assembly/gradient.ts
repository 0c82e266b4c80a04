/** What the backward passes share: the gradient of numerator and denominator, and the rows they end in. */
import {Args, spareRow} from './args';
import {multiplyDerivative} from './feature_maps';
import {dot} from './pairs';
import {copy, keeps, rowOf, zero} from './rows';

/**
 * From dY, the gradient of the output y = num / (den + eps), for the tokens n .. n + count:
 * `values` = d num = dY / (den + eps) and `dDenominator` = e = -(d num . y); not normalised, dY * scale and 0.
 */
export function gradientBlock(a: Args, n: i32, count: i32): void {
  const d = a.d;
  const columns = a.columns;
  let dst = a.values;
  let e = a.dDenominator;
  for (let t = n; t < n + count; t++) {
    for (let h = 0; h < a.heads; h++) {
      let dy = rowOf(a, a.dOutput, d, t, h);
      let y = rowOf(a, a.output, d, t, h);
      if (d != columns) {
        dy = padded(dy, spareRow(a, 0), d, columns);
        y = padded(y, spareRow(a, 1), d, columns);
      }
      const factor = f32x4.splat(a.normalize ? load<f32>(rowOf(a, a.inverse, 1, t, h)) : a.scale);
      const end = dst + ((<usize>columns) << 2);
      for (let at = dst; at < end; at += 16, dy += 16) {
        v128.store(at, f32x4.mul(v128.load(dy), factor));
      }
      store<f32>(e, a.normalize ? -dot(dst, y, columns) : <f32>0);
      dst = end;
      e += 4;
    }
  }
}

function padded(row: usize, spare: usize, size: i32, columns: i32): usize {
  copy(row, spare, size);
  zero(spare + ((<usize>size) << 2), columns - size);
  return spare;
}

/**
 * dst [size] = gradient * phi'(x), the last step of dq and dk; 0 for a masked token. `gradient` [width] is scratch,
 * width being size rounded up, and is overwritten.
 */
export function finishRow(a: Args, gradient: usize, phi: usize, dst: usize, keep: bool): void {
  if (!keep) {
    zero(dst, a.r);
    return;
  }
  const inPlace = a.r == a.rows;
  multiplyDerivative(gradient, phi, inPlace ? dst : gradient, a.rows >> 2, a.map);
  if (!inPlace) {
    copy(gradient, dst, a.r);
  }
}

/**
 * The same for a block of tokens whose gradients are in their place already; `phi` [count, heads, rows]. Masked tokens
 * get 0 when `masked`.
 */
export function finishBlock(a: Args, dst: usize, phi: usize, n: i32, count: i32, masked: bool): void {
  const useMask = masked && a.mask != 0;
  if (a.r == a.rows && a.tokenStride == a.heads && !useMask) {
    if (a.map != 0) {
      const at = rowOf(a, dst, a.r, n, 0);
      multiplyDerivative(at, phi, at, (count * a.heads * a.rows) >> 2, a.map);
    }
    return;
  }
  const gradient = spareRow(a, 0);
  for (let t = n; t < n + count; t++) {
    const keep = !useMask || keeps(a, t);
    for (let h = 0; h < a.heads; h++) {
      const at = rowOf(a, dst, a.r, t, h);
      copy(at, gradient, a.r);
      finishRow(a, gradient, phi, at, keep);
      phi += (<usize>a.rows) << 2;
    }
  }
}
