/** Sums over leading axes on the wasm backend: the gradient of every bias. */
import {type TensorInfo, util} from '@tensorflow/tfjs-core';
import {wasmOffset, wasmOutput} from '../tfjs';
import {trainingExports} from '../wasm/training';

/**
 * Sum of x over its first axes, or null where the kernel does not apply: another dtype, other axes, no SIMD, or memory
 * that cannot be found.
 */
export function sumLeadingAxes(
  backend: object,
  x: TensorInfo,
  axis: number | number[] | null | undefined,
  keepDims: boolean,
): TensorInfo | null {
  const rank = x.shape.length;
  if (x.dtype !== 'float32' || axis == null) {
    return null;
  }
  const axes = util.parseAxisParam(axis, x.shape).sort((a, b) => a - b);
  const leading = axes.length > 0 && axes.length < rank && axes.every((a, i) => a === i);
  const rest = x.shape.slice(axes.length);
  const columns = util.sizeFromShape(rest);
  const rows = util.sizeFromShape(x.shape.slice(0, axes.length));
  const kernels = leading ? trainingExports(backend) : null;
  if (kernels === null) {
    return null;
  }
  const out = wasmOutput(backend, keepDims ? [...axes.map(() => 1), ...rest] : rest);
  kernels.columnSums(rows, columns, wasmOffset(backend, x), wasmOffset(backend, out));
  return out;
}
