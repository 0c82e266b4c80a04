/**
 * Looking into a running model: what one linear layer's state holds, and how its last query weighs recent keys.
 *
 * A layer is run token by token through its `streamCall` (the protocol of layers.StreamingLayer), so that is where we
 * listen: inputs and states pass by and are noted. Queries and keys are worked out only when somebody looks.
 */
import * as tf from '@tensorflow/tfjs-core';
import type {LayersModel} from '@tensorflow/tfjs-layers';
import {layers} from 'tfjs-linear-attention';
import type {Look} from './protocol';
import {recentWeights} from './recent_weights';

/** Tokens whose weights are shown. */
export const RECENT = 48;

let watched: number | null = 0;

export function lookAt(layer: number | null): void {
  watched = layer;
}

interface Heard {
  /** Inputs [1,T,D] of the last calls, oldest first, kept. */
  inputs: tf.Tensor[];
  state: layers.StreamState | null;
}

export class Looker {
  private readonly attention: layers.LinearAttention[];
  private readonly heard: Heard[];
  /** Characters that the model has read, the last ones. */
  private characters: string[] = [];

  constructor(model: LayersModel) {
    this.attention = model.layers.filter((layer) => layer instanceof layers.LinearAttention);
    this.heard = this.attention.map((layer) => listen(layer));
  }

  /** Tells which characters the model reads next. */
  read(text: string): void {
    this.characters = [...this.characters, ...text].slice(-RECENT);
  }

  /** Null when no layer is watched. To be called between two tokens, while the state is alive. */
  async look(position: number): Promise<Look | null> {
    if (watched === null || watched >= this.attention.length) return null;
    const layer = this.attention[watched];
    const {inputs, state} = this.heard[watched];
    if (state === null) return null;
    const s = state['s'] as tf.Tensor4D;
    const z = state['z'] as tf.Tensor3D;
    const [, heads, features, values] = s.shape;
    const {weights, share} = tf.tidy(() => {
      const all = tf.concat(inputs, 1) as tf.Tensor3D;
      const count = Math.min(all.shape[1], RECENT, this.characters.length);
      const recent = tf.slice(all, [0, all.shape[1] - count, 0], [1, count, -1]) as tf.Tensor3D;
      return recentWeights(layer, recent, z, position - count);
    });
    try {
      const [sValues, weightValues, shareValues] = await Promise.all([
        s.data<'float32'>(),
        weights.data<'float32'>(),
        share.data<'float32'>(),
      ]);
      return {
        ...{event: 'look', layer: watched, position, heads, features, values},
        ...{s: sValues, weights: weightValues, share: shareValues},
        recent: this.characters.slice(-weights.shape[1]),
      };
    } finally {
      tf.dispose([weights, share]);
    }
  }

  /** Ends the listening. */
  dispose(): void {
    for (const layer of this.attention) Reflect.deleteProperty(layer, 'streamCall');
    for (const {inputs} of this.heard) tf.dispose(inputs);
  }
}

function listen(layer: layers.LinearAttention): Heard {
  const heard: Heard = {inputs: [], state: null};
  const run = layer.streamCall.bind(layer);
  layer.streamCall = (x, state, context) => {
    const result = run(x, state, context);
    heard.inputs.push(tf.keep(tf.clone(x)));
    // A prompt is one long input; tokens come one by one.
    while (lengthOf(heard.inputs.slice(1)) >= RECENT) heard.inputs.shift()!.dispose();
    heard.state = result.state;
    return result;
  };
  return heard;
}

const lengthOf = (inputs: tf.Tensor[]) => inputs.reduce((sum, {shape}) => sum + shape[1]!, 0);
