import * as tf from '@tensorflow/tfjs-core';
import type * as tfLayers from '@tensorflow/tfjs-layers';
import * as tfla from 'tfjs-linear-attention';
import {type FeatureMap, layers, linearAttention} from 'tfjs-linear-attention';
import {generate} from 'tfjs-linear-attention/generation';
import 'tfjs-linear-attention/kernels/cpu';
import 'tfjs-linear-attention/kernels/node';
import 'tfjs-linear-attention/kernels/wasm';
import 'tfjs-linear-attention/kernels/webgl';
import 'tfjs-linear-attention/kernels/webgpu';
import {LinearAttention} from 'tfjs-linear-attention/layers';
import {transformer} from 'tfjs-linear-attention/models';
import {type NodeWebGPU, useNodeWebGPU} from 'tfjs-linear-attention/node-webgpu';
import * as ops from 'tfjs-linear-attention/ops';
import {wasmTraining} from 'tfjs-linear-attention/patches';
import {saveModel} from 'tfjs-linear-attention/training';

const q = tf.ones<tf.Rank.R4>([1, 2, 3, 4]);
export const plain: tf.Tensor = linearAttention(q, q, q, {causal: true, featureMap: 'elu'});
export const stateful = tfla.linearAttention(q, q, q, {causal: true, returnState: true});
export const s: tf.Tensor = stateful.state.s;
export const layer: tfLayers.layers.Layer = layers.linearAttention({numHeads: 2, keyDim: 4});
export type Map = FeatureMap;
// The entries have the root's types.
export const same: typeof tfla.linearAttention = ops.linearAttention;
export const classes: typeof tfla.LinearAttention = LinearAttention;
const model: tfLayers.LayersModel = transformer({vocabSize: 3, dModel: 4, numLayers: 1, numHeads: 1});
export const written: AsyncGenerator<number> = generate(model, [1], {maxNewTokens: 1});
export const saved: Promise<void> = saveModel(model, 'folder', {quantize: 'float16'});
export const undo: () => void = wasmTraining();
export const gpu: Promise<NodeWebGPU> = useNodeWebGPU({powerPreference: 'low-power'});
// @ts-expect-error: an option that does not exist is a type error, not silence.
linearAttention(q, q, q, {casual: true});
