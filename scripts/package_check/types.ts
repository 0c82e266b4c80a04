import * as tf from '@tensorflow/tfjs-core';
import type * as tfLayers from '@tensorflow/tfjs-layers';
import * as tfla from 'tfjs-linear-attention';
import {type FeatureMap, layers, linearAttention} from 'tfjs-linear-attention';
import {type NodeWebGPU, useNodeWebGPU} from 'tfjs-linear-attention/node-webgpu';

const q = tf.ones<tf.Rank.R4>([1, 2, 3, 4]);
export const plain: tf.Tensor = linearAttention(q, q, q, {causal: true, featureMap: 'elu'});
export const stateful = tfla.linearAttention(q, q, q, {causal: true, returnState: true});
export const s: tf.Tensor = stateful.state.s;
export const layer: tfLayers.layers.Layer = layers.linearAttention({numHeads: 2, keyDim: 4});
export type Map = FeatureMap;
export const gpu: Promise<NodeWebGPU> = useNodeWebGPU({powerPreference: 'low-power'});
// @ts-expect-error: an option that does not exist is a type error, not silence.
linearAttention(q, q, q, {casual: true});
