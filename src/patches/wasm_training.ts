/** The kernels that training needs and tfjs's wasm backend lacks. */
import * as tf from '@tensorflow/tfjs-core';
import {einsumByContraction} from './einsum_gradient';
import {patch, replaceKernel, together, type Undo} from './patch';
import {conv2DBackpropFilter} from './wasm_kernels/conv2d_backprop_filter';
import {
  depthwiseConv2dNativeBackpropFilter,
  depthwiseConv2dNativeBackpropInput,
} from './wasm_kernels/depthwise_conv2d_backprop';
import {sharingIdentity} from './wasm_kernels/identity';
import {unsortedSegmentSum} from './wasm_kernels/unsorted_segment_sum';

const KERNELS: tf.KernelConfig[] = [
  unsortedSegmentSum,
  conv2DBackpropFilter,
  depthwiseConv2dNativeBackpropFilter,
  depthwiseConv2dNativeBackpropInput,
  {kernelName: tf.Einsum, backendName: 'wasm', kernelFunc: einsumByContraction},
];

/**
 * Registers on the wasm backend the kernels that training calls and tfjs 4.22 has elsewhere only: UnsortedSegmentSum
 * (the gradient of tf.gather, so of every embedding), Conv2DBackpropFilter (of conv1d and conv2d),
 * DepthwiseConv2dNativeBackpropFilter and -Input, and Einsum; and replaces Identity by one that does not copy, so that
 * what backward needs is held once. Without them training stops with "Kernel
 * 'UnsortedSegmentSum' not registered for backend 'wasm'" (tensorflow/tfjs issues 8082, 8474 and 4326).
 *
 * Any other kernel that tfjs has already stays. Import the wasm backend first.
 *
 * ```js
 * const undo = patches.wasmTraining();
 * tf.grad((table) => tf.sum(tf.gather(table, tf.tensor1d([0, 2], 'int32'))))(tf.ones([3, 4])).print();
 * undo();
 * ```
 *
 * @returns undo(), which restores what was registered before.
 */
export const wasmTraining: () => Undo = patch(() =>
  together([
    ...KERNELS.filter(({kernelName}) => tf.getKernel(kernelName, 'wasm') == null).map(replaceKernel),
    ...[tf.getKernel(tf.Identity, 'wasm')].flatMap((stock) =>
      stock == null ? [] : replaceKernel(sharingIdentity(stock)),
    ),
  ]),
);
