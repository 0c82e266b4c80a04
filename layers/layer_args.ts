/** The arguments that every layer takes, beside its own. */
import type {layers} from '@tensorflow/tfjs-layers';
import {checkOptions} from '../src/errors';

export type LayerArgs = NonNullable<ConstructorParameters<typeof layers.Layer>[0]>;

const COMMON = ['name', 'trainable', 'dtype', 'inputShape', 'batchInputShape', 'batchSize', 'weights'];

/** Refuses arguments that are neither a layer's own nor every layer's. */
export function checkLayerArgs(fn: string, args: unknown, own: readonly string[]): void {
  checkOptions(fn, args, [...own, ...COMMON], 'args');
}
