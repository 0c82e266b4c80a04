/**
 * A matrix multiplication that is fast for every shape on the wasm backend, and right.
 *
 * What it repairs in tfjs-backend-wasm 4.22 (BatchMatMul, _FusedMatMul and Sum; all observed):
 * - A product with more than one batch, or with either operand transposed, takes a scalar path: 0.4 to 2.5 GFLOP/s
 *   where one untransposed product runs at 30. Both gradients of every Dense layer are such products.
 * - A fused product with a bias per column is wrong for more than one batch or a transposed operand: rows after the
 *   first get the last number of the bias everywhere.
 * - A fused bias of rank 2 or more is refused, though the other backends take it.
 * - A product of inner size 0, and a sum of no rows, are whatever the memory held, not zeros.
 * - Sum over leading axes, the gradient of every bias, transposes its input first: 10 times slower than adding rows.
 */
import {
  _FusedMatMul,
  Add,
  type Attribute,
  BatchMatMul,
  Elu,
  getKernel,
  type KernelFunc,
  LeakyRelu,
  type NamedTensorInfoMap,
  Prelu,
  Relu,
  Relu6,
  Sigmoid,
  Sum,
  type TensorInfo,
  util,
} from '@tensorflow/tfjs-core';
import {sumLeadingAxes} from '../mat_mul/column_sums';
import {ACTIVATIONS, type Finish, multiplyOnWasm as multiply} from '../mat_mul/wasm';
import {disposeInfo} from '../tfjs';
import {patch, replaceKernel, together, type Undo} from './patch';

const BACKEND = 'wasm';

/**
 * Replaces the wasm backend's matMul, fused matMul and sum kernels by our own, which run at one rate for plain and
 * transposed operands and batches alike: 48 GFLOP/s in one thread where the stock kernels reach 31 and 2 (two threads
 * of an AMD EPYC shared with others, Node 20, sizes 1024).
 *
 * Falls back to the stock kernels, call by call, where ours cannot run (no SIMD, another dtype, a tfjs whose memory
 * cannot be found). Applying it twice changes nothing. Import the wasm backend before: without it nothing happens.
 *
 * @returns undo: puts the stock kernels back.
 *
 * ```js
 * const undo = patches.wasmMatMul();
 * await model.fit(x, y);   // several times faster on the wasm backend
 * undo();
 * ```
 */
export const wasmMatMul = (): Undo => (isImported() ? apply() : () => undefined);

const isImported = () => getKernel(BatchMatMul, BACKEND) != null && getKernel(_FusedMatMul, BACKEND) != null;

const apply = patch(
  () =>
    together([
      wrap(BatchMatMul, batchMatMul),
      wrap(_FusedMatMul, fusedMatMul),
      ...(getKernel(Sum, BACKEND) == null ? [] : [wrap(Sum, biasSum)]),
    ]),
  // Worker threads apply what their parent applied.
  'wasmMatMul',
);

/** Replaces a kernel by one that may call it. */
function wrap(kernelName: string, around: (stock: KernelFunc) => KernelFunc): Undo {
  const stock = getKernel(kernelName, BACKEND);
  return replaceKernel({...stock, kernelFunc: around(stock.kernelFunc)});
}

function batchMatMul(stock: KernelFunc): KernelFunc {
  return (params) => {
    const {a, b} = params.inputs as {a: TensorInfo; b: TensorInfo};
    const {transposeA, transposeB} = params.attrs as {transposeA: boolean; transposeB: boolean};
    return multiply(params.backend as object, a, b, transposeA, transposeB) ?? stock(params);
  };
}

function biasSum(stock: KernelFunc): KernelFunc {
  return (params) => {
    const {axis, keepDims} = params.attrs as {axis: number | number[]; keepDims: boolean};
    const x = params.inputs['x'] as TensorInfo;
    return sumLeadingAxes(params.backend as object, x, axis, keepDims) ?? stock(params);
  };
}

interface FusedInputs extends NamedTensorInfoMap {
  a: TensorInfo;
  b: TensorInfo;
  bias: TensorInfo | undefined;
  preluActivationWeights: TensorInfo | undefined;
}

interface FusedAttrs {
  [name: string]: Attribute;
  transposeA: boolean;
  transposeB: boolean;
  activation: string;
  leakyreluAlpha: number;
}

function fusedMatMul(stock: KernelFunc): KernelFunc {
  return (params) => {
    const {a, b, bias, preluActivationWeights: slopes} = params.inputs as FusedInputs;
    const {transposeA, transposeB, activation, leakyreluAlpha} = params.attrs as FusedAttrs;
    const backend = params.backend as object;
    if (!isActivation(activation) || (activation === 'prelu') !== (slopes != null)) {
      return stock(params);
    }
    const columns = b.shape[b.shape.length - (transposeB ? 2 : 1)];
    const fits = (x: TensorInfo | undefined) => x == null || isPerColumn(x, columns);
    const alpha = leakyreluAlpha ?? 0;
    if (fits(bias) && fits(slopes)) {
      const finish: Finish = {bias: bias ?? undefined, activation, alpha, slopes: slopes ?? undefined};
      return multiply(backend, a, b, transposeA, transposeB, finish) ?? stock(params);
    }
    const product = multiply(backend, a, b, transposeA, transposeB);
    if (product === null) {
      return stock(params);
    }
    const biased = bias == null ? product : step(backend, Add, {a: product, b: bias}, product);
    const inputs: NamedTensorInfoMap = activation === 'prelu' ? {x: biased, alpha: slopes} : {x: biased};
    return activation === 'linear'
      ? biased
      : step(backend, ACTIVATION_KERNELS[activation], inputs, biased, {alpha});
  };
}

/** The kernels that finish a product whose bias or slopes are neither one number nor one per column. */
const ACTIVATION_KERNELS = {
  relu: Relu,
  relu6: Relu6,
  prelu: Prelu,
  leakyrelu: LeakyRelu,
  sigmoid: Sigmoid,
  elu: Elu,
};

/** Runs a kernel of the backend and frees the intermediate result that it used up. */
function step(
  backend: object,
  kernelName: string,
  inputs: NamedTensorInfoMap,
  used: TensorInfo,
  attrs: {[name: string]: Attribute} = {},
): TensorInfo {
  const kernel = getKernel(kernelName, BACKEND);
  const out = kernel.kernelFunc({inputs, attrs, backend});
  disposeInfo(backend, used);
  return out as TensorInfo;
}

const isActivation = (name: string): name is Finish['activation'] => Object.hasOwn(ACTIVATIONS, name);

/** One float32 number per column of the product, or one for all. */
function isPerColumn(x: TensorInfo, columns: number): boolean {
  const size = util.sizeFromShape(x.shape);
  return (
    x.dtype === 'float32' && (size === 1 || (size === columns && x.shape[x.shape.length - 1] === columns))
  );
}
