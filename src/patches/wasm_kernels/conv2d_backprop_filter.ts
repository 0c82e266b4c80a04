/** Conv2DBackpropFilter on wasm: the gradient of a convolution's (1-D ones included) filter. */
import * as tf from '@tensorflow/tfjs-core';
import {disposeInfo, wasmOutput, wasmView} from '../../tfjs';
import {kernelArguments} from '../kernel_arguments';

/**
 * dFilter [fh,fw,Cin,Cout] = patches^T dy, with patches^T [fh fw Cin, B oh ow] copied out of x (0 where it hangs over
 * the edge) and one matMul of tfjs, untransposed and without a batch, which is its fast form.
 */
export const conv2DBackpropFilter: tf.KernelConfig = {
  kernelName: tf.Conv2DBackpropFilter,
  backendName: 'wasm',
  kernelFunc: (args) => {
    const {backend} = args;
    const {inputs, attrs} = kernelArguments<tf.Conv2DBackpropFilterInputs, tf.Conv2DBackpropFilterAttrs>(
      args,
    );
    const {x, dy} = inputs;
    const {strides, pad, dataFormat, dimRoundingMode, filterShape} = attrs;
    tf.util.assert(
      dataFormat === 'NHWC',
      () => `Conv2DBackpropFilter: expected dataFormat 'NHWC' on wasm; got '${dataFormat}'.`,
    );
    const info = tf.backend_util.computeConv2DInfo(
      x.shape as [number, number, number, number],
      filterShape,
      strides,
      1,
      pad,
      dimRoundingMode,
      false,
    );
    const pixels = info.batchSize * info.outHeight * info.outWidth;
    const taps = info.filterHeight * info.filterWidth * info.inChannels;
    const patches = wasmOutput(backend, [taps, pixels]);
    copyPatches(
      info,
      wasmView(backend, x) as Float32Array,
      wasmView(backend, patches) as Float32Array,
      pixels,
    );
    const matMul = tf.getKernel(tf.BatchMatMul, 'wasm');
    const product = matMul.kernelFunc({
      inputs: {a: patches, b: {...dy, shape: [pixels, info.outChannels]}},
      attrs: {transposeA: false, transposeB: false},
      backend,
    }) as tf.TensorInfo;
    disposeInfo(backend, patches);
    return {...product, shape: info.filterShape};
  },
};

/** to[(fr, fc, c), (b, r, c)] = x at the position under that tap. */
function copyPatches(
  info: tf.backend_util.Conv2DInfo,
  x: Float32Array,
  to: Float32Array,
  pixels: number,
): void {
  const {batchSize, inHeight, inWidth, inChannels, outHeight, outWidth, strideHeight, strideWidth} = info;
  to.fill(0);
  for (let fr = 0; fr < info.filterHeight; fr++) {
    for (let fc = 0; fc < info.filterWidth; fc++) {
      const tap = (fr * info.filterWidth + fc) * inChannels;
      for (let b = 0; b < batchSize; b++) {
        for (let r = 0; r < outHeight; r++) {
          const row = r * strideHeight + fr - info.padInfo.top;
          if (row < 0 || row >= inHeight) {
            continue;
          }
          for (let c = 0; c < outWidth; c++) {
            const column = c * strideWidth + fc - info.padInfo.left;
            if (column < 0 || column >= inWidth) {
              continue;
            }
            const from = ((b * inHeight + row) * inWidth + column) * inChannels;
            const pixel = (b * outHeight + r) * outWidth + c;
            for (let channel = 0; channel < inChannels; channel++) {
              to[(tap + channel) * pixels + pixel] = x[from + channel];
            }
          }
        }
      }
    }
  }
}
