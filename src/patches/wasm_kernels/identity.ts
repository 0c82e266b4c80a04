/** Identity on wasm without a copy. */
import type * as tf from '@tensorflow/tfjs-core';
import {sharedInfo} from '../../tfjs';
import {kernelArguments} from '../kernel_arguments';

/**
 * tfjs clones every tensor that backward will need, and its wasm Identity copies the values: training holds all
 * activations twice. Other backends, and wasm's own Reshape, count references; so does this one. (The copies also
 * make tfjs's leak check, IS_TEST, refuse every op that saves inputs of its own on wasm, fused.matMul among them.)
 */
export function sharingIdentity(stock: tf.KernelConfig): tf.KernelConfig {
  return {
    ...stock,
    kernelFunc: (args) => {
      const {x} = kernelArguments<tf.IdentityInputs, undefined>(args).inputs;
      return x.dtype === 'string' ? stock.kernelFunc(args) : sharedInfo(args.backend, x);
    },
  };
}
