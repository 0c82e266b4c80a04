/** Layers and models of another copy of tfjs-layers than this package's, which its classes cannot be told from outside. */
import * as tfl from '@tensorflow/tfjs-layers';
import {howToKeepOne, twoCopiesOfCore} from '../src/tfjs_copies';

interface SymbolicLike {
  sourceLayer?: unknown;
  nodeIndex?: unknown;
}

/** An explanation where `x` is a symbolic tensor or a model of another copy; else null. */
export function otherCopyOf(x: unknown): string | null {
  if (x === null || typeof x !== 'object') {
    return null;
  }
  const {sourceLayer, nodeIndex} = x as SymbolicLike;
  const symbolic = sourceLayer !== undefined && typeof nodeIndex === 'number';
  const model = ['inputs', 'outputs', 'layers'].every((name) =>
    Array.isArray((x as {[name: string]: unknown})[name]),
  );
  if (!(symbolic && !(x instanceof tfl.SymbolicTensor)) && !(model && !(x instanceof tfl.LayersModel))) {
    return null;
  }
  return (
    `this ${model ? 'model' : 'input'} was made by another copy of @tensorflow/tfjs-layers than the one that this ` +
    `package uses (version ${tfl.version_layers}). ${howToKeepOne('@tensorflow/tfjs-layers')}` +
    (twoCopiesOfCore() === null ? '' : ' There are two copies of @tensorflow/tfjs-core as well.')
  );
}
