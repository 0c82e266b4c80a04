/** UnsortedSegmentSum on wasm: the gradient of gather, so of every embedding. */
import * as tf from '@tensorflow/tfjs-core';
import {wasmOutput, wasmView} from '../../tfjs';
import {kernelArguments} from '../kernel_arguments';

/**
 * output[id] = sum of x[n] over all n with segmentIds[n] = id. x is [...ids, ...rest], output [numSegments, ...rest];
 * rows with an id outside 0..numSegments-1 are dropped, as elsewhere in tfjs. One pass over x.
 */
export const unsortedSegmentSum: tf.KernelConfig = {
  kernelName: tf.UnsortedSegmentSum,
  backendName: 'wasm',
  kernelFunc: (args) => {
    const {backend} = args;
    const {inputs, attrs} = kernelArguments<tf.UnsortedSegmentSumInputs, tf.UnsortedSegmentSumAttrs>(args);
    const {x, segmentIds} = inputs;
    const {numSegments} = attrs;
    const rest = x.shape.slice(segmentIds.shape.length);
    const width = tf.util.sizeFromShape(rest);
    const output = wasmOutput(backend, [numSegments, ...rest], x.dtype);
    const [from, ids, to] = [x, segmentIds, output].map((info) => wasmView(backend, info));
    to.fill(0);
    for (let n = 0; n < ids.length; n++) {
      const id = ids[n];
      if (id >= 0 && id < numSegments) {
        const [at, row] = [n * width, id * width];
        for (let i = 0; i < width; i++) {
          to[row + i] += from[at + i];
        }
      }
    }
    return output;
  },
};
