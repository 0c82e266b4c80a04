/** What a kernel is called with, typed. */
import type * as tf from '@tensorflow/tfjs-core';

/** tfjs hands kernels loosely typed maps; the op that called them has filled in the inputs named here. */
export function kernelArguments<Inputs, Attrs>(args: {
  inputs: tf.NamedTensorInfoMap;
  attrs?: tf.NamedAttrMap;
}): {inputs: {[name in keyof Inputs]-?: tf.TensorInfo}; attrs: Attrs} {
  return args as unknown as {inputs: {[name in keyof Inputs]-?: tf.TensorInfo}; attrs: Attrs};
}

/** The attributes of a gradient. */
export const gradientAttributes = <Attrs>(attrs: tf.NamedAttrMap): Attrs => attrs as unknown as Attrs;
