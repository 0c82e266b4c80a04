/** The two gradients of a depthwise convolution on wasm. */
import * as tf from '@tensorflow/tfjs-core';
import {wasmOutput, wasmView} from '../../tfjs';
import {kernelArguments} from '../kernel_arguments';

/** dFilter [fh,fw,C,m] from x and dy. */
export const depthwiseConv2dNativeBackpropFilter: tf.KernelConfig = {
  kernelName: tf.DepthwiseConv2dNativeBackpropFilter,
  backendName: 'wasm',
  kernelFunc: (args) => {
    const {backend} = args;
    const {inputs, attrs} = kernelArguments<
      tf.DepthwiseConv2dNativeBackpropFilterInputs,
      tf.DepthwiseConv2dNativeBackpropFilterAttrs
    >(args);
    const {x, dy} = inputs;
    const {strides, dilations, pad, dimRoundingMode, filterShape} = attrs;
    const info = infoOf(x.shape, filterShape, strides, dilations, pad, dimRoundingMode);
    const output = wasmOutput(backend, info.filterShape);
    const [from, dOutput, to] = [x, dy, output].map((tensor) => wasmView(backend, tensor));
    to.fill(0);
    const multiplier = info.outChannels / info.inChannels;
    forEachTap(info, (input, result, tap) => {
      for (let channel = 0; channel < info.outChannels; channel++) {
        to[tap + channel] += from[input + Math.trunc(channel / multiplier)] * dOutput[result + channel];
      }
    });
    return output;
  },
};

/** dx, of the shape of the forward input, from dy and the filter. */
export const depthwiseConv2dNativeBackpropInput: tf.KernelConfig = {
  kernelName: tf.DepthwiseConv2dNativeBackpropInput,
  backendName: 'wasm',
  kernelFunc: (args) => {
    const {backend} = args;
    const {inputs, attrs} = kernelArguments<
      tf.DepthwiseConv2dNativeBackpropInputInputs,
      tf.DepthwiseConv2dNativeBackpropInputAttrs
    >(args);
    const {dy, filter} = inputs;
    const {strides, dilations, pad, dimRoundingMode, inputShape} = attrs;
    const info = infoOf(inputShape, filter.shape, strides, dilations, pad, dimRoundingMode);
    const output = wasmOutput(backend, info.inShape);
    const [dOutput, weights, to] = [dy, filter, output].map((tensor) => wasmView(backend, tensor));
    to.fill(0);
    const multiplier = info.outChannels / info.inChannels;
    forEachTap(info, (input, result, tap) => {
      for (let channel = 0; channel < info.outChannels; channel++) {
        to[input + Math.trunc(channel / multiplier)] += weights[tap + channel] * dOutput[result + channel];
      }
    });
    return output;
  },
};

function infoOf(
  inShape: number[],
  filterShape: number[],
  strides: [number, number] | number,
  dilations: [number, number] | number,
  pad: 'valid' | 'same' | number | tf.backend_util.ExplicitPadding,
  dimRoundingMode?: 'floor' | 'round' | 'ceil',
): tf.backend_util.Conv2DInfo {
  type Four = [number, number, number, number];
  return tf.backend_util.computeConv2DInfo(
    inShape as Four,
    filterShape as Four,
    strides,
    dilations,
    pad,
    dimRoundingMode,
    true,
  );
}

/** Calls back with where the channels of an input pixel, of an output pixel and of the tap that joins them start. */
function forEachTap(
  info: tf.backend_util.Conv2DInfo,
  f: (input: number, result: number, tap: number) => void,
): void {
  const {batchSize, inHeight, inWidth, inChannels, outHeight, outWidth, outChannels} = info;
  for (let b = 0; b < batchSize; b++) {
    for (let r = 0; r < outHeight; r++) {
      for (let c = 0; c < outWidth; c++) {
        const result = ((b * outHeight + r) * outWidth + c) * outChannels;
        for (let fr = 0; fr < info.filterHeight; fr++) {
          const row = r * info.strideHeight + fr * info.dilationHeight - info.padInfo.top;
          for (let fc = 0; fc < info.filterWidth; fc++) {
            const column = c * info.strideWidth + fc * info.dilationWidth - info.padInfo.left;
            if (row >= 0 && row < inHeight && column >= 0 && column < inWidth) {
              const input = ((b * inHeight + row) * inWidth + column) * inChannels;
              f(input, result, (fr * info.filterWidth + fc) * outChannels);
            }
          }
        }
      }
    }
  }
}
